"""Work on several things at a time, in order."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, TypeVar

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_AHEAD = 8
"""How many results of one thing are made before they are taken."""
_END = object()


def in_threads(
    make: Callable[[_Given], Iterable[_Made]], given: Iterator[_Given], threads: int
) -> Generator[_Made, None, None]:
    """All that is made of each thing given, in order; by several threads where there are several things.

    Memory stays bounded: at most two things a thread are begun, and a thread waits when it is too far ahead.
    """
    first = list(islice(given, 2 if threads > 1 else 0))
    given = chain(first, given)
    if len(first) < 2:
        for one in given:
            yield from make(one)
        return
    tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
    # A program may end while results are still to be taken: it does not wait for threads that wait for that.
    workers = [Thread(target=_work, args=[tasks], name="nestream", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    begun: deque[_Results[_Made]] = deque()
    try:
        while True:
            for one in islice(given, 2 * threads - len(begun)):
                begun.append(_Results())
                tasks.put(partial(begun[-1].fill, make, one))
            if not begun:
                return
            yield from begun[0]
            begun.popleft()
    finally:  # what is no longer wanted ends at its next result
        for results in begun:
            results.abandon()
        for _ in workers:
            tasks.put(None)
        if not sys.is_finalizing():
            for worker in workers:
                worker.join()


def _work(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := tasks.get()) is not None:
        task()


class _Results(Iterable[_Made]):
    """What a thread makes of one thing, for another to take."""

    def __init__(self) -> None:
        self._made: SimpleQueue[Any] = SimpleQueue()
        self._room = Semaphore(_AHEAD)
        self._wanted = True
        self._problem: BaseException | None = None

    def fill(self, make: Callable[[_Given], Iterable[_Made]], one: _Given) -> None:
        """Make the results, while there is room for them."""
        try:
            if self._wanted:
                for made in make(one):
                    self._room.acquire()
                    if not self._wanted:
                        break
                    self._made.put(made)
        except BaseException as problem:  # raised again where the results are taken
            self._problem = problem
        self._made.put(_END)

    def __iter__(self) -> Iterator[_Made]:
        while (made := self._made.get()) is not _END:
            self._room.release()
            yield made
        if self._problem is not None:
            raise self._problem

    def abandon(self) -> None:
        """Let the thread go on to its end without making more."""
        self._wanted = False
        self._room.release()
