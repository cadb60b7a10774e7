"""A driver with rules in a process of its own, which dies while it changes them if a file says so."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import nestream
from nestream.job import LiveRules, RuleFolder
from nestream.queries import stream_rules
from nestream.runtime.spark.stream_commit import Commits
from nestream.runtime.spark.stream_job import StreamJob
from tests.spark.stream.driver import session
from tests.spark.stream.streams import wait_for_end

PLACES = ("decided", "changed", "committed")
"""Before the buckets change, after they have and before the commit, and right after that."""


def prepare_to_die(path: Path) -> None:
    """Kill this process with all that it has started, once, at the place that the file names."""
    place = path.read_text() if path.exists() else ""

    def die(here: str) -> None:
        if here == place and path.exists():
            path.unlink()
            os.killpg(os.getpgid(0), signal.SIGKILL)

    results, add = StreamJob._results, Commits.add

    def dying_results(self: StreamJob, packs: Any, order: Any) -> Any:
        if order.change is not None:
            die("decided")
        return results(self, packs, order)

    def dying_add(self: Commits, commit: Any, before: Any) -> None:
        is_change = before is not None and before.number == commit.number
        if is_change:
            die("changed")
        add(self, commit, before)
        if is_change:
            die("committed")

    StreamJob._results, Commits.add = dying_results, dying_add  # type: ignore[method-assign]


def main(path: str, *, once: bool) -> None:
    """Run over the files of the folder with its rules: those that are there, or for as long as it lives."""
    place = Path(path)
    prepare_to_die(place / "die")
    running = stream_rules(
        LiveRules(RuleFolder(place / "rules", noted=True), nestream.queries, lambda parsed: parsed),
        session("local[2]"),
        str(place / "in"),
        str(place / "out"),
        checkpoint=str(place / "check"),
        late=str(place / "late"),
        watermark="5 seconds",
        files=1,
        once=once,
    )
    if once:
        wait_for_end(running)
    else:
        while not running.wait(60):
            pass


if __name__ == "__main__":
    main(sys.argv[1], once=sys.argv[2] == "once")
