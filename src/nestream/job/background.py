"""Runs work beside the events: writing a checkpoint may take long, and events do not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


class Background:
    """One piece of work in its own thread. `wait` raises its errors."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._problem: BaseException | None = None
        self._thread = Thread(target=self._run, name="nestream checkpoint", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as problem:
            self._problem = problem

    @property
    def is_done(self) -> bool:
        """Whether the work has ended, successfully or not."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Wait for the end of the work, ignoring errors."""
        self._thread.join()

    def wait(self) -> None:
        """Wait for the end of the work, and raise its error."""
        self.end()
        if self._problem is not None:
            raise self._problem
