"""A large file is matched as it is read, with the same matches in the same order as one that is held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.cli.run_large import LargeRun
from nestream.sink import write_events
from nestream.source import EventFiles, event_files, input
from tests.cli.commands import call

PAIRS = "SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN 9"


def random_events(seed: int, number: int = 400) -> pa.Table:
    randomness = Random(seed)
    times = sorted(randomness.randrange(number // 3) for _ in range(number))
    return pa.table(
        {
            "ts": times,
            "type": [randomness.choice("ABCD") for _ in times],
            "id": [randomness.randrange(4) for _ in times],
        }
    )


class Sliced(EventFiles):
    """The same files in small batches."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        randomness = Random(7)
        for batch in super().__iter__():
            first = 0
            while first < batch.num_rows:
                size = randomness.randint(1, 9)
                yield batch.slice(first, size)
                first += size


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input, "LARGE", 1)


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "text",
    [PAIRS, "AND(A a, B b, a.id = b.id) WITHIN 4", "SEQ(A a, OR(B b, C c)) WITHIN 2", PAIRS + " LIMIT 5"],
)
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_the_matches_are_those_of_events_that_are_held(
    tmp_path: Path, suffix: str, text: str, order: str
) -> None:
    events = random_events(3)
    write_events(events, tmp_path / f"events.{suffix}")
    files = Sliced(event_files([str(tmp_path / f"events.{suffix}")]), "ts", "type")
    query = nestream.query(text)
    how: dict[str, Any] = {"time": "ts", "type": "type", "order": order, "options": None}
    run = LargeRun.of(query, files, strategy="auto", **how)
    assert run is not None
    found = pa.concat_tables(run.matches())
    assert found.to_pylist() == query.match(events, order=order).to_pylist()


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SEQ(A a, !(B b, a.id = b.id)) WITHIN 5", [1, 2, 3]),  # its matches come in another order
        ("SEQ(A a, B b) WITHIN 5 RETURN a", [1, 2, 3]),
        (PAIRS, [1, 3, 2]),
    ],
)
def test_events_that_are_needed_all_at_once_are_held(tmp_path: Path, text: str, rows: list[int]) -> None:
    write_events(pa.table({"ts": rows, "type": ["A", "B", "B"], "id": [1, 1, 1]}), tmp_path / "events.csv")
    files = EventFiles(event_files([str(tmp_path / "events.csv")]), "ts", "type")
    assert LargeRun.of(nestream.query(text), files, strategy="auto", time="ts", type="type") is None
    assert call("run", text, tmp_path / "events.csv").exit_code == 0


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_command_prints_the_same_without_holding_the_file(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"events.{suffix}"
    write_events(random_events(5), path)
    held = call("run", PAIRS.replace("C c", "Cc c"), path)
    assert held.stdout.count("\n") > 10
    monkeypatch.setattr(input, "LARGE", 1)
    monkeypatch.setattr(EventFiles, "read_all", None)  # it is not read as a whole
    streamed = call("run", PAIRS.replace("C c", "Cc c"), path)
    assert streamed.stdout == held.stdout
    assert streamed.stderr == held.stderr
    assert call("run", PAIRS, path, "--limit", "3").stdout.count("\n") == 3
