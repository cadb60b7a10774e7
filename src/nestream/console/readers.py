"""Threads that read whole sinks, for exports and for matches that are no longer held.

A sink may take minutes to read. These threads are few and have no other work, so live updates never wait for
them, and a request beyond a limit is refused instead of queued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from nestream.console.pool import RunError

THREADS = 2
MOST_WAITING = 8

P = ParamSpec("P")
T = TypeVar("T")


class Readers:
    """Runs functions that read a sink, a few at a time."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "nestream sink")
        self._lock = Lock()
        self._number = 0
        """How many functions run or wait. One that nobody waits for any more still counts."""

    async def run(self, read: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """What the function returns; raises `RunError` if too many are waiting."""
        with self._lock:
            if self._number >= THREADS + MOST_WAITING:
                raise RunError("Too many exports and searches are waiting; try again in a moment.")
            self._number += 1
        future = self._threads.submit(read, *given, **named)
        future.add_done_callback(self._ended)
        return await asyncio.wrap_future(future)

    def _ended(self, _: Future[Any]) -> None:
        with self._lock:
            self._number -= 1

    def close(self) -> None:
        """Start nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
