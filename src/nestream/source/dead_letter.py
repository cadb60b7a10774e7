"""Dead letters: every malformed row is counted, and on request saved with its line and reason."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from nestream.model.wording import reason
from nestream.source.errors import SourceError

RAW_LIMIT = 65_536  # characters of a malformed row that are kept
EXAMPLES = 5


@dataclass(frozen=True)
class DeadLetter:
    """One malformed row. `line` counts from 1; in a Parquet file it is the row."""

    file: str
    line: int
    reason: str
    raw: str


class DeadLetters:
    """Counts malformed rows by kind, keeps the first few, and writes all to a file of JSON lines."""

    most: int | None = EXAMPLES
    _before = 0

    def __init__(self, source: str, path: Path | None) -> None:
        self.source = source
        self.path = path
        self.count = 0
        self.kinds: Counter[str] = Counter()
        self.examples: list[DeadLetter] = []
        self._file: IO[str] | None = None
        if path is not None and os.path.isfile(path):  # the dead letters of an earlier run
            with self._writing(path) as file:
                file.truncate()

    def add(self, line: int, kind: str, reason: str, raw: bytes | str) -> None:
        """Record a row. `kind` groups the counts, `reason` says what is wrong with this one."""
        self.count += 1
        self.kinds[kind] += 1
        is_example = self.most is None or len(self.examples) < self.most
        if self.path is None and not is_example:
            return
        text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
        letter = DeadLetter(self.source, line + self._before, reason, text[:RAW_LIMIT])
        if is_example:
            self.examples.append(letter)
        if self.path is not None:
            with self._writing(self.path) as file:
                file.write(json.dumps(asdict(letter), ensure_ascii=True) + "\n")

    @contextmanager
    def _writing(self, path: Path) -> Iterator[IO[str]]:
        """The open file. The disk may be full at any write, not only when the file is opened."""
        try:
            if self._file is None:
                self._file = open(path, "w", encoding="utf-8", newline="\n")
            yield self._file
        except OSError as error:
            raise SourceError(
                f"cannot write the dead letters of {self.source} to {path}: {reason(error)}. "
                "Choose another path"
            ) from error

    def forget(self) -> None:
        """Start over: the rows are checked again."""
        self.count = 0
        self.kinds.clear()
        self.examples.clear()
        if self.path is not None and self._file is not None:
            with self._writing(self.path) as file:
                file.seek(0)
                file.truncate()

    def close(self) -> None:
        """Finish the file."""
        if self.path is not None and self._file is not None:
            with self._writing(self.path) as file:
                self._file = None
                file.close()


class HeldLetters(DeadLetters):
    """Keeps all malformed rows as examples; line numbers continue after those of earlier lines."""

    most = None

    def __init__(self, source: str, before: int = 0) -> None:
        super().__init__(source, None)
        self._before = before


def dead_letter_path(wanted: bool | str | os.PathLike[str] | None, source: str) -> Path | None:
    """The path for dead letters; True means the default, `<input>.dead.jsonl`."""
    if wanted is None or wanted is False:
        return None
    if wanted is True:
        return Path("stdin.dead.jsonl" if source == "-" else source + ".dead.jsonl")
    path = Path(wanted)
    if source != "-" and os.path.exists(path) and os.path.samefile(path, source):
        raise SourceError(f"{path} is the input, so it cannot take the dead letters. Choose another path")
    return path
