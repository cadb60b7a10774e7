"""The example notebooks run from the first cell to the last, in a kernel of their own."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NAMES = ("getting-started", "hospital", "trading")
HEAVY = [pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:]]


def test_there_are_no_other_notebooks_and_none_has_outputs() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)
    for path in FOLDER.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        assert [cell for cell in cells if cell.cell_type == "code" and cell.outputs] == []


@pytest.mark.parametrize("name", [NAMES[0], *HEAVY])
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [
        output.get("text", "") + str(output.get("data", {}))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    assert any("match" in text for text in shown)
    assert not any("UnseenTypeWarning" in text for text in shown)
