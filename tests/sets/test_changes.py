"""A set that changes on a stream: who stays is not disturbed, who joins sees what is held."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.model.time import WindowKind
from tests.sets.changing import Changing, change_at_random, random_rules
from tests.sets.composites import RAW, SCHEMA, SHAPES, by_definition, random_events, random_set

pytestmark = pytest.mark.filterwarnings("ignore::nestream.UnseenTypeWarning")
PAIR = "SEQ(A a, B b, a.id = b.id) WITHIN 10"
QUICK = "SEQ(A a, B b, a.id = b.id, b.ts - a.ts < 3) WITHIN 10"
ALONE = "SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN 10"


def event(ts: Any, type: str, id: int = 1, **more: Any) -> dict[str, Any]:
    return {"ts": ts, "type": type, "id": id, **more}


def spans(matches: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    return [(match["query"], match["match_start"], match["match_end"]) for match in matches]


@pytest.mark.parametrize("seed", range(12))
def test_each_query_emits_what_it_has_to_whatever_changes_around_it(seed: int) -> None:
    running = change_at_random(Random(seed))
    assert running.found == running.expected()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_many_random_changes(seed: int) -> None:
    running = change_at_random(Random(seed), parts=5)
    assert running.found == running.expected()


def test_a_query_that_joins_sees_the_events_that_others_hold_and_emits_what_is_decided_from_then_on() -> None:
    stream = nestream.queries({"pair": PAIR}).stream()
    for one in (event(1, "A"), event(2, "B"), event(3, "A", 2)):
        stream.push(one)
    assert stream.change({"pair": PAIR, "quick": QUICK}) == {"quick": -7}
    assert spans(stream.push(event(4, "B", 2))) == [("pair", 3, 4), ("quick", 3, 4)]
    assert spans(stream.push(event(5, "B", 1))) == [("pair", 1, 5)]


def test_a_query_that_reads_what_was_not_held_sees_only_what_comes() -> None:
    """A negation over events that were never held would find violations that are none."""
    stream = nestream.queries({"pair": PAIR}).stream()
    for one in (event(1, "A"), event(2, "C"), event(3, "A", 2)):
        stream.push(one)
    assert stream.change({"pair": PAIR, "alone": ALONE}) == {"alone": 4}
    assert spans(stream.push(event(4, "B"))) == [("pair", 1, 4)]
    assert spans(stream.push(event(4, "B", 2))) == [("pair", 3, 4)]
    stream.push(event(5, "A"))
    assert spans(stream.push(event(6, "B"))) == [("pair", 1, 6), ("pair", 5, 6), ("alone", 5, 6)]


def test_events_that_a_test_of_another_query_let_through_are_not_all_of_them() -> None:
    large = "SEQ(A a, B b, a.x > 5) WITHIN 10"
    stream = nestream.queries({"large": large}).stream()
    stream.push(event(1, "A", x=9))
    stream.push(event(2, "A", x=3))
    assert stream.change({"larger": "SEQ(A a, B b, a.x > 5, a.id = 1) WITHIN 10"}) == {"larger": -8}
    assert stream.change({"any": "SEQ(A a, B b) WITHIN 10"}) == {"any": 3}
    assert spans(stream.push(event(3, "B", x=0))) == []


def test_a_query_that_reads_a_column_which_nobody_held_sees_only_what_comes() -> None:
    stream = nestream.queries({"times": "SEQ(A a, B b) WITHIN 10 RETURN a.id AS id"}).stream(lateness=2)
    stream.push_batch([event(1, "A", x=1), event(5, "A", x=1), event(6, "B", x=2)])
    joined = stream.change({"values": "SEQ(A a, B b) WITHIN 10 RETURN a.x AS x"})
    assert joined == {"values": 7}  # 5 and 6 wait for the watermark, and came without `x`
    stream.push_batch([event(7, "A", x=4), event(8, "B", x=5), event(20, "Z")])
    assert [dict(match["values"]) for match in stream.finish()] == []
    assert stream.matches_out == 1


def test_a_query_that_never_matches_holds_all_events_for_queries_to_come() -> None:
    stream = nestream.queries({"hold": "SEQ(ANY e, Never n) WITHIN 60"}).stream()
    for one in (event(1, "A"), event(2, "C"), event(3, "A", 2, x=7)):
        stream.push(one)
    joined = stream.change({"alone": f"{ALONE} RETURN a.x AS x"})
    assert joined == {"alone": -57}
    assert spans(stream.push(event(4, "B", 1))) == []
    assert spans(stream.push(event(5, "B", 2))) == [("alone", 3, 5)]


def test_the_type_of_an_event_is_shown_even_if_no_query_showed_it_before() -> None:
    stream = nestream.queries({"ids": "SEQ(A a, B b) WITHIN 10 RETURN a.id AS id"}).stream()
    types = pa.array(["A"]).dictionary_encode()
    stream.push_batch(pa.table({"ts": [1], "type": types, "id": [7]}))
    assert stream.change({"whole": "SEQ(A a, B b) WITHIN 10"}) == {"whole": -9}
    found = stream.push_batch(pa.table({"ts": [2], "type": pa.array(["B"]).dictionary_encode(), "id": [8]}))
    events = [entry["event"] for entry in found.to_pylist()[0]["events"]]
    assert events == [{"ts": 1, "type": "A", "id": 7}, {"ts": 2, "type": "B", "id": 8}]


def test_a_query_that_joins_twice_or_returns_starts_anew() -> None:
    stream = nestream.queries({"pair": PAIR, "quick": QUICK}).stream()
    stream.push(event(1, "A"))
    stream.change({"pair": PAIR})
    assert spans(stream.push(event(2, "B"))) == [("pair", 1, 2)]
    assert stream.change({"pair": PAIR, "quick": QUICK}) == {"quick": -8}
    assert spans(stream.push(event(3, "B"))) == [("pair", 1, 3), ("quick", 1, 3)]


def test_what_keep_has_chosen_before_a_query_joined_stays_chosen() -> None:
    first = f"{PAIR} KEEP FIRST PER a"
    stream = nestream.queries({"pair": PAIR}).stream()
    for one in (event(1, "A"), event(2, "B"), event(3, "A", 2), event(5, "Z")):
        stream.push(one)
    stream.change({"pair": PAIR, "first": first})
    stream.push(event(6, "B"))
    stream.push(event(7, "B", 2))
    assert ("first", 3, 7) in spans(stream.push(event(8, "Z")))
    assert stream.describe()["matches_out"] == 4


def test_a_query_that_leaves_takes_its_state_with_it() -> None:
    long = "SEQ(A a, B b) WITHIN 1000000"
    stream = nestream.queries({"pair": PAIR, "long": long}).stream()
    stream.push_batch([event(n, "A") for n in range(5000)])
    assert stream.describe()["events"] == 5000
    stream.change({"pair": PAIR})
    stream.push(event(5001, "A"))
    assert stream.describe()["events"] < 20
    assert "long" not in repr(stream.save())


def test_leaves_of_queries_that_left_do_not_pile_up() -> None:
    stream = nestream.queries({"pair": PAIR}).stream()
    for n in range(100):
        stream.push_batch([event(2 * n, "A", x=n), event(2 * n, "C", x=n), event(2 * n + 1, "B", x=n)])
        stream.change({"pair": PAIR, "one": f"SEQ(A a, C c, a.x > {n}, c.x > {n}) WITHIN {n + 1}"})
    assert stream.matches_out == sum(min(n + 1, 5) for n in range(100))
    assert len(stream._progress.run.store.leaves) < 12
    assert stream.describe()["events"] < 3 * 110
    assert stream.change({"pair": PAIR}) == {}
    stream.push_batch([event(n, "C", x=n) for n in range(200, 300)])
    assert stream.describe()["events"] < 12


def test_a_set_that_does_not_fit_changes_nothing() -> None:
    stream = nestream.queries({"pair": PAIR}).stream()
    stream.push(event(1, "A"))
    before = stream.save()
    with pytest.raises(nestream.QueryError, match="text"):
        stream.change({"pair": PAIR, "text": "SEQ(A a, B b, a.id = 'seven') WITHIN 10"})
    with pytest.raises(nestream.QueryError):
        stream.change({"pair": PAIR, "broken": "SEQ(A a"})
    with pytest.raises(ValueError, match="LIMIT"):
        stream.change({"pair": f"{PAIR} LIMIT 1"})
    assert stream.save() == before
    assert spans(stream.push(event(2, "B"))) == [("pair", 1, 2)]


def test_a_state_of_a_changed_set_belongs_to_that_set() -> None:
    stream = nestream.queries({"pair": PAIR}).stream()
    stream.push_batch([event(1, "A"), event(2, "C")])
    rules = nestream.queries({"pair": PAIR, "alone": ALONE})
    stream.change(rules)
    with pytest.raises(nestream.StateError, match="another query"):
        nestream.queries({"pair": PAIR}).stream().restore(stream.save())
    again = rules.stream().restore(stream.save())
    assert spans(again.push(event(3, "B"))) == [("pair", 1, 3)]


def test_a_query_alone_cannot_be_changed_and_a_finished_stream_neither() -> None:
    with pytest.raises(TypeError, match="queries of a set"):
        nestream.query(PAIR).stream().change({"pair": PAIR})
    stream = nestream.queries({"pair": PAIR}).stream()
    stream.finish()
    with pytest.raises(ValueError, match="finished"):
        stream.change({"pair": PAIR})


def test_the_time_since_which_a_query_sees_events_moves_with_the_resolution_of_the_times() -> None:
    start = datetime(2026, 1, 5)
    pair = "SEQ(A a, B b, a.id = b.id) WITHIN 10 s"
    stream = nestream.queries({"pair": pair}).stream()
    stream.push({"ts": start, "type": "A", "id": 1})
    joined = stream.change({"pair": pair, "alone": ALONE.replace("10", "10 s")})
    assert joined == {"alone": start + timedelta(microseconds=1)}
    fine = pa.array([10**9 * 60], pa.timestamp("ns"))  # the column of another attribute becomes nanoseconds
    stream.push_batch(pa.table({"ts": [start + timedelta(seconds=1)], "type": ["A"], "id": [2], "at": fine}))
    found = stream.push({"ts": start + timedelta(seconds=2), "type": "B", "id": 1})
    assert [match["query"] for match in found] == ["pair"]
    found = stream.push({"ts": start + timedelta(seconds=2), "type": "B", "id": 2})
    assert [match["query"] for match in found] == ["pair", "alone"]


def test_a_stream_that_has_seen_nothing_changes_like_any_other() -> None:
    for options in (
        {},
        {"schema": pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])},
    ):
        stream = nestream.queries({"pair": PAIR}).stream(**options)
        assert stream.change({"quick": QUICK}) == {"quick": None}
        stream.push(event(1, "A"))
        assert spans(stream.push(event(2, "B"))) == [("quick", 1, 2)]


def test_a_copy_of_a_query_sees_at_least_one_window_of_what_was_held() -> None:
    random = Random(7)
    for text in random_rules(random, 12):
        running = Changing({"one": text}, 0)
        running.push([event(n, random.choice("ABCDE"), 1, x=1, n=n) for n in range(200)], singly=False)
        [since] = running.change({"one": text, "copy": text}).values()
        window = nestream.query(text).plan.window
        if window.kind is WindowKind.NUMBER:
            assert since is None or since <= 199 - window.size, text


# -- composite events --------------------------------------------------------------------------------------


def extras(random: Random, base: dict[str, str]) -> dict[str, str]:
    """Queries beside a set that read its composite events too, and make others that it does not read."""
    made = [text.split(" INTO ")[1].split()[0] for text in base.values() if " INTO " in text]
    types = [*RAW, *made, *made]
    found = {}
    for name in random.sample(["e1", "e2", "e3"], random.randint(0, 3)):
        parts = [random.choice([*types, *(["X"] if name == "e3" else [])]) for _ in range(3)]
        text = random.choice(SHAPES[:10]).format(*parts, same="", w=random.randint(2, 12))
        text += " RETURN a.id AS id, b.x AS x" + (" INTO X" if name != "e3" else "")
        found[name] = text
    return found


def run_layers(seed: int) -> None:
    """A set in layers gives its matches while others come and go beside it."""
    random = Random(seed)
    base = random_set(random, random.randint(1, 3))
    events = random_events(random, 60)
    rules = {**base, **extras(random, base)}
    how: dict[str, Any] = {"schema": SCHEMA, "lateness": random.choice([0, 3])}
    stream = nestream.queries(rules).stream(**how)
    found: list[dict[str, Any]] = []
    done = 0
    while done < events.num_rows:
        size = random.choice([1, 3, 10])
        found += stream.push_batch(events.slice(done, size)).to_pylist()
        done += size
        if random.random() < 0.5:
            rules = {**base, **extras(random, base)}
            if random.random() < 0.5:
                rules = dict(reversed(rules.items()))
            stream.change(rules)
        if random.random() < 0.3:
            stream = nestream.queries(rules).stream(**how).restore(stream.save())
    found += stream.finish()
    for name, wanted in by_definition(base, events, "time").items():
        own = Counter((m["match_start"], m["match_end"]) for m in found if m["query"] == name)
        expected = Counter((m["match_start"], m["match_end"]) for m in wanted.to_pylist())
        assert own == expected, name


@pytest.mark.parametrize("seed", range(5))
def test_layers_are_not_disturbed_by_queries_that_come_and_go_beside_them(seed: int) -> None:
    run_layers(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_layers_are_not_disturbed(seed: int) -> None:
    run_layers(seed)


MADE = "SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id INTO Pair"


def test_a_query_that_reads_composite_events_joins_and_sees_those_that_come() -> None:
    stream = nestream.queries({"pair": MADE}).stream()
    for one in (event(1, "A"), event(2, "B"), event(3, "A", 2)):
        stream.push(one)
    after = "SEQ(Pair p, C c, p.id = c.id) WITHIN 10 RETURN p.id AS id"
    assert stream.change({"pair": MADE, "after": after}) == {"after": 4}
    stream.push(event(4, "B", 2))
    stream.push(event(5, "C", 1))
    stream.push(event(6, "C", 2))
    assert spans(stream.push(event(7, "Z"))) == [("after", 4, 6)]


def test_a_query_goes_on_with_the_events_alone_when_their_maker_has_left() -> None:
    after = "SEQ(Pair p, C c, p.id = c.id) WITHIN 10 RETURN p.id AS id"
    stream = nestream.queries({"pair": MADE, "after": after}).stream()
    for one in (event(1, "A"), event(2, "B"), event(3, "Z")):
        stream.push(one)
    assert stream.change({"after": after}) == {"after": 4}
    assert spans(stream.push(event(4, "C"))) == []  # the pair of before was no event of the stream
    stream.push(event(5, "Pair"))
    assert spans(stream.push(event(6, "C"))) == [("after", 5, 6)]


def test_a_composite_event_for_a_time_that_its_readers_have_passed_is_not_handed_on() -> None:
    after = "SEQ(Pair p, C c) WITHIN 10 RETURN p.id AS id"
    stream = nestream.queries({"pair": MADE, "after": after}).stream()
    for one in (event(1, "A"), event(2, "Z"), event(5, "Z")):
        stream.push(one)
    lonely = "SEQ(A a, !(B b)) WITHIN 6 RETURN a.id AS id INTO Pair"  # decided at 8, for the time 1
    stream.change({"pair": MADE, "after": after, "lonely": lonely})
    stream.push(event(6, "C"))
    found = [match for n in (9, 20) for match in spans(stream.push(event(n, "Z")))]
    assert found == [("lonely", 1, 1)]
