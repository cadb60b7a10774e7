"""The notebook magic `%%neel`, in a real IPython shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import nestream
from nestream.show import Shown

ROWS = [
    {"ts": 1, "type": "A", "x": 1},
    {"ts": 2, "type": "B", "x": 2},
    {"ts": 3, "type": "B", "x": 5},
]
QUERY = "SEQ(A a, B b) WITHIN 10"


@pytest.fixture
def shell(shell: InteractiveShell) -> InteractiveShell:
    """A notebook with the extension and some events."""
    shell.run_line_magic("load_ext", "nestream")
    shell.push({"rows": ROWS, "frame": pd.DataFrame(ROWS), "table": pa.Table.from_pylist(ROWS)})
    return shell


def run(shell: InteractiveShell, line: str, query: str = QUERY) -> Any:
    """Run a cell as a notebook does; what it shows, or the error that it raises."""
    result = shell.run_cell(f"%%neel {line}\n{query}")
    result.raise_error()
    return result.result


@pytest.mark.parametrize("events", ["rows", "frame", "table"])
def test_a_cell_runs_its_query_on_a_variable_and_shows_the_matches(
    shell: InteractiveShell, events: str
) -> None:
    shown = run(shell, events)
    assert isinstance(shown, Shown)
    assert shown.table.num_rows == 2
    assert "2 matches" in shown._repr_html_()


def test_the_matches_are_assigned_in_the_form_that_is_asked_for(shell: InteractiveShell) -> None:
    run(shell, "frame -o found")
    assert isinstance(shell.user_ns["found"], pa.Table)
    frame = run(shell, "frame -o found --to pandas")
    assert isinstance(frame, pd.DataFrame)
    assert shell.user_ns["found"] is frame
    assert run(shell, "frame -o found --to pylist --quiet") is None
    assert len(shell.user_ns["found"]) == 2


def test_events_may_be_the_path_of_a_file_with_other_columns(shell: InteractiveShell, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("at,kind,x\n1,A,1\n2,B,2\n")
    assert run(shell, f"{path} --time at --type kind").table.num_rows == 1


def test_parameters_are_variables_of_the_notebook_unless_they_are_given(shell: InteractiveShell) -> None:
    shell.push({"floor": 3})
    query = "SEQ(A a, B b) WHERE b.x > $floor WITHIN 10"
    assert run(shell, "rows", query).table.num_rows == 1
    assert run(shell, "rows --set floor=1", query).table.num_rows == 2


def test_without_events_the_query_is_checked_and_assigned(shell: InteractiveShell) -> None:
    query = run(shell, "-o asked")
    assert isinstance(query, nestream.Query)
    assert shell.user_ns["asked"] is query


@pytest.mark.parametrize(
    ("line", "query", "said"),
    [
        (
            "rows",
            "SEQ(A a, B b) WITHIN 1 huor",
            "error: unknown unit `huor`\n  at line 1, column 22\n  1 | SEQ",
        ),
        ("rows", "SEQ(A a, B b) WHERE c.x = 1 WITHIN 5", "error: unknown variable `c`"),
        ("rows", "SEQ(A a, B b) WHERE a.y = 1 WITHIN 5", "error: A events have no attribute `y`"),
        ("rowz", QUERY, "error: the notebook has no variable `rowz`\n  hint: run the cell that defines it"),
        ("nowhere.csv", QUERY, "error: "),
        ("rows --time at", QUERY, "error: the events have no column `at` for their time"),
        ("rows --set floor", QUERY, "error: --set takes NAME=VALUE, not 'floor'"),
        ("rows", "SEQ(A a, B b) WHERE b.x > $floor WITHIN 5", "error: the parameter `$floor` has no value"),
    ],
)
def test_a_mistake_is_shown_as_its_message_and_stops_the_notebook(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str, query: str, said: str
) -> None:
    result = shell.run_cell(f"%%neel {line}\n{query}")
    assert not result.success
    shown = capsys.readouterr().out
    assert shown.startswith(said)
    assert "Traceback" not in shown


def test_warnings_are_shown_beside_the_matches(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "rows", "SEQ(A a, Bb b) WITHIN 10")
    assert "warning: no event has type 'Bb'; did you mean 'B'?" in capsys.readouterr().err
