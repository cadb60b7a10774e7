"""The example notebooks run from the first cell to the last."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NAMES = ("getting-started", "hospital", "trading")


def test_there_are_no_other_notebooks_and_none_has_outputs() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)
    for path in FOLDER.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        assert [cell for cell in cells if cell.cell_type == "code" and cell.outputs] == []


def code(name: str) -> list[str]:
    """The cells with code."""
    cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", NAMES)
def test_the_cells_of_a_notebook_run_one_after_the_other(
    shell: InteractiveShell, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for source in code(name):
        assert shell.run_cell(source).success, source
    shown = capsys.readouterr()
    assert "match" in shown.out
    assert "arning" not in shown.err


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_in_a_kernel_of_its_own(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs
    assert [output for output in outputs if output.get("name") == "stderr"] == []
