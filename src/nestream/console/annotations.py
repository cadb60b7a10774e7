"""What people say about matches: acknowledged, a false alarm, comments. It is kept in a file beside the job.

`annotations.jsonl` has a line for each annotation, with the identity of the match; lines are never changed.
Several consoles may append to it, and each reads what the others wrote.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

FILE = "annotations.jsonl"
STATUSES = ("acknowledged", "false alarm")
LONGEST_COMMENT = 2_000
MOST_COMMENTS = 20
"""How many of the last comments on a match are shown; the file has all."""
MOST_MATCHES = 100_000
PIECE = 4 << 20


class Annotations:
    """The annotations of the matches of a job, by the identity of the match."""

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / FILE
        self.of: dict[str, dict[str, Any]] = {}
        self.damaged = self.left_out = 0
        """How many lines of the file could not be read, or were about too many other matches."""
        self._read = 0
        self._lock = Lock()

    @property
    def problem(self) -> str | None:
        """What is wrong with the file, in words."""
        said = []
        if self.damaged:
            said.append(f"{_lines(self.damaged)} of {FILE} cannot be read, and the others count")
        if self.left_out:
            said.append(f"{_lines(self.left_out)} of {FILE} left out: {MOST_MATCHES:,} matches are held")
        return "; ".join(said) or None

    def look(self) -> dict[str, dict[str, Any]]:
        """Read what is new in the file; return the matches it is about, with all their annotations."""
        if self.path is None:
            return {}
        with self._lock:
            changed: dict[str, None] = {}
            while piece := self._piece():
                changed |= dict.fromkeys(self._take(piece))
            return {match: self.of[match] for match in changed if match in self.of}

    def _piece(self) -> bytes:
        """The next whole lines."""
        assert self.path is not None
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self._read:  # it was replaced by a shorter one
                    self._read, self.of, self.damaged, self.left_out = 0, {}, 0, 0
                file.seek(self._read)
                piece = file.read(PIECE)
        except FileNotFoundError:
            return b""
        whole = piece[: piece.rfind(b"\n") + 1] if len(piece) < PIECE or b"\n" in piece else piece
        self._read += len(whole)
        return whole

    def _take(self, piece: bytes) -> Iterable[str]:
        for line in piece.splitlines():
            try:
                said = json.loads(line)
                match, at = said["match"], said["at"]
                status, comment = said.get("status"), said.get("comment")
                if not isinstance(match, str):
                    raise TypeError
            except (ValueError, KeyError, TypeError, RecursionError):
                self.damaged += bool(line.strip())
                continue
            if match not in self.of and len(self.of) >= MOST_MATCHES:
                self.left_out += 1
                continue
            known = self.of.get(match, {"status": None, "at": None, "comments": []})
            if "status" in said:
                known = {**known, "status": status if status in STATUSES else None, "at": at}
            if isinstance(comment, str) and comment:
                told = {"at": at, "text": comment[:LONGEST_COMMENT]}
                known = {**known, "comments": [*known["comments"], told][-MOST_COMMENTS:]}
            self.of[match] = known
            yield match

    def add(self, match: dict[str, Any], **said: str | None) -> None:
        """Annotate a match: its `status`, None to undo that, or a `comment`."""
        assert self.path is not None
        about = {"rule": match["query"], "start": match["start"], "end": match["end"]}
        at = datetime.now(UTC).isoformat(timespec="seconds")
        line = json.dumps({"match": match["id"], "at": at, **said, **about}, ensure_ascii=False)
        with self.path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            cut_off = file.seek(0, 2) > 0 and _last_byte(file) != b"\n"
            file.write((b"\n" if cut_off else b"") + line.encode(errors="replace") + b"\n")

    def among(self, matches: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The annotations of some matches."""
        return {match["id"]: self.of[match["id"]] for match in matches if match["id"] in self.of}


def _lines(number: int) -> str:
    return "one line" if number == 1 else f"{number:,} lines"


def _last_byte(file: Any) -> bytes:
    file.seek(-1, 2)
    last: bytes = file.read(1)
    return last
