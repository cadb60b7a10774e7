"""What the repository promises about itself: its commands, its pins, its layers, and that it is portable."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = (ROOT / "README.md").read_text()

# Joined from pieces, so that this file does not hold what it looks for.
REGISTRY_HOSTS = re.compile(
    "|".join(map(re.escape, ["pypi" + ".org", "pythonhosted" + ".org", "conda" + ".anaconda"]))
)
MACHINE_PATHS = re.compile(
    r"(?<![\w.~$}-])/(?:" + "|".join(["ro" + "ot", "wo" + "rk", r"ho" + r"me/\w+", r"Us" + r"ers/\w+"]) + ")/"
)

SKIPPED_FOLDERS = {".git", ".venv", "__pycache__", ".hypothesis", ".cache", "build", "dist"}
BINARY_SUFFIXES = {".parquet", ".png"}


def text_files() -> Iterator[Path]:
    """Every text file of the project, without asking git, which may not be there."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = sorted(
            name for name in subfolders if name not in SKIPPED_FOLDERS and not name.endswith("_cache")
        )
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix not in BINARY_SUFFIXES and name not in (".git", "uv.lock"):
                yield path


def shell_blocks(markdown: str) -> list[list[str]]:
    return [
        block.splitlines() for block in re.findall(r"^```sh\n(.*?)^```$", markdown, re.DOTALL | re.MULTILINE)
    ]


def pins(name: str) -> dict[str, list[str]]:
    """The pinned versions of a requirements file; a name has several where Python's version decides."""
    versions: dict[str, list[str]] = {}
    for line in (ROOT / "requirements" / f"{name}.txt").read_text().splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line):
            versions.setdefault(canonicalize_name(match[1]), []).append(match[2])
    return versions


def test_the_readme_opens_with_the_demo_and_the_tests_in_one_line_each() -> None:
    assert shell_blocks(README)[:2] == [["./scripts/demo"], ["./scripts/test"]]


def test_nothing_but_the_opening_words_stands_before_the_first_command() -> None:
    opening = README[: README.index("```sh")]
    assert [line for line in opening.splitlines() if line.startswith("#")] == ["# nestream"]


@pytest.mark.parametrize(
    "script",
    [
        "scripts/setup",
        "scripts/pin",
        "scripts/demo",
        "scripts/test",
        "scripts/slow-test",
        "scripts/matrix",
        "scripts/docs",
        ".ci/run",
    ],
)
def test_each_script_is_executable_and_names_its_shell(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert (ROOT / script).read_text().startswith("#!/bin/sh\n")


@pytest.mark.parametrize("script", ["scripts/test", "scripts/slow-test"])
def test_the_tests_ask_for_all_that_some_of_them_are_skipped_without(script: str) -> None:
    asked = re.findall(
        r"^    (--[a-z]+)\) [a-z]+=yes ;;$", (ROOT / "scripts/setup").read_text(), re.MULTILINE
    )
    assert {"--java", "--maven", "--browser"} <= set(asked)
    [command] = re.findall(r"^scripts/setup .*$", (ROOT / script).read_text(), re.MULTILINE)
    assert set(asked) <= set(command.split())


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    commands = [
        line
        for line in (ROOT / ".ci/run").read_text().splitlines()
        if line and not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["exec scripts/test"]


def test_the_quick_start_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    (match,) = names["matches"].to_pylist()
    assert (match["r"]["ts"], match["o"]["ts"]) == (1, 4)
    assert capsys.readouterr().out


@pytest.mark.parametrize("group", ["run", "dev", "docs", "bench", "fuzz"])
def test_every_dependency_is_pinned_within_its_range(group: str) -> None:
    wanted = PROJECT["project"]["dependencies"] if group == "run" else PROJECT["dependency-groups"][group]
    pinned = pins(group)
    for requirement in map(Requirement, wanted):
        versions = pinned.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement.name} is not pinned in requirements/{group}.txt; run scripts/pin"
        assert all(version in requirement.specifier for version in versions), (
            f"{requirement}; run scripts/pin"
        )


@pytest.mark.parametrize("group", ["dev", "docs", "bench", "fuzz"])
def test_what_is_installed_together_agrees(group: str) -> None:
    together = pins("run") | (pins("dev") if group != "dev" else {})
    assert {
        name: versions for name, versions in pins(group).items() if together.get(name, versions) != versions
    } == {}


def test_every_folder_is_in_a_contract_and_on_the_architecture_page() -> None:
    folders = {path.parent.name for path in (ROOT / "src/nestream").glob("*/__init__.py")}
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    guarded = {
        module.removeprefix("nestream.")
        for contract in contracts
        for module in [*contract.get("protected_modules", []), *contract.get("forbidden_modules", [])]
    }
    page = (ROOT / "docs/how-it-works/architecture.md").read_text()
    assert folders <= guarded
    assert {folder for folder in folders if f"| `{folder}/` |" not in page} == set()


def test_links_between_the_documents_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in text_files()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("pattern", [REGISTRY_HOSTS, MACHINE_PATHS], ids=["registry-hosts", "machine-paths"])
def test_no_file_depends_on_one_machine_or_registry(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in text_files()
        for match in pattern.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []
