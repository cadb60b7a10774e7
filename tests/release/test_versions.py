"""Every file that names the version agrees, and the papers are cited as docs/papers/index.md has them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import nestream
import nestream_papers
from tests.cli.commands import call

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    """The text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_stands_in_one_place_and_every_file_agrees() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"] == {"path": "src/nestream/__init__.py"}
    papers = tomllib.loads(text("src/nestream_papers/pyproject.toml"))
    assert nestream_papers.__version__ == nestream.__version__
    assert papers["tool"]["hatch"]["version"] == {"path": "__init__.py"}
    assert papers["project"]["dependencies"] == [f"nestream=={nestream.__version__}"]
    assert papers["project"]["requires-python"] == project["project"]["requires-python"]
    assert call("--version").stdout == f"nestream {nestream.__version__}\n"
    cited = re.search(r"^version: (.*)$", text("CITATION.cff"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == nestream.__version__
    assert json.loads(text("editors/vscode/package.json"))["version"] == nestream.__version__
    assert f"neel-{nestream.__version__}.vsix" in text("editors/vscode/README.md")


def test_the_changelog_has_a_section_for_the_version_and_one_for_what_comes() -> None:
    found = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d{2}-\d{2}))?$", text("CHANGELOG.md"), re.MULTILINE)
    assert found[0] == ("Unreleased", "")
    assert nestream.__version__ in [name for name, _ in found]
    assert all(date for _, date in found[1:])


def test_the_five_papers_are_cited_with_the_titles_and_authors_of_the_papers_page() -> None:
    cited = text("CITATION.cff").split("references:")[1].split("\n  - type: ")[1:]
    page = re.findall(r"^([A-Z][\w, ]+): \*(.*?)\*\.$", text("docs/papers/index.md"), re.MULTILINE)
    assert len(cited) == len(page) == 5
    known = {title: [name.strip() for name in names.split(",")] for names, title in page}
    for reference in cited:
        title = re.search(r'^    title: "?(.*?)"?$', reference, re.MULTILINE)
        assert title is not None
        assert re.findall(r"family-names: ([\w-]+)", reference) == known[title[1]]


def test_the_support_page_names_what_the_package_declares() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    declared = [line.rsplit(" ", 1)[1] for line in project["classifiers"] if ":: Python :: 3." in line]
    rows = re.findall(r"^\| (3\.\d+)\.\d+ \|", text("docs/reference/support.md"), re.MULTILINE)
    assert rows == declared
