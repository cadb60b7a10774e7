"""A notebook's shell in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[InteractiveShell]:
    """A shell that leaves no trace in the home folder."""
    InteractiveShell.clear_instance()
    quiet = Config({"HistoryManager": {"enabled": False}})
    yield InteractiveShell.instance(config=quiet, ipython_dir=str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
