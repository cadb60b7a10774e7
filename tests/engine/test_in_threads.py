"""Tests of the work on several things at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import count, islice
from threading import Barrier, Event

import pytest

from nestream.engine.in_threads import in_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_what_they_are_made_of(threads: int) -> None:
    found = in_threads(lambda one: (one * 10 + place for place in range(one)), iter(range(30)), threads)
    assert list(found) == [one * 10 + place for one in range(30) for place in range(one)]


def test_two_threads_work_at_the_same_time() -> None:
    both = Barrier(2, timeout=60)
    assert list(in_threads(lambda one: (both.wait() >= 0,), iter(range(2)), 2)) == [True, True]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_problem_is_raised_after_the_results_before_it(threads: int) -> None:
    def make(one: int) -> Iterator[int]:
        yield one
        if one == 3:
            raise LookupError("three")

    found = in_threads(make, iter(range(9)), threads)
    assert list(islice(found, 4)) == [0, 1, 2, 3]
    with pytest.raises(LookupError, match="three"):
        next(found)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_is_made_than_is_taken_and_a_little_ahead(threads: int) -> None:
    made = []

    def make(one: int) -> Iterator[int]:
        for place in count():
            made.append((one, place))
            yield place

    found = in_threads(make, count(), threads)
    assert list(islice(found, 5)) == [0, 1, 2, 3, 4]
    found.close()
    assert len(made) < 100 * threads


def test_what_is_no_longer_wanted_is_not_begun() -> None:
    begun, go_on = [], Event()

    def make(one: int) -> Iterator[int]:
        begun.append(one)
        yield one
        assert go_on.wait(60)

    found = in_threads(make, count(), 2)
    assert next(found) == 0
    go_on.set()
    found.close()
    assert len(begun) <= 4


UNFINISHED = """
from itertools import count
from nestream.engine.in_threads import in_threads
found = in_threads(lambda one: count(), count(), 2)
print(next(found), next(found))
"""


def test_a_program_ends_while_results_are_still_to_be_taken() -> None:
    done = subprocess.run([sys.executable, "-c", UNFINISHED], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 1\n", "")
