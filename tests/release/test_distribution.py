"""The wheel and the sdist: what is in them, what they say of themselves, and how large they are."""

from __future__ import annotations

import configparser
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import nestream

ROOT = Path(__file__).resolve().parents[2]
LARGEST_WHEEL = 1_300_000
"""Bytes. The wheel is the text of the modules and little else, so this grows with the code alone."""
LARGEST_SDIST = 3_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the sdist, by their suffixes."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return {path.suffix: path for path in folder.iterdir()}


def test_the_distributions_pass_twine(built: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built.values())]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_the_wheel_holds_the_package_and_nothing_else(built: dict[str, Path]) -> None:
    wheel = zipfile.ZipFile(built[".whl"])
    names = wheel.namelist()
    info = f"nestream-{nestream.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"nestream", info}
    suffixes = {Path(name).suffix for name in names if name.startswith("nestream/")}
    assert suffixes == {
        ".css",
        ".csv",
        ".html",
        ".js",
        ".lark",
        ".neel",
        ".properties",
        ".py",
        ".svg",
        ".typed",
    }
    here = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/nestream").rglob("*.py")}
    assert here <= set(names)
    assert built[".whl"].stat().st_size < LARGEST_WHEEL


def test_the_wheel_says_what_it_is_and_what_it_starts(built: dict[str, Path]) -> None:
    wheel = zipfile.ZipFile(built[".whl"])
    info = f"nestream-{nestream.__version__}.dist-info"
    metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert metadata["Version"] == nestream.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    entry_points = configparser.ConfigParser()
    entry_points.read_string(wheel.read(f"{info}/entry_points.txt").decode())
    assert entry_points["console_scripts"]["nestream"] == "nestream.cli.main:main"
    assert entry_points["pygments.lexers"]["neel"] == "nestream.editor.pygments_lexer:NeelLexer"


def test_the_sdist_holds_what_builds_and_tests_it_and_no_litter(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as sdist:
        names = [name.split("/", 1)[1] for name in sdist.getnames() if "/" in name]
    tops = {name.split("/")[0] for name in names}
    assert {"src", "tests", "docs", "pyproject.toml", "LICENSE", "README.md", "PKG-INFO"} <= tops
    litter = ("__pycache__", ".cache", ".venv", "node_modules", ".vsix", "_cache/")
    assert [name for name in names if any(part in name for part in litter)] == []
    assert built[".gz"].stat().st_size < LARGEST_SDIST
