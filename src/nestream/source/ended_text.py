"""Wraps the text of a file for the bulk CSV reader, with one more line that proves it was read to the end."""

from __future__ import annotations

import codecs
import io
from typing import IO


class EndedText(io.RawIOBase):
    """A file of UTF-8 text with one more line at its end; where it is not UTF-8, it just ends.

    Arrow shows refused rows as text and fails for others, so these must not reach it.
    """

    def __init__(self, file: IO[bytes], end: bytes) -> None:
        self._file, self._end, self.position = file, b"\n" + end + b"\n", 0
        self._held = b""  # the beginning of a character whose end was not read yet

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size - len(self._held) if size > 0 else size)
        self.position += len(data)
        if data.isascii() and not self._held:
            if not data:
                data, self._end = self._end, b""
            return data
        whole = self._held + data
        try:
            used = codecs.utf_8_decode(whole, "strict", not data)[1]
        except UnicodeDecodeError:
            self._file, self._end, self._held = io.BytesIO(), b"", b""
            return b""
        self._held = whole[used:]
        return whole[:used] or self.read(size)
