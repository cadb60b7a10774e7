"""The status of `nestream stream`: a live line on a terminal, and a summary at the end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Event
from typing import Any

from nestream.cli.terminal import count, is_terminal, note
from nestream.model.counting import rough_duration


@contextmanager
def interruption(*more: signal.Signals) -> Iterator[Event]:
    """Treat Ctrl-C, and `more` signals, as a request to stop; the second one ends the command at once.

    An exception in the middle of a call to Spark would break the connection, and in the middle of a
    checkpoint it would lose the work since the last one.
    """
    wished = Event()

    def interrupt(*_: Any) -> None:
        if wished.is_set():
            raise KeyboardInterrupt
        wished.set()

    before = {one: signal.signal(one, interrupt) for one in (signal.SIGINT, *more)}
    try:
        yield wished
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def live(progress: Any) -> str:
    """The progress of a stream, on one line."""
    parts = [
        count(progress.events, "event"),
        count(progress.matches, "match", "matches"),
        f"{progress.rate:,.0f} events/s",
    ]
    if progress.watermark is not None:
        parts.append(f"watermark {_moment(progress.watermark)}")
        if progress.lag is not None:
            parts.append(f"lag {rough_duration(progress.lag)}")
    parts.append(f"state {_size(progress.state_bytes)}")
    if progress.late:
        parts.append(f"{progress.late:,} late")
    if progress.malformed:
        parts.append(count(progress.malformed, "dead letter"))
    if progress.future:
        parts.append(f"{progress.future:,} in the future")
    if refused := getattr(progress, "refused", None):  # a stream on Spark has none
        parts.append(f"{count(len(refused), 'rule')} refused")
    return ", ".join(parts)


def summary(progress: Any) -> str:
    """What a stream did since its first start, on one line; micro-batches are those of this run."""
    parts = [
        count(progress.events, "event"),
        count(progress.matches, "match", "matches"),
        f"{progress.late:,} late",
        count(progress.malformed, "dead letter"),
        *([f"{progress.future:,} in the future"] if progress.future else []),
        f"{count(progress.batches, 'micro-batch', 'micro-batches')} in this run",
    ]
    if progress.watermark is not None:
        zone = " UTC" if isinstance(progress.watermark, datetime) else ""
        parts.append(f"watermark {_moment(progress.watermark)}{zone}")
    return ", ".join([*parts, f"state {_size(progress.state_bytes)}"])


def events_left_out(progress: Any) -> dict[str, str]:
    """How many events took no part in the matching, for each kind that there is."""
    told = {
        "late": count(progress.late, "late event"),
        "malformed": count(progress.malformed, "dead letter"),
        "future": f"{count(progress.future, 'event')} in the future",
    }
    return {kind: said for kind, said in told.items() if getattr(progress, kind)}


def note_pending(progress: Any) -> None:
    """Report how many matches are pending at the end of the input."""
    if progress.pending:
        waiting = count(progress.pending, "match", "matches")
        note(
            f"{waiting} pending: later events may still undo or decide them; "
            "--flush emits them, if no more events will come"
        )


def _moment(watermark: datetime | int) -> str:
    return f"{watermark:%Y-%m-%d %H:%M:%S}" if isinstance(watermark, datetime) else f"{watermark:,}"


def _size(count: int) -> str:
    for size, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= size:
            return f"{count / size:,.1f} {name}"
    return f"{count} B"


class StatusLine:
    """The last line of a terminal, which stays below what is printed; does nothing without a terminal."""

    def __init__(self) -> None:
        self._is_shown = is_terminal(error=True)
        self._text = ""
        self.is_old = False
        """Whether something was printed in place of the line, which is shown when it is up to date."""

    def show(self, text: str) -> None:
        """Replace the line."""
        self.is_old = False
        if self._is_shown:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            self._text = text if len(text) < width else text[: width - 2] + "…"
            sys.stderr.write(f"\r\x1b[K{self._text}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line, because something else is printed."""
        if self._is_shown and self._text:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def again(self) -> None:
        """Show the line again, below what was printed."""
        if self._is_shown and self._text and not self.is_old:
            sys.stderr.write(self._text)
            sys.stderr.flush()
