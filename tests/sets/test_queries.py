"""Query sets in process: the matches of each query alone, found in one pass."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import nestream
from benchmarks.rule_set import rule_set
from nestream.data import generate
from nestream.model.schema import Schema
from nestream.runtime import query_set

EVENTS = [
    {"ts": ts, "type": kind, "id": ts % 3, "x": ts * 7 % 5}
    for ts, kind in enumerate("ABCABDCABBACDABCDABCAB" * 3)
]
TEXTS = {
    "flat": "SEQ(A a, B b, a.id = b.id) WITHIN 6",
    "negated": "SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN 9",
    "nested": "SEQ(A a, !SEQ(C c, D d), B b) WITHIN 6",
    "trailing": "SEQ(A a, B b, !D d) WITHIN 4",
    "counted": "SEQ(A a, D d) WITHIN 5 EVENTS",
    "either": "OR(A a, SEQ(C c, D d)) WITHIN 3",
    "returned": "SEQ(A a, B b) WITHIN 3 RETURN b.x - a.x AS rise, a.id AS who",
    "projected": "SEQ(A a, B b, C c) WITHIN 5 RETURN a",
}


def alone(name: str, events: object = EVENTS) -> list[dict[str, object]]:
    found: list[dict[str, object]] = nestream.query(TEXTS[name]).match(events).to_pylist()
    return found


def test_each_query_of_a_set_finds_what_it_finds_alone() -> None:
    found = nestream.queries(TEXTS).match_each(EVENTS)
    assert list(found) == list(TEXTS)
    for name, matches in found.items():
        assert matches.num_rows
        assert sorted(map(repr, matches.to_pylist())) == sorted(map(repr, alone(name))), name


def test_one_table_has_the_query_its_events_and_its_values() -> None:
    rows = nestream.queries(TEXTS).match(EVENTS).to_pylist()
    assert {row["query"] for row in rows} == set(TEXTS)
    for name in TEXTS:
        own = [row for row in rows if row["query"] == name]
        assert len(own) == len(alone(name))
    flat = [row for row in rows if row["query"] == "flat"]
    for row, match in zip(flat, alone("flat"), strict=True):
        assert {entry["variable"]: entry["event"] for entry in row["events"]} == {
            "a": match["a"],
            "b": match["b"],
        }
        assert (row["match_start"], row["match_end"]) == (match["match_start"], match["match_end"])
    values = [dict(row["values"]) for row in rows if row["query"] == "returned"]
    assert sorted(map(repr, values)) == sorted(
        repr({"rise": str(m["rise"]), "who": str(m["who"])}) for m in alone("returned")
    )


def test_the_counts_are_those_of_the_matches() -> None:
    counts = nestream.queries(TEXTS).count(EVENTS)
    assert counts == {name: len(alone(name)) for name in TEXTS}


def test_a_stream_of_a_set_can_be_cut_and_restored_anywhere() -> None:
    expected = sorted(map(repr, nestream.queries(TEXTS).match(EVENTS).to_pylist()))
    schema = pa.Table.from_pylist(EVENTS).schema
    stream, found = nestream.queries(TEXTS).stream(schema=schema), []
    for number, event in enumerate(EVENTS):
        found += stream.push(event)
        if number % 5 == 0:
            stream = nestream.queries(TEXTS).stream(schema=schema).restore(stream.save())
    found += stream.finish()
    assert sorted(map(repr, found)) == expected
    assert stream.describe()["queries"] == len(TEXTS)


def test_a_stream_of_a_set_holds_no_more_than_its_longest_window() -> None:
    stream = nestream.queries({"short": TEXTS["flat"], "long": TEXTS["negated"]}).stream()
    for number in range(3_000):
        stream.push({"ts": number, "type": "ABCD"[number % 4], "id": number % 3, "x": 0})
    assert stream.describe()["events"] <= 4 * 9


def test_a_state_of_another_set_is_refused() -> None:
    saved = nestream.queries([TEXTS["flat"]]).stream()
    saved.push(EVENTS[0])
    with pytest.raises(nestream.StateError, match="another query"):
        nestream.queries([TEXTS["nested"]]).stream().restore(saved.save())


def test_leaves_that_queries_share_are_one() -> None:
    schema = Schema.of(pa.Table.from_pylist(EVENTS).schema, "ts", "type")
    chosen = nestream.queries([TEXTS["flat"], TEXTS["nested"], TEXTS["negated"]])
    run = chosen.run(schema)
    assert len(run.store.leaves) == 4
    assert chosen.explain().startswith("3 queries, 9 leaves, 4 after sharing")


def test_a_folder_of_files_is_a_set(tmp_path: Path) -> None:
    for name in ("flat", "nested"):
        (tmp_path / f"{name}.neel").write_text(TEXTS[name])
    (tmp_path / "notes.txt").write_text("not a query")
    assert list(nestream.queries(tmp_path)) == ["flat", "nested"]
    assert nestream.queries(str(tmp_path)).count(EVENTS)["flat"] == len(alone("flat"))


def test_a_folder_without_queries_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \.neel file"):
        nestream.queries(tmp_path)
    with pytest.raises(FileNotFoundError, match="not a folder of queries"):
        nestream.queries(tmp_path / "missing")


def test_every_problem_of_every_query_is_told_with_its_name() -> None:
    with pytest.raises(nestream.QueryError) as caught:
        nestream.queries({"one": "SEQ(A a, B b", "fine": TEXTS["flat"], "two": "SEQ(A a, q.x = 1) WITHIN 3"})
    told = str(caught.value)
    assert "query one:" in told
    assert "query two:" in told
    assert "fine" not in told


def test_a_query_that_does_not_fit_the_events_is_named() -> None:
    with pytest.raises(nestream.QueryError, match=r"query wrong:\n.*no attribute `size`"):
        nestream.queries({"flat": TEXTS["flat"], "wrong": "(A a : a.size > 3) WITHIN 3"}).match(EVENTS)


def test_limits_are_for_tables_of_their_own() -> None:
    chosen = nestream.queries([TEXTS["flat"] + " LIMIT 2"])
    assert chosen.match_each(EVENTS)["q1"].num_rows == 2
    assert chosen.count(EVENTS) == {"q1": 2}
    with pytest.raises(ValueError, match="q1 has one"):
        chosen.match(EVENTS)
    with pytest.raises(ValueError, match="q1 has one"):
        chosen.stream()


def test_an_empty_set_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        nestream.queries([])


def test_an_unknown_strategy_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="auto"):
        nestream.queries(TEXTS).match(EVENTS, strategy="fastest")


def test_options_of_spark_are_refused_for_a_table() -> None:
    with pytest.raises(TypeError, match="partitions"):
        nestream.queries(TEXTS).match(EVENTS, partitions=3)


def test_a_generated_rule_set_finds_what_its_rules_find_alone() -> None:
    events = generate("sase", events=4_000, seed=3, id_domain=20)
    rules = rule_set(60, window=4_000, test="attr1")
    chosen = nestream.queries(rules)
    counts = chosen.count(events)
    assert sum(counts.values()) > 100
    assert counts == {name: chosen[name].count(events) for name in rules}
    assert rule_set(60, window=4_000, test="attr1") == rules


def test_strategies_agree_on_a_set() -> None:
    expected = nestream.queries(TEXTS).count(EVENTS)
    assert nestream.queries(TEXTS).count(EVENTS, strategy="nested") == expected


def test_a_set_whose_queries_all_return_values_makes_one_table() -> None:
    found = nestream.queries([TEXTS["returned"]]).match(EVENTS).to_pylist()
    assert [dict(row["values"])["rise"] for row in found] == [str(row["rise"]) for row in alone("returned")]
    assert all(row["events"] == [] for row in found)


def test_a_set_finds_the_same_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_set, "_ROWS_AT_ONCE", 4)  # several tables, which other threads build
    chosen = nestream.queries(TEXTS)
    found = [list(chosen.batches(EVENTS, threads=threads)) for threads in (1, 3)]
    assert len(found[0]) > 3
    assert found[0] == found[1]


def test_a_set_that_was_run_by_time_is_planned_anew_for_arrival() -> None:
    events = [{"ts": 1, "type": "A"}, {"ts": 1, "type": "B"}]
    chosen = nestream.queries({"both": "SEQ(A a, B b) WITHIN 5"})
    assert chosen.count(events) == {"both": 0}
    assert chosen.count(events, order="arrival") == {"both": 1}
    assert chosen.count(events) == {"both": 0}


@pytest.mark.parametrize("method", ["match", "batches", "count", "match_each"])
def test_an_unknown_argument_is_named_with_those_there_are(method: str) -> None:
    chosen = nestream.queries(TEXTS)
    with pytest.raises(TypeError, match="unknown argument 'tme': use one of time, type, types, order"):
        list(getattr(chosen, method)(EVENTS, tme="ts"))
    if method != "match_each":
        with pytest.raises(TypeError, match="unknown argument 'tme': use one of time, type, types, order"):
            list(getattr(chosen["flat"], method)(EVENTS, tme="ts"))


def test_how_spark_splits_events_is_no_matter_of_this_process() -> None:
    with pytest.raises(TypeError, match="partition_by only applies to Spark DataFrames"):
        nestream.queries(TEXTS).match(EVENTS, partition_by="key")


@pytest.mark.parametrize(("unit", "took"), [("ns", "90.000001001"), ("us", "90.000001"), ("s", "90")])
def test_a_duration_among_the_values_of_a_set_is_its_seconds(unit: str, took: str) -> None:
    finest = [0, 90_000_001_001]
    scale = {"ns": 1, "us": 1000, "s": 10**9}[unit]
    times = pa.array([value // scale for value in finest], pa.timestamp(unit))
    events = pa.table({"ts": times, "type": ["A", "B"]})
    text = "SEQ(A a, B b) WITHIN 1 hour RETURN b.ts - a.ts AS took, a.ts - b.ts AS back"
    [row] = nestream.queries({"pair": text}).match(events)["values"].to_pylist()
    assert dict(row) == {"took": took, "back": f"-{took}"}
