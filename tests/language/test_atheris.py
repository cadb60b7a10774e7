"""The coverage-guided fuzzer finds nothing in a bounded time."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed")
def test_the_fuzzer_finds_nothing_in_a_minute(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.fuzz_parse", "60"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-4000:]
