"""Jobs whose rules change while they run: who is taken, who is refused, and what a restart goes on with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import nestream
from nestream.job import Checkpoint, Job, LiveRules, Progress, RuleFolder, RuleSet
from nestream.sink import first_column, open_sink
from nestream.source import open_source
from tests.job.test_jobs import rows, write

PAIR = "SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id"
QUICK = "SEQ(A a, B b, a.id = b.id, b.ts - a.ts < 3) WITHIN 10 RETURN a.id AS id"
ADDED = "SEQ(A a, B b, a.id + 1 = b.id) WITHIN 10 RETURN a.id AS id"


class Rules:
    """Rules that a test puts in place."""

    where = "a test"

    def __init__(self, **texts: str) -> None:
        self.now = RuleSet().changed(texts)

    def read(self, known: RuleSet | None) -> RuleSet:
        return self.now

    def change(self, **changes: str | None) -> None:
        self.now = self.now.changed(changes)


def start(parsed: nestream.Queries, **handlers: Any) -> Any:
    return parsed.stream(**handlers)


def run(folder: Path, rules: Rules | RuleFolder, stop: Event | None = None) -> Progress:
    """Run a job over what is there, or until it is stopped, from the checkpoint of the folder."""
    live = LiveRules(rules, nestream.queries, start)
    job = Job(
        live.start,
        open_source(str(folder / "in.jsonl"), once=stop is None),
        open_sink(str(folder / "out.jsonl")),
        aside=open_sink(str(folder / "aside.jsonl"), encode=first_column),
        checkpoint=Checkpoint(folder / "checkpoint"),
        rules=live,
    )
    return job.run(stop or Event())


def found(folder: Path) -> list[tuple[str, int, str]]:
    return [(row["query"], row["version"], row["values"]["id"]) for row in rows(folder / "out.jsonl")]


def test_each_match_names_the_version_of_its_rule(tmp_path: Path) -> None:
    rules = Rules(pair=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    run(tmp_path, rules)
    rules.change(quick=QUICK)
    write(tmp_path / "in.jsonl", (3, "B", 7))
    run(tmp_path, rules)
    rules.change(pair=PAIR.replace("10", "20"))
    write(tmp_path / "in.jsonl", (4, "A", 8), (5, "B", 8))
    progress = run(tmp_path, rules)
    assert found(tmp_path) == [
        ("pair", 1, "7"),
        ("pair", 1, "7"),
        ("quick", 2, "7"),
        ("pair", 3, "8"),
        ("quick", 2, "8"),
    ]
    assert (progress.version, progress.rules) == (3, {"pair": 3, "quick": 2})
    assert progress.seconds_by_rule.keys() == {"pair", "quick"}
    assert min(progress.seconds_by_rule.values()) > 0
    assert [(one["version"], one["joined"], one["events"]) for one in progress.changes] == [
        (2, {"quick": -8}, 2),
        (3, {"pair": -7}, 3),
    ]


def test_a_rule_that_does_not_bind_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    rules = Rules(pair=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path, rules)
    rules.change(
        pair="SEQ(A a", quick=QUICK, text="SEQ(A a, B b, a.id = 'x') WITHIN 5", some=f"{PAIR} LIMIT 1"
    )
    write(tmp_path / "in.jsonl", (2, "B", 7))
    progress = run(tmp_path, rules)
    assert found(tmp_path) == [("pair", 1, "7"), ("quick", 2, "7")]
    assert sorted(progress.refused) == ["pair", "some", "text"]
    assert "LIMIT" in progress.refused["some"]
    aside = [row for row in rows(tmp_path / "aside.jsonl") if "rule" in row]
    assert sorted(row["rule"] for row in aside) == ["pair", "some", "text"]
    assert run(tmp_path, rules).refused == progress.refused  # and is not tried again before it changes
    assert len(rows(tmp_path / "aside.jsonl")) == len(aside)
    rules.change(pair=QUICK, text=None, some=PAIR)
    assert run(tmp_path, rules).refused == {}


def test_a_rule_that_breaks_nestream_itself_stops_no_other(tmp_path: Path) -> None:
    def bind(texts: Mapping[str, str]) -> nestream.Queries:
        if any("B2" in text for text in texts.values()):
            raise KeyError("a defect")
        return nestream.queries(texts)

    rules = Rules(pair=PAIR)
    live = LiveRules(rules, bind, start)
    live.begin(None)
    stream = live.start(late=None, dead_letter=None)
    rules.change(a=QUICK, b=PAIR.replace("B b", "B2 b"), c=PAIR, d=PAIR, pair=None)
    change = live.look(stream)
    assert change is not None
    assert change.refused == {"b": "internal error: KeyError('a defect')"}
    assert sorted(live.running.rules) == ["a", "c", "d"]
    assert live.look(stream) is None


def test_a_folder_without_rules_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "pair.neel").write_text(PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path, RuleFolder(folder))
    (folder / "pair.neel").unlink()
    write(tmp_path / "in.jsonl", (2, "B", 7))
    progress = run(tmp_path, RuleFolder(folder))
    assert found(tmp_path) == [("pair", 1, "7")]
    assert "no .neel file" in (progress.rules_problem or "")


def test_a_rule_that_events_do_not_fit_is_suspended_and_the_others_go_on(tmp_path: Path) -> None:
    rules = Rules(pair=PAIR, speed="SEQ(A a, B b, a.speed + 1 > 3) WITHIN 10 RETURN a.id AS id")
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    run(tmp_path, rules)
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write('{"ts": 3, "type": "A", "id": 8, "speed": "fast"}\n{"ts": 4, "type": "B", "id": 8}\n')
    progress = run(tmp_path, rules)
    assert found(tmp_path) == [("pair", 1, "7"), ("pair", 1, "8")]
    assert list(progress.refused) == ["speed"]
    assert progress.malformed == 0
    assert progress.changes[-1]["left"] == ["speed"]
    write(tmp_path / "in.jsonl", (5, "B", 8))
    assert run(tmp_path, rules).refused == progress.refused
    assert len(found(tmp_path)) == 3
    rules.change(speed="SEQ(A a, B b, a.speed = 'fast') WITHIN 10 RETURN a.id AS id")
    write(tmp_path / "in.jsonl", (6, "B", 8))
    assert run(tmp_path, rules).refused == {}


def test_a_running_job_takes_changes_by_hand_and_by_command(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "pair.neel").write_text(PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    stop = Event()
    ended: list[Progress] = []
    thread = Thread(target=lambda: ended.append(run(tmp_path, RuleFolder(folder), stop)))
    thread.start()
    try:
        wait_for(tmp_path, lambda told: told["matches"] == 1, thread)
        RuleFolder(folder).change("add quick", lambda known: {"quick": QUICK}, lambda texts, changes: None)
        wait_for(tmp_path, lambda told: told["version"] == 2, thread)
        write(tmp_path / "in.jsonl", (3, "B", 7))
        wait_for(tmp_path, lambda told: told["matches"] == 3, thread)
        (folder / "pair.neel").unlink()
        wait_for(tmp_path, lambda told: told["version"] == 3, thread)
        write(tmp_path / "in.jsonl", (3, "B", 7))
        wait_for(tmp_path, lambda told: told["matches"] == 4, thread)
    finally:
        stop.set()
        thread.join()
    assert found(tmp_path) == [("pair", 1, "7"), ("pair", 1, "7"), ("quick", 2, "7"), ("quick", 2, "7")]
    assert [one.what for one in RuleFolder(folder).history()] == ["found", "add quick", "edited by hand"]


def wait_for(folder: Path, reached: Callable[[dict[str, Any]], bool], thread: Thread) -> None:
    path = folder / "checkpoint" / "progress.json"
    while not path.exists() or not reached(json.loads(path.read_text())):
        assert thread.is_alive()
        thread.join(0.02)


def test_a_change_is_a_checkpoint(tmp_path: Path) -> None:
    """A job that dies right after a change goes on with the changed rules."""
    rules = Rules(pair=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    run(tmp_path, rules)
    rules.change(quick=QUICK)
    stop = Event()

    class Dying(Rules):
        def read(self, known: RuleSet | None) -> RuleSet:
            if known is not None and known.version == 2:
                raise KeyboardInterrupt
            return self.now

    dying = Dying()
    dying.now = rules.now
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, dying, stop)
    write(tmp_path / "in.jsonl", (3, "B", 7))
    unread = Rules()
    unread.now = rules.now
    assert run(tmp_path, unread).version == 2
    assert found(tmp_path) == [("pair", 1, "7"), ("pair", 1, "7"), ("quick", 2, "7")]
