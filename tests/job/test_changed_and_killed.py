"""A job whose rules change while it is killed again and again: each rule emits what it has to, once."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import nestream
from nestream.job import RuleFolder, RuleSet
from nestream.job.rules import Rule
from tests.job.feed import LATENESS, ending, random_events
from tests.job.test_kills import Killed, _feed_slowly, feed_file

Match = tuple[str, int, int, int]
"""The rule, its version, and the numbers of the first and the last event."""
SHAPES = (
    "SEQ(A a, B b, a.id = b.id) WITHIN {}",
    "SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN {}",
    "SEQ(A a, C b, !(B c, c.id = a.id), a.id = b.id) WITHIN {}",
)


def random_rule(randomness: random.Random, unit: str = "") -> str:
    shape = randomness.choice(SHAPES).format(f"{randomness.choice([20, 40])}{unit}")
    return f"{shape} RETURN a.n AS first, b.n AS last\n"


def change(folder: Path, randomness: random.Random, unit: str = "") -> None:
    """Add, replace or remove a rule, by command or by hand."""
    name, rules = randomness.choice("pqr"), RuleFolder(folder)
    texts: dict[str, str | None] = {name: random_rule(randomness, unit)}
    if name in rules.read(None).rules and len(rules.read(None).rules) > 1 and randomness.random() < 0.3:
        texts = {name: None}
    if randomness.random() < 0.3 and texts[name] is not None:
        (folder / f".{name}").write_text(str(texts[name]))
        (folder / f".{name}").rename(folder / f"{name}.neel")
    else:
        rules.change("change", lambda known: texts, lambda new, changed: None)


def written(sink: Path) -> Counter[Match]:
    """The matches of a file; a line that is being written is none yet."""
    whole = sink.read_bytes().split(b"\n")[:-1] if sink.exists() else []
    rows = [json.loads(line) for line in whole]
    return Counter(
        (row["query"], row["version"], int(row["values"]["first"]), int(row["values"]["last"]))
        for row in rows
    )


def expected(
    changes: list[dict[str, Any]], sets: dict[int, RuleSet], events: list[Any], lateness: Any = LATENESS
) -> Counter[Match]:
    """What each rule has to emit from the change that brought it to the one that took it away."""
    found: Counter[Match] = Counter()
    running: dict[str, tuple[Rule, int, Any]] = {
        name: (rule, 0, None) for name, rule in sets[1].rules.items()
    }
    for one in [*changes, {"joined": {}, "left": list(sets[max(sets)].rules), "events": None}]:
        for name in [*one["joined"], *one["left"]]:
            if name in running:
                found += alone(name, *running.pop(name), one["events"], events, lateness)
        for name, since in one["joined"].items():
            moment = datetime.fromisoformat(since) if isinstance(since, str) else since
            running[name] = sets[one["version"]].rules[name], one["events"], moment
    assert not running
    return found


def alone(
    name: str, rule: Rule, first: int, since: Any, end: int | None, events: list[Any], lateness: Any
) -> Counter[Match]:
    """What a rule has to emit between two events."""
    stream = nestream.query(rule.text).stream(lateness=lateness)
    seen = [event if since is None or event["ts"] >= since else {**event, "type": "none"} for event in events]
    for event in seen[:first]:
        stream.push(event)
    matches = [match for event in seen[first:end] for match in stream.push(event)]
    return Counter((name, rule.version, match["first"], match["last"]) for match in matches)


def survive(tmp_path: Path, seed: int, kills: int) -> None:
    """Feed a job, change its rules, kill it, again and again; compare with what its log of changes says."""
    randomness = random.Random(seed)
    events = random_events(seed, 1000 * (kills + 1))
    source, sink, rules = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "rules"
    rules.mkdir()
    for name in "pq":
        (rules / f"{name}.neel").write_text(random_rule(randomness))
    lines = [json.dumps(event).encode() + b"\n" for event in events]
    feed_file(source, lines.pop(0))
    job = Killed(source, sink, tmp_path, rules=rules)
    share = len(lines) // (kills + 1)
    for _ in range(kills):
        before = job.told()
        job.start(interval=randomness.choice([0.01, 0.3, 2]))
        job.wait_for_change(job.told, before)
        some, lines = lines[:share], lines[share:]
        feeder = Thread(target=_feed_slowly, args=[feed_file, source, some, randomness.random(), False])
        feeder.start()
        change(rules, randomness)
        if randomness.random() < 0.7:  # the others are killed before they have looked, or while they do
            version = RuleFolder(rules).read(None).version
            job.wait_for(partial(_has_version, job, version))
        time.sleep(randomness.choice([0, 0, 0.01, 0.2]))
        job.kill()
        feeder.join()
    job.start(interval=0.01)
    events.append(ending(events))
    feed_file(source, b"".join([*lines, json.dumps(events[-1]).encode() + b"\n"]))
    version = RuleFolder(rules).read(None).version
    job.wait_for(lambda: _version(job) == version and json.loads(job.told())["events"] == len(events))
    job.stop()
    told = json.loads(job.told())
    history = RuleFolder(rules)
    sets = {one.version: history.at(one.version) for one in history.history()}
    wanted = expected(told["changes"], sets, events)
    assert written(sink) == wanted
    assert sum(wanted.values()) > 50 * kills
    assert len(told["changes"]) >= kills // 2


def _has_version(job: Killed, version: int) -> bool:
    return _version(job) >= version


def _version(job: Killed) -> int:
    told = job.told()
    return json.loads(told)["version"] if told else 0


def test_rules_that_change_while_a_job_is_killed_emit_every_match_once(tmp_path: Path) -> None:
    survive(tmp_path, 1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_twenty_changes_and_twenty_kills_lose_nothing_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    survive(tmp_path, seed, 20)
