"""Work on what an iterator gives while it looks for more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def in_threads(make: Callable[[_Given], _Made], given: Iterator[_Given], threads: int) -> Iterator[_Made]:
    """What is made of each thing given, in order; by other threads where there are some and there is enough.

    At most two things a thread are made ahead of what was taken.
    """
    first = next(given, None)
    if first is None:
        return
    second = next(given, None) if threads > 1 else None
    if second is None:
        yield make(first)
        yield from map(make, given)
        return
    with ThreadPoolExecutor(threads - 1, "nestream") as pool:
        ahead: deque[Future[_Made]] = deque((pool.submit(make, first), pool.submit(make, second)))
        for more in given:
            if len(ahead) >= 2 * threads:
                yield ahead.popleft().result()
            ahead.append(pool.submit(make, more))
        while ahead:
            yield ahead.popleft().result()
