"""`nestream stream --progress FILE`: writes a line of JSON for each micro-batch of a stream, or each second.

`docs/reference/cli.md` and `docs/guides/streams.md` explain what is in a line.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import typer

from nestream.job import Progress
from nestream.sink.stream_sinks import cannot_write

TOTALS = ("events", "matches", "late", "malformed")
OTHERS = (
    "written",
    "state",
    "busy",
    "batch_seconds",
    "state_rows",
    "by_rule",
    "seconds_by_rule",
    "version",
    "rules",
    "refused",
)
_TAIL = 4096
"""How many bytes at the end of a file are searched for its last line."""


def progress_path(name: str) -> Path:
    """The file, checked before the stream is started."""
    path = Path(name)
    if path.is_dir():
        raise typer.BadParameter(f"{name!r} is a folder.", param_hint="--progress")
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(path.parent)!r}.", param_hint="--progress")
    return path


class ProgressFile:
    """Appends a line for each micro-batch, and continues from the totals of the last one.

    With `counts_on`, the stream itself counts since its first start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts_on = False
        self._before, whole = _last_totals(path)
        self._open_line = "" if whole else "\n"  # a truncated line must not spoil the next

    def __call__(self, progress: Progress) -> None:
        """Write the progress of the stream."""
        watermark = progress.watermark
        before = dict.fromkeys(TOTALS, 0) if self.counts_on else self._before
        line = {
            "batch": progress.batch,
            "at": None if progress.at is None else progress.at.isoformat(),
            **{name: before[name] + getattr(progress, name) for name in TOTALS},
            "watermark": watermark.isoformat() if isinstance(watermark, datetime) else watermark,
            "lag": progress.lag,
            "state_bytes": progress.state_bytes,
            "rate": round(progress.rate, 3),
            "leaves": None,
        }
        line |= {name: value for name, value in progress.json().items() if name in OTHERS}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{self._open_line}{json.dumps(line)}\n")
        except OSError as error:
            raise cannot_write(str(self.path), error) from error
        self._open_line = ""


def _last_totals(path: Path) -> tuple[dict[str, int], bool]:
    """The totals of the last whole line, zeros if there is none; and whether the file ends with it."""
    nothing = dict.fromkeys(TOTALS, 0)
    if not path.exists():
        return nothing, True
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        text = file.read().decode("utf-8", errors="replace")
    lines, whole = text.splitlines(), text.endswith("\n") or not text
    for line in reversed(lines):
        try:
            read = json.loads(line)
            return {name: int(read[name]) for name in TOTALS}, whole
        except (ValueError, KeyError, TypeError):  # cut off, or not written by us
            continue
    return nothing, whole
