"""Which attributes the types have, on the command line: declared, in a header, or guessed with a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nestream
from nestream.data import sample, sample_path
from tests.cli.commands import call

MISPLACED = """EVENT SEQ(SHELF-READING x, SHELF-READING y, ! (ANY(COUNTER-READING, SHELF-READING) z))
WHERE [id] ∧ x.shelf_id ≠ y.shelf_id ∧ x.shelf_id = z.shelf_id
WITHIN 1 hour"""
DECLARED = "SHELF-READING(id, shelf_id) COUNTER-READING(id)"


def test_the_misplaced_inventory_of_the_paper_is_found_on_the_bundled_data_with_a_warning() -> None:
    result = call("run", MISPLACED, sample_path("retail"))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 3
    assert "warning: `shelf_id` is NULL in every COUNTER-READING event" in result.stderr
    assert "--types" in result.stderr


def test_declared_types_are_not_guessed() -> None:
    result = call("run", MISPLACED, sample_path("retail"), "--types", DECLARED)
    assert (result.exit_code, len(result.stdout.splitlines()), result.stderr) == (0, 3, "")
    every = "SHELF-READING(id, shelf_id) COUNTER-READING(id, shelf_id)"
    result = call("run", MISPLACED, sample_path("retail"), "--types", every)
    assert (result.exit_code, len(result.stdout.splitlines()), result.stderr) == (0, 6, "")


def test_a_header_declares_the_types_of_a_query_and_of_a_set(tmp_path: Path) -> None:
    header = f"/* Found on\n   a shelf. */\n-- In the wrong place.\n// types: {DECLARED}\n"
    (tmp_path / "misplaced.neel").write_text(header + MISPLACED)
    for query in (tmp_path / "misplaced.neel", tmp_path):
        result = call("run", query, sample_path("retail"))
        assert (result.exit_code, len(result.stdout.splitlines()), result.stderr) == (0, 3, "")


def test_types_that_cannot_be_read_are_refused() -> None:
    result = call("run", MISPLACED, sample_path("retail"), "--types", "SHELF-READING(id")
    assert result.exit_code == 2
    assert "cannot read the types" in result.stderr


def test_members_that_json_lines_never_have_are_missing(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    rows = [
        {"ts": 1, "type": "A", "x": 1},
        {"ts": 2, "type": "B", "x": 2},
        {"ts": 3, "type": "C"},
    ]
    events.write_text("".join(json.dumps(row) + "\n" for row in rows))
    query = "EVENT SEQ(A a, ANY(B, C) b) WHERE a.x = b.x WITHIN 10"
    result = call("run", query, events)
    assert [json.loads(line)["b"]["type"] for line in result.stdout.splitlines()] == ["C"]
    assert "`x` is NULL in every C event" in result.stderr
    assert call("why", query, events, "--events", "0,2").exit_code == 0


def test_nothing_is_guessed_of_single_types_nor_in_other_spellings(tmp_path: Path) -> None:
    events = tmp_path / "events.parquet"
    columns = {"ts": [1, 2], "type": ["A", "B"], "x": [1, None]}
    pq.write_table(pa.table(columns), events)
    for query in (
        "EVENT SEQ(A a, B b) WHERE a.x = b.x WITHIN 10",
        "SEQ(A a, ANY(A, B) b, a.x = b.x) WITHIN 10",
    ):
        result = call("run", query, events)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("ways", ["match", "stream", "why", "set"])
def test_declared_types_hold_in_every_way_to_run(ways: str) -> None:
    events = sample("retail")
    query = nestream.query(MISPLACED).with_types(DECLARED)
    if ways == "stream":
        stream = query.stream()
        assert stream.push_batch(events).num_rows + len(stream.finish()) == 3
    elif ways == "set":
        assert nestream.queries({"it": MISPLACED}).with_types(DECLARED).count(events) == {"it": 3}
    elif ways == "why":
        first = nestream.query(MISPLACED).match(events).to_pylist()
        kept = query.match(events).to_pylist()
        lost = next(row for row in first if row not in kept)
        rows = events.to_pylist()
        assert not query.why(events, [rows.index(lost["x"]), rows.index(lost["y"])]).matched
    else:
        assert query.count(events) == query.match(events, strategy="reference").num_rows == 3


def test_a_state_belongs_to_the_types_too() -> None:
    saved = nestream.query(MISPLACED).with_types(DECLARED).stream().save()
    with pytest.raises(nestream.StateError):
        nestream.query(MISPLACED).stream().restore(saved)
