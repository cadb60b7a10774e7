"""The wheels and sdists of nestream and nestream-papers: contents, metadata, size, and nestream alone."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import nestream
import nestream_papers
from nestream.strategies import program_of, switches

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"nestream": ROOT, "nestream_papers": ROOT / "src" / "nestream_papers"}
LARGEST_WHEEL = 1_100_000
"""Bytes. The wheel is the text of the modules and little else, so this grows with the code alone."""
LARGEST_SDIST = 3_000_000

pytestmark = pytest.mark.xdist_group("distribution")  # so that each is built once


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels, built from the sdists, and the sdists, by package and suffix: `nestream.whl`."""
    folder = tmp_path_factory.mktemp("dist")
    for source in FOLDERS.values():
        _build(source, folder)
    return {f"{path.name.split('-')[0]}{path.suffix}": path for path in folder.iterdir()}


def _build(source: Path, folder: Path, *options: str) -> None:
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        *options,
        "--outdir",
        str(folder),
        str(source),
    ]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _metadata(wheel: Path) -> Message:
    name = "-".join(wheel.name.split("-")[:2])
    return Parser().parsestr(zipfile.ZipFile(wheel).read(f"{name}.dist-info/METADATA").decode())


def test_the_distributions_pass_twine(built: dict[str, Path]) -> None:
    assert set(built) == {f"{name}{suffix}" for name in FOLDERS for suffix in (".whl", ".gz")}
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built.values())]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


def test_the_wheel_holds_the_package_and_nothing_else(built: dict[str, Path]) -> None:
    names = zipfile.ZipFile(built["nestream.whl"]).namelist()
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


def test_the_wheel_is_small(built: dict[str, Path]) -> None:
    assert built["nestream.whl"].stat().st_size < LARGEST_WHEEL


def test_the_wheel_says_what_it_is_and_what_it_starts(built: dict[str, Path]) -> None:
    metadata = _metadata(built["nestream.whl"])
    assert metadata["Version"] == nestream.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    info = f"nestream-{nestream.__version__}.dist-info"
    entry_points = configparser.ConfigParser()
    entry_points.read_string(zipfile.ZipFile(built["nestream.whl"]).read(f"{info}/entry_points.txt").decode())
    assert entry_points["console_scripts"]["nestream"] == "nestream.cli.main:main"
    assert entry_points["pygments.lexers"]["neel"] == "nestream.editor.pygments_lexer:NeelLexer"


def test_the_sdist_holds_what_builds_and_tests_it_and_no_litter(built: dict[str, Path]) -> None:
    with tarfile.open(built["nestream.gz"]) as sdist:
        names = [name.split("/", 1)[1] for name in sdist.getnames() if "/" in name]
    tops = {name.split("/")[0] for name in names}
    assert {"src", "tests", "docs", "pyproject.toml", "LICENSE", "README.md", "PKG-INFO"} <= tops
    assert "src/nestream_papers/pyproject.toml" in names
    litter = ("__pycache__", ".cache", ".venv", "node_modules", ".vsix", "_cache/")
    assert [name for name in names if any(part in name for part in litter)] == []
    assert built["nestream.gz"].stat().st_size < LARGEST_SDIST


# -- nestream-papers ---------------------------------------------------------------------------------------


def test_the_wheel_of_the_papers_holds_their_package_and_nothing_else(built: dict[str, Path]) -> None:
    names = set(zipfile.ZipFile(built["nestream_papers.whl"]).namelist())
    package = FOLDERS["nestream_papers"]
    here = {str(path.relative_to(package.parent)) for path in package.rglob("*.py")}
    rest = {name for name in names if not name.startswith("nestream_papers-")}
    assert rest == {*here, "nestream_papers/py.typed"}


