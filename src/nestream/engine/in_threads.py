"""Work on several things at a time, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def in_threads(make: Callable[[_Given], _Made], given: Iterator[_Given], threads: int) -> Iterator[_Made]:
    """What is made of each thing given, in order; by several threads where there is enough to do.

    At most two things a thread are made ahead of what was taken.
    """
    first = list(_next(given, 2 if threads > 1 else 0))
    if len(first) < 2:
        yield from map(make, first)
        yield from map(make, given)
        return
    with ThreadPoolExecutor(threads, "nestream") as pool:
        ahead: deque[Future[_Made]] = deque(pool.submit(make, one) for one in first)
        try:
            while ahead:
                ahead.extend(pool.submit(make, one) for one in _next(given, 2 * threads - len(ahead)))
                yield ahead.popleft().result()
        finally:  # what is no longer wanted is not begun
            for one in ahead:
                one.cancel()


def _next(given: Iterator[_Given], count: int) -> Iterator[_Given]:
    for _ in range(count):
        for one in given:
            yield one
            break
