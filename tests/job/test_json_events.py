"""Lines of JSON as events: the first value of an attribute sets its kind, however the lines are split."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from nestream.source import SourceError
from nestream.source.json_events import JsonEvents
from nestream.source.json_table import FEWEST


def read(lines: list[str], *sizes: int, moments: set[str] | None = None) -> tuple[list[Any], list[str]]:
    """The events and the reasons of the dead letters, read in pieces of these sizes."""
    parser = JsonEvents("ts", "type", moments)
    events: list[Any] = []
    dead: list[str] = []
    at = 0
    while at < len(lines):
        size = sizes[min(at, len(sizes) - 1)] if sizes else len(lines)
        batch = parser.batch("x", [line.encode() for line in lines[at : at + size]], at + 1)
        events += [{k: v for k, v in row.items() if v is not None} for row in batch.events.to_pylist()]
        dead += [f"{letter.line}: {letter.reason}" for letter in batch.dead]
        at += size
    return events, dead


def event(n: int, **more: Any) -> str:
    return json.dumps({"ts": n, "type": "A", **more})


def test_a_value_that_does_not_fit_the_first_one_is_a_dead_letter_with_its_line() -> None:
    events, dead = read([event(1, id=1), event(2, id="x"), event(3, id=2.5), event(4, id=True)])
    assert [row["id"] for row in events] == [1, 2.5]
    assert dead == [
        "2: `id` is text, and this attribute holds numbers because an earlier value was one",
        "4: `id` is a boolean, and this attribute holds numbers because an earlier value was one",
    ]


def test_a_number_that_does_not_fit_says_why() -> None:
    huge, large = 99999999999999999999, 2**53 + 1
    events, dead = read([event(1, c=0.5), event(2, c=huge), event(3, c=large), event(4, c=7)])
    assert [row["c"] for row in events] == [0.5, 7.0]
    assert dead == [
        f"2: `c` is {huge}, which does not fit in 64 bits",
        f"3: `c` is {large}, which no float holds exactly, and this attribute holds floats because an "
        "earlier value was one",
    ]
    assert read([event(1, c=1), event(2, c=large), event(3, c=0.5)])[1] == [
        "3: `c` is 0.5, and this attribute holds integers because an earlier value was one"
    ]


def test_text_takes_any_value_as_its_json() -> None:
    events, dead = read(
        [event(1, note="x"), event(2, note=7), event(3, note={"a": [1]}), event(4, note=True)]
    )
    assert [row["note"] for row in events] == ["x", "7", '{"a":[1]}', "true"]
    assert dead == []


def test_a_line_without_time_or_type_and_one_that_is_no_object_are_dead_letters() -> None:
    lines = [
        event(1),
        '{"type": "A"}',
        '{"ts": 2}',
        "[3]",
        "nonsense",
        '{"ts": "soon", "type": "A"}',
        "",
        event(9),
    ]
    events, dead = read(lines)
    assert [row["ts"] for row in events] == [1, 9]
    assert [said.split(":")[0] for said in dead] == ["2", "3", "4", "5", "6"]
    assert "no `ts`" in dead[0]
    assert "no `type`" in dead[1]


def test_times_are_of_one_form() -> None:
    lines = [
        '{"ts": "2026-01-05T08:00:00Z", "type": "A"}',
        '{"ts": "2026-01-05T08:00:00", "type": "A"}',
        event(3),
    ]
    events, dead = read(lines)
    assert len(events) == 1
    assert len(dead) == 2
    assert "timestamps with zone" in dead[0]


def test_text_is_read_as_a_time_only_where_the_query_reads_it() -> None:
    lines = [event(1, due="2026-01-05T08:00:00Z"), event(2, due="tomorrow")]
    assert read(lines, moments=set())[1] == []
    assert "timestamps with zone" in read(lines, moments={"due"})[1][0]


@pytest.mark.parametrize("first", ['[{"ts": 1}]', "﻿[1]"])
def test_a_json_array_is_refused_at_once(first: str) -> None:
    with pytest.raises(SourceError, match="JSON array"):
        read([first])


@pytest.mark.parametrize("seed", range(20))
def test_how_lines_are_split_never_changes_the_events(seed: int) -> None:
    randomness = random.Random(seed)
    values: list[Any] = [None, 1, 2.5, "x", "2026-01-05T08:00:00", True, [1], 2**70, 2**60]
    lines = []
    for n in range(60):
        row = {
            "ts": randomness.choice([n, n, n, None, str(n), 2**70]),
            "type": randomness.choice(["A", "B", 7, ""]),
        }
        row |= {name: randomness.choice(values) for name in randomness.sample("abcd", 2)}
        lines.append(json.dumps(row))
    events, dead = read(lines, 1)
    other_events, other_dead = read(lines, *(randomness.randint(1, 7) for _ in lines))
    assert other_events == events
    assert [said.split(":")[0] for said in other_dead] == [said.split(":")[0] for said in dead]


def test_the_columns_of_a_batch_are_plain_arrow() -> None:
    batch = JsonEvents("ts", "type").batch("x", [event(1, a=1, b=1.5, c=True, d="x").encode()], 1)
    assert batch.events.schema.types == [
        pa.int64(),
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.string(),
    ]


PLAIN = {"id": "1", "float": "1.5", "flag": "true", "note": '"x"', "moment": '"2026-01-05T08:00:00Z"'}
WRITTEN = [
    *(
        "1",
        "0",
        "-0",
        "-1",
        "1.5",
        "1e3",
        "-0.0",
        "9007199254740993",
        "9223372036854775808",
        "1e400",
        "0x1",
        "01",
    ),
    *(
        "NaN",
        "-Infinity",
        "true",
        "null",
        "[1]",
        "{}",
        '{"a":1}',
        "'a'",
        '"x"',
        '""',
        '"{"',
        '"}"',
        '"a',
        '"é"',
    ),
    *('"2026-01-05T08:00:00Z"', '"2026-01-05T08:00:00.123456789Z"', '"\\n"', '"\\u0041"', '"\\ud800"'),
    *('1}{"ts":1,"type":"A"', "1}null{", "1},null", '1,"id":2'),
]
"""What may stand where a value should."""


def test_a_line_among_others_is_read_as_it_is_alone_whatever_a_value_is() -> None:
    alike = 0
    for name in (*PLAIN, "ts", "type", "other"):
        for value in WRITTEN:
            alike += _is_read_as_alone(_written(5, {**PLAIN, name: value}))
    assert alike > 20


def test_a_line_among_others_is_read_as_it_is_alone_wherever_it_is_changed() -> None:
    whole = _written(5, PLAIN)
    for at in range(len(whole)):
        for mark in ("", "{", "}", '"', "null", "\x00"):
            _is_read_as_alone(whole[:at] + mark + whole[at + 1 :])


def _is_read_as_alone(line: str) -> bool:
    """Whether the line is an event; it is read as the second of a few lines, and of many."""
    few, many = ([_written(n, PLAIN) for n in range(rows)] for rows in (3, FEWEST + 2))
    few[1] = many[1] = line
    events, dead = read(few, 1, moments={"moment"})
    found, found_dead = read(many, 1, FEWEST + 1, moments={"moment"})
    assert (found[: len(events)], found_dead) == (events, dead), line
    assert len(found) == len(many) - len(dead)
    return not dead


def _written(n: int, values: dict[str, str]) -> str:
    members = {"ts": f'"2026-01-05T08:00:{n:02}Z"', "type": '"A"', **values}
    return "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"