def test_the_wheel_of_the_papers_needs_exactly_its_own_version_of_nestream(built: dict[str, Path]) -> None:
    metadata = _metadata(built["nestream_papers.whl"])
    assert metadata["Name"] == "nestream-papers"
    assert metadata["Version"] == nestream.__version__ == nestream_papers.__version__
    assert metadata.get_all("Requires-Dist") == [f"nestream=={nestream.__version__}"]
    assert metadata["Requires-Python"] == ">=3.11"
    license = (FOLDERS["nestream_papers"] / "LICENSE").read_text(encoding="utf-8")
    assert license == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_wheel_of_the_papers_is_the_same_from_the_checkout_and_from_the_sdist(
    built: dict[str, Path], tmp_path: Path
) -> None:
    _build(FOLDERS["nestream_papers"], tmp_path, "--wheel")
    [wheel] = tmp_path.iterdir()
    assert wheel.read_bytes() == built["nestream_papers.whl"].read_bytes()


# -- the wheel of nestream alone ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of `without_papers.py` where nestream's wheel is installed and nestream-papers is not."""
    from pyspark import cloudpickle

    from nestream.runtime.spark.shipping import shipped

    folder = tmp_path_factory.mktemp("alone")
    zipfile.ZipFile(built["nestream.whl"]).extractall(folder)
    plan = nestream.query("SEQ(A a, B b) WITHIN 10").plan
    function = shipped(partial(map, program_of(plan, None, "nested").explain))
    (folder / "function").write_bytes(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
    paths = [str(folder), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "NUMBA_DISABLE_JIT": "1",  # compiling takes longer than these few events
    }
    script = Path(__file__).with_name("without_papers.py")
    ran = subprocess.run(  # -S: no .pth file leads to the sources
        [sys.executable, "-S", str(script), "function"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert Path(answer["from"]).is_relative_to(folder)
    return answer


def test_without_the_papers_every_use_of_their_strategies_says_what_to_install(alone: dict[str, Any]) -> None:
    named = {
        "match": "strategy 'views-balanced'",
        "batches": "strategy 'nested'",
        "count": "strategy 'flat'",
        "stream": "strategy 'nested'",
        "set": "strategy 'nested'",
        "stream of a set": "strategy 'nested'",
        "explain": "strategy 'nested'",
        "verbose": "the rewriting that verbose shows",
        "operators": "a plan in SASE's operators",
        "switch": "every option but memory",
        "switch of a set": "every option but memory",
        "graph": "the normal form of a plan",
    }
    command = f"{sys.executable} -m pip install ./src/nestream_papers"
    hint = f"  hint: in a checkout of nestream {nestream.__version__}: {command}"
    assert {name: said.splitlines()[:2] for name, said in alone["errors"].items()} == {
        name: [f"StrategyError: {what} is part of nestream-papers, which is not installed", hint]
        for name, what in named.items()
    }


def test_without_the_papers_a_command_that_needs_them_ends_with_a_sentence(alone: dict[str, Any]) -> None:
    for name, ran in alone["commands"].items():
        assert ran["exit"] == 1, name
        assert ran["said"].startswith("error: "), name
        assert "is part of nestream-papers, which is not installed\n  hint: " in ran["said"], name


def test_a_spark_worker_without_the_papers_says_so(alone: dict[str, Any]) -> None:
    assert alone["worker"].startswith("RuntimeError: Spark's Python workers cannot import nestream-papers: ")
    assert "install nestream-papers where the workers run" in alone["worker"]


def test_without_the_papers_everything_else_works(alone: dict[str, Any]) -> None:
    assert (alone["found"], alone["memory"], alone["switches"]) == (1, 1, [])
    assert alone["help"]["exit"] == alone["demo"]["exit"] == 0
    assert "nested" in alone["help"]["said"]  # a strategy is known by name even if it is not installed
    assert switches()
    rows = [(node["estimated_rows"], node["measured_rows"]) for node in alone["plan"]["nodes"]]
    assert rows == [(None, 1)] * 4
    assert alone["console"]["nested"] == alone["plan"]
    assert "is part of nestream-papers" in alone["console"]["rewritten"]["error"]


def test_doctor_reports_that_the_papers_are_missing(alone: dict[str, Any]) -> None:
    assert alone["doctor"]["ok"]
    [found] = [each for each in alone["doctor"]["findings"] if each["name"] == "papers"]
    said = "nestream-papers is not installed; a checkout of nestream has it"
    assert (found["state"], found["found"]) == ("missing", said)
    assert found["command"].endswith("-m pip install ./src/nestream_papers")
