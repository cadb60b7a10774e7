"""Runs a function on several items at a time, and yields the results in order."""

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
_AHEAD = 6
"""How many results of one item may be made before they are taken: more than a time slice mostly has."""
_END = object()


def in_threads(
    make: Callable[[_Given], Iterable[_Made]], given: Iterator[_Given], threads: int
) -> Generator[_Made, None, None]:
    """Yield all results of each item in order, using several threads where there are several items.

    Memory stays bounded: at most two items per thread are in progress, and a thread waits when it is too far
    ahead.
    """
    first = list(islice(given, 2 if threads > 1 else 0))
    given = chain(first, given)
    if len(first) < 2:
        for one in given:
            yield from make(one)
        return
    tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
    # The program may end while results are pending: it does not wait for threads that wait for a reader.
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
    finally:  # what nobody reads any more ends at its next result
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
    """The results of one item, made by one thread and taken by another."""

    def __init__(self) -> None:
        self._made: SimpleQueue[Any] = SimpleQueue()
        self._room = Semaphore(_AHEAD)
        self._wanted = True
        self._problem: BaseException | None = None

    def fill(self, make: Callable[[_Given], Iterable[_Made]], one: _Given) -> None:
        """Make the results as long as there is room for them."""
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
        """Let the thread finish without making more results."""
        self._wanted = False
        self._room.release()
