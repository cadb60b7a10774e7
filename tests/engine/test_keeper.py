"""KEEP on streams: when a match leaves, what is held and forgotten, and what is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.engine.operators.prepared_chain import PreparedChain

SCHEMA = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])


def event(ts: int, type: str, id: int = 0) -> dict[str, Any]:
    """An event."""
    return {"ts": ts, "type": type, "id": id}


def ends(matches: list[dict[str, Any]]) -> list[int]:
    """When the matches end."""
    return [match["match_end"] for match in matches]


def test_the_first_match_leaves_when_the_time_of_its_end_has_passed() -> None:
    stream = nestream.query("SEQ(A a, B b) WITHIN 5 KEEP FIRST PER a").stream(schema=SCHEMA)
    assert not stream.push(event(1, "A"))
    assert not stream.push(event(2, "B"))
    assert ends(stream.push(event(3, "B"))) == [2]
    assert not stream.finish()


def test_the_last_match_leaves_when_the_window_of_its_event_has_passed() -> None:
    stream = nestream.query("SEQ(A a, B b) WITHIN 5 KEEP LAST PER a").stream(schema=SCHEMA)
    for each in (event(1, "A"), event(2, "B"), event(4, "B"), event(6, "C")):
        assert not stream.push(each)
    assert ends(stream.push(event(7, "Z"))) == [4]


def test_what_was_kept_is_forgotten_with_the_window_or_the_duration() -> None:
    for clause in ("KEEP FIRST PER a", "KEEP DISJOINT PER b.id", "KEEP FIRST PER b.id EVERY 20"):
        query = nestream.query(f"SEQ(A a, B b) WITHIN 5 {clause}")
        stream = query.stream(schema=SCHEMA)
        for round in range(200):
            for each in (event(10 * round, "A", round), event(10 * round + 1, "B", round)):
                stream.push(each)
        stream.push(event(5000, "Z"))
        keeper = stream._progress.run.matcher.keeper
        assert not [*keeper.left, *keeper.best, *keeper.waiting], clause


@pytest.mark.parametrize(
    "clause", ["FIRST PER b.id EVERY 6", "DISJOINT PER b.id", "LAST PER a", "LONGEST PER a"]
)
def test_a_saved_stream_goes_on_with_what_it_has_kept(clause: str) -> None:
    query = nestream.query(f"SEQ(A a, B b, !C c) WITHIN 5 KEEP {clause}")
    events = [event(n, "ABBAABZ"[n % 7], n % 3) for n in range(80)]
    expected = query.match(events, strategy="reference").to_pylist()
    found: list[dict[str, Any]] = []
    stream = query.stream(schema=SCHEMA)
    for each in events:
        found += stream.push(each)
        stream = query.stream(schema=SCHEMA).restore(stream.save())
    found += stream.finish()
    assert found == expected
    assert len(found) > 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SEQ(A a, B b) WITHIN 5 KEEP LAST", "no event in PER"),
        ("SEQ(A a, B b) WITHIN 5 KEEP LONGEST PER a.id", "no event in PER"),
        ("SEQ(A a, B b) WITHIN UNBOUNDED KEEP SHORTEST PER a", "without a window"),
        ("OR(SEQ(A a, B b), C c) WITHIN 5 KEEP LAST PER a", "no event in PER"),
    ],
)
def test_a_stream_refuses_what_it_would_never_know(text: str, said: str) -> None:
    for asked in (nestream.query(text), nestream.queries({"one": text})):
        with pytest.raises(nestream.QueryError, match="never knows the") as raised:
            asked.stream()
        assert said in str(raised.value)
    assert nestream.query(text).match([event(1, "A"), event(2, "B")]).num_rows == 1


def test_a_match_that_shows_no_event_holds_no_other_back() -> None:
    stream = nestream.query("OR(D d, EXISTS a : A a) KEEP DISJOINT").stream()
    found = [stream.push(event(number, kind)) for number, kind in ((1, "D"), (2, "A"), (3, "D"), (4, "Z"))]
    assert sum(map(len, found)) == 2


def test_matches_that_wait_are_given_when_the_resolution_of_the_times_grows() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 5 s KEEP LAST PER a")
    stream = query.stream()
    moment = pa.scalar(10**6, pa.timestamp("us")).as_py()
    later = pa.scalar(2 * 10**6, pa.timestamp("us")).as_py()
    assert not stream.push({"ts": moment, "type": "A"})
    assert not stream.push({"ts": later, "type": "B"})
    fine = pa.table({"ts": pa.array([20 * 10**9], pa.timestamp("ns")), "type": ["Z"]})
    assert stream.push_batch(fine).num_rows == 1


def test_why_names_what_is_kept_instead() -> None:
    events = [event(1, "A"), event(2, "B"), event(3, "B")]
    found = nestream.query("SEQ(A a, B b) WITHIN 5 KEEP FIRST PER a").why(events, [0, 2])
    assert (
        "KEEP FIRST PER a keeps an earlier one with the same a: a = #0 (A at 1), b = #1 (B at 2)"
        in " ".join(str(found).split())
    )


@pytest.mark.parametrize("keep", ["FIRST PER a", "LAST PER c"])
@pytest.mark.parametrize("order", ["time", "arrival"])
@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A a, B b, C c) WITHIN 9",
        "SEQ(A a, B b, C c) WHERE [id] WITHIN 14",
        "SEQ(A a, !D d, B b, C c) WHERE [id] WITHIN 20",
        "SEQ(A a, B b, !D d, C c, c.ts - b.ts BETWEEN 2 AND 5) WITHIN 12",
        "SEQ(A a, NEXT B b, D d, C c) WITHIN 15 EVENTS",
        "SEQ(A a, C c) WITHIN UNBOUNDED",
    ],
)
def test_one_match_an_event_is_kept_without_building_the_others(
    pattern: str, keep: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(pattern)
    events = [event(n // 2, chance.choice("ABCD"), chance.randrange(2)) for n in range(90)]
    query = nestream.query(f"{pattern} KEEP {keep}")
    expected = query.match(events, order=order, strategy="reference")
    assert expected.num_rows

    def built(*_: Any) -> None:
        raise AssertionError("matches that are not kept are built")

    monkeypatch.setattr(PreparedChain, "extensions", built)
    assert query.match(events, order=order).equals(expected)
    assert query.count(events, order=order) == expected.num_rows
    assert "without building the others" in query.explain()


def test_a_negation_on_another_attribute_than_the_key_leaves_successors_that_are_no_range() -> None:
    chance = Random(5)
    events = [event(n, chance.choice("ABCD"), chance.randrange(3)) for n in range(120)]
    for keep in ("FIRST PER a", "LAST PER c"):
        query = nestream.query(f"SEQ(A a, !(D d, d.id = b.id), B b, C c) WITHIN 30 KEEP {keep}")
        assert query.match(events).equals(query.match(events, strategy="reference"))


@pytest.mark.parametrize("kind", ["FIRST", "LAST", "LONGEST", "SHORTEST"])
@pytest.mark.parametrize("per", ["", "PER b.s", "PER a, b.id", "PER a.x, b.s", "PER b.id + a.id, a.s"])
def test_many_matches_are_chosen_from_as_few_are(kind: str, per: str) -> None:
    chance = Random(kind + per)
    rows = [
        {**event(n, chance.choice("AB"), chance.randrange(3)), "x": chance.choice((0.5, None, 2.0))}
        for n in range(80)
    ]
    events = [{**row, "s": chance.choice(("u", None, "v"))} for row in rows]
    query = nestream.query(f"SEQ(A a, B b) WITHIN 40 KEEP {kind} {per}")
    assert query.match(events).equals(query.match(events, strategy="reference"))
