"""Checkpoints in places that cannot be locked: a lease that is renewed keeps other jobs away."""

from __future__ import annotations

from pathlib import Path

import pytest

import nestream
from nestream.runtime.spark.stream_commit import Commit, Commits
from nestream.runtime.spark.stream_lease import FILE, Lease
from nestream.runtime.spark.stream_place import Place

INTERVAL = 0.05


class Store(Place):
    """A folder that is used as an object store is: without locks."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.is_local = False


def test_a_second_job_is_refused_while_the_first_renews_its_lease_and_then_not(tmp_path: Path) -> None:
    first = Lease(Store(str(tmp_path)), INTERVAL)
    with pytest.raises(nestream.EventError, match=r"another job \(process \d+ on .*\) uses the checkpoint"):
        Lease(Store(str(tmp_path)), INTERVAL)
    first.check()
    first.close()
    assert not (tmp_path / FILE).exists()
    Lease(Store(str(tmp_path)), INTERVAL).close()


def test_the_lease_of_a_job_that_died_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"holder": "x", "host": "elsewhere", "process": 1, "number": 7}')
    lease = Lease(Store(str(tmp_path)), INTERVAL)
    lease.check()
    lease.close()


def test_a_job_whose_lease_was_taken_commits_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nestream.runtime.spark.stream_commit.Place", Store)
    commits = Commits(str(tmp_path))
    commits.add(Commit(0, "q", "j", (0,)), None)
    (tmp_path / FILE).write_text('{"holder": "x", "host": "elsewhere", "process": 1, "number": 1}')
    with pytest.raises(nestream.EventError, match=r"another job \(process 1 on elsewhere\)"):
        commits.add(Commit(1, "q", "j", (0,)), None)
    commits.close()
    assert (tmp_path / FILE).exists(), "it is the other's"
    assert [path.name for path in (tmp_path / "nestream").iterdir()] == ["commit-0000000000"]
