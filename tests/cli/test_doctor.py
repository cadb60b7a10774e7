"""`nestream doctor`: versions, what is missing, and the command that installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream.model.extras import EXTRAS, needs, satisfies
from tests.cli.commands import ROOT, call, environment


def test_what_is_installed_is_listed_with_its_version() -> None:
    result = call("doctor")
    assert result.exit_code == 0
    for name in ("nestream", "Python", "pyarrow", "numba", "engine", "java", *EXTRAS):
        assert name in result.stdout
    assert f"nestream  {nestream.__version__}" in result.stdout
    assert "nestream works" in result.stdout


def test_the_answer_for_programs_has_the_same_findings() -> None:
    result = call("doctor", "--format", "json")
    answer = json.loads(result.stdout)
    assert (answer["ok"], answer["version"]) == (True, nestream.__version__)
    found = {each["name"]: each for each in answer["findings"]}
    assert found["engine"] == {
        "name": "engine",
        "state": "ok",
        "found": "works",
        "purpose": "",
        "command": None,
    }
    assert found["Python"]["found"].startswith(".".join(map(str, sys.version_info[:3])))


@pytest.mark.parametrize(
    ("home", "path", "said"),
    [
        ("/nowhere", None, "/nowhere/bin/java does not run"),
        (None, "/nowhere", "not found"),
    ],
)
def test_without_java_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch, home: str | None, path: str | None, said: str
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:
        monkeypatch.setenv("JAVA_HOME", home)
    if path:
        monkeypatch.setenv("PATH", path)
    result = call("doctor", "--format", "json")
    [java] = [each for each in json.loads(result.stdout)["findings"] if each["name"] == "java"]
    assert java["state"] == "missing"
    assert said in java["found"]
    assert java["command"]
    assert result.exit_code == 0  # nestream itself works


def test_an_old_java_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = call("doctor", "--format", "json")
    [found] = [each for each in json.loads(result.stdout)["findings"] if each["name"] == "java"]
    assert found["found"] == f"8.0_392 of JAVA_HOME {tmp_path} is too old"


def test_what_is_missing_or_too_old_is_named_with_the_exact_command(tmp_path: Path) -> None:
    """What nestream's own metadata asks for decides, so other metadata is put before it."""
    answer = _with_metadata(
        tmp_path,
        "Requires-Dist: lark>=99",
        "Requires-Dist: no-such-package<3,>=2",
        "Requires-Dist: starlette>=0.45; extra == 'console'",
        "Requires-Dist: no-such-server>=1; extra == 'console'",
    )
    assert answer["exit"] == 1
    found = {each["name"]: each for each in answer["findings"]}
    assert found["lark"]["state"] == "broken"
    assert found["lark"]["found"].endswith("but lark>=99 is needed")
    assert found["no-such-package"]["found"] == "not installed"
    assert found["no-such-package"]["command"] == f"{sys.executable} -m pip install 'no-such-package<3,>=2'"
    assert found["console"]["state"] == "missing"
    assert found["console"]["command"] == f"{sys.executable} -m pip install 'no-such-server>=1'"


def _with_metadata(folder: Path, *lines: str) -> dict[str, Any]:
    """The answer of the program where the metadata of nestream says something else."""
    known = folder / "nestream-0.2.0.dist-info"
    known.mkdir()
    head = ["Metadata-Version: 2.1", "Name: nestream", "Version: 0.2.0"]
    (known / "METADATA").write_text("\n".join([*head, *lines, ""]))
    paths = os.pathsep.join([str(folder), str(ROOT / "src")])
    program = "from nestream.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", program, "doctor", "--format", "json"],
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=paths),
    )
    return {"exit": ran.returncode, **json.loads(ran.stdout)}


def test_every_extra_of_the_package_is_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])


@pytest.mark.parametrize(
    ("version", "requirement", "held"),
    [
        ("1.3.1", "lark>=1.2", True),
        ("1.1", "lark>=1.2", False),
        ("0.28.0", "typer<0.29,>=0.15", True),
        ("0.29.1", "typer<0.29,>=0.15", False),
        ("2.0.0rc1", "numpy>=2.0", True),
        ("10.0", "pyarrow>=18", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, requirement: str, held: bool) -> None:
    assert satisfies(version, requirement) is held


def test_a_missing_extra_is_one_sentence_and_a_command() -> None:
    message, hint = needs("Avro", "fastavro", "avro").split("\n")
    assert message == "Avro needs the package fastavro, which is not installed"
    assert hint.startswith("  hint: ")
    assert "pip install" in hint
