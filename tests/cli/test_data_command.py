"""`nestream data`."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nestream.data import GENERATORS, generate
from nestream.source import read_table
from tests.cli.commands import call, on_terminal, program, without_colours


@pytest.mark.parametrize("arguments", [["data"], ["data", "--list"]])
def test_the_data_sets_are_listed_a_line_each(arguments: list[str]) -> None:
    result = call(*arguments)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(GENERATORS)


def test_the_list_is_for_programs_as_json() -> None:
    lines = call("data", "--format", "json").stdout.splitlines()
    assert [json.loads(line)["name"] for line in lines] == list(GENERATORS)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_name_alone_describes_columns_types_and_options(name: str) -> None:
    result = call("data", name)
    assert result.exit_code == 0
    for word in [*GENERATORS[name].columns, *GENERATORS[name].types]:
        assert word in result.stdout
    for option in set(GENERATORS[name].defaults) - {"events", "seed"}:
        assert f"\n  {option} " in result.stdout


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", GENERATORS)
def test_every_data_set_is_written_in_every_format(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events.{suffix}"
    result = call("data", name, "--events", "50", "--seed", "3", "--out", path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert read_table(path).column("type").to_pylist() == generate(name, 50, 3).column("type").to_pylist()


def test_options_of_a_data_set_are_set_by_key_and_value(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    settings = ["types=3", "theta=0.5", "domains=2, 3", "attributes=2", "clock=timestamp"]
    options = [part for setting in settings for part in ("--set", setting)]
    assert call("data", "sase", "--events", "100", "--out", path, *options).exit_code == 0
    wanted = generate("sase", 100, types=3, theta=0.5, domains=(2, 3), attributes=2, clock="timestamp")
    assert pq.read_table(path).to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["data", "stocks", "--out", "x.csv"], ["'stocks'", "did you mean 'stock'", "coldchain"]),
        (["data", "stock", "--set", "amount=3", "--out", "x.csv"], ["did you mean 'amounts'", "ticker_skew"]),
        (["data", "stock", "--set", "amounts", "--out", "x.csv"], ["KEY=VALUE"]),
        (["data", "stock", "--set", "amounts=many", "--out", "x.csv"], ["an integer like 100", "'many'"]),
        (["data", "sase", "--set", "domains=1,b", "--out", "x.csv"], ["commas", "10,50"]),
        (["data", "sase", "--set", "clock=sand", "--out", "x.csv"], ["clock must be"]),
        (["data", "stock", "--set", "seed=3", "--out", "x.csv"], ["--seed 3"]),
        (["data", "stock", "--events", "-1", "--out", "x.csv"], ["--events"]),
        (["data", "stock", "--out", "x.doc"], [".parquet", "--format"]),
        (["data", "stock", "--out", "nowhere/x.csv"], ["no folder 'nowhere'"]),
        (["data", "--out", "x.csv"], ["name a data set", "hospital"]),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_there_is(
    arguments: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    message = " ".join(result.stderr.replace("│", " ").split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert [word for word in words if word not in message] == []
    assert list(tmp_path.iterdir()) == []


def test_standard_output_takes_the_events_too() -> None:
    result = program("data", "stock", "--events", "3", "--out", "-", "--format", "csv")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) == 4


def test_on_a_terminal_the_end_is_a_line_that_says_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    code, _, screen = on_terminal(["data", "stock", "--events", "2000", "--out", path])
    assert code == 0
    assert "2,000 events in " in without_colours(screen).splitlines()[-1]


def test_an_output_that_cannot_be_written_is_a_message() -> None:
    result = call("data", "stock", "--events", "3", "--format", "csv", "--out", "/dev/full")
    assert result.exit_code == 1
    assert result.stderr.startswith("error:")
