"""Exports of matches: values of any kind, and topics."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from nestream.console.export import MOST_COLUMNS, REST, Export


def exported(place: Path | str, folder: Path, format: str) -> Path:
    """The file of all matches of a sink."""
    path = folder / f"out.{format}"
    Export(str(place), None, lambda name: (name, "high"), {}).write(path, format)
    return path


def row(n: int, **values: Any) -> dict[str, Any]:
    """A match as a set writes it."""
    events = [{"variable": "a", "event": {"ts": n, "type": "A", "id": n}}, {"variable": "b", "event": None}]
    return {"query": "pair", "match_start": n, "match_end": n, "events": events, "values": values}


def test_numbers_of_both_kinds_and_events_that_are_missing_are_exported(tmp_path: Path) -> None:
    rows = [row(1, x=0.5), row(2, x=2**60 + 1)]
    (tmp_path / "matches.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    table = pq.read_table(exported(tmp_path / "matches.jsonl", tmp_path, "parquet"))
    assert table["x"].to_pylist() == [0.5, float(2**60 + 1)]
    assert table["a.id"].to_pylist() == [1, 2]


def test_text_that_a_spreadsheet_would_compute_is_made_harmless(tmp_path: Path) -> None:
    rows = [row(1, x="=HYPERLINK(1)", y=-5), row(2, x="@SUM", y=3)]
    (tmp_path / "matches.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    with exported(tmp_path / "matches.jsonl", tmp_path, "csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [(one["x"], one["y"]) for one in found] == [("'=HYPERLINK(1)", "-5"), ("'@SUM", "3")]


def test_values_beyond_the_most_columns_are_in_one_column(tmp_path: Path) -> None:
    values = {f"x{number}": number for number in range(MOST_COLUMNS)}
    (tmp_path / "matches.jsonl").write_text(json.dumps(row(1, **values, more="own")) + "\n")
    table = pq.read_table(exported(tmp_path / "matches.jsonl", tmp_path, "parquet"))
    (found,) = table.to_pylist()
    rest = json.loads(found.pop(REST))
    assert table.num_columns == MOST_COLUMNS + 1
    assert {**found, **rest}.items() >= {**values, "values.more": "own", "a.id": 1}.items()
