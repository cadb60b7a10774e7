"""Runs work beside the events: disks and brokers may take long, and events do not wait for them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


class Background:
    """One piece of work in its own thread. `check` raises its error."""

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

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the work, ignoring errors; False if it takes longer."""
        self._thread.join(seconds)
        return self.is_done

    def check(self) -> None:
        """Raise the error of the work."""
        if self._problem is not None:
            raise self._problem
