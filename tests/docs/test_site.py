"""The documentation site: a complete navigation, links that lead somewhere, a build without warnings."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nestream

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.DOTALL | re.MULTILINE)


def listed(nav: Any) -> Iterator[str]:
    """The pages of the navigation, in its order."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from listed(part)


def prose(page: str) -> str:
    """The text of a page without its blocks of code."""
    return FENCE.sub("", (DOCS / page).read_text(encoding="utf-8"))


def anchors(page: str) -> set[str]:
    """The anchors of the headings of a page, and the names of the objects that it documents."""
    text = prose(page)
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE):
        words = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading))
        slug = re.sub(r"[\s-]+", "-", words.strip().lower())
        found[slug] = found.get(slug, -1) + 1
    numbered = {slug if not n else f"{slug}_{n}" for slug, most in found.items() for n in range(most + 1)}
    return numbered | set(re.findall(r"^::: (\S+)", text, re.MULTILINE))


def test_the_navigation_lists_every_page_once() -> None:
    in_nav = list(listed(SITE["nav"]))
    assert sorted(in_nav) == [page for page in PAGES if not page.startswith("design/")]


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(page))):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        found = (DOCS / page).parent.joinpath(path).resolve() if path else DOCS / page
        inside = found.is_relative_to(DOCS) and found.is_file()
        if not inside or (anchor and anchor not in anchors(found.relative_to(DOCS).as_posix())):
            broken.append(target)
    assert broken == []


def test_the_code_names_pages_that_exist() -> None:
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "examples")]
    files = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".neel", ".case"}
    ]
    named = {
        f"{path.relative_to(ROOT)}: {page}"
        for path in files
        if path.is_file()
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
        if not (ROOT / page).is_file()
    }
    assert named == set()


@pytest.mark.parametrize("name", nestream.__all__)
def test_everything_public_is_in_the_api_reference(name: str) -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    documented = set(re.findall(r"^::: (\S+)", pages, re.MULTILINE))
    module = f"nestream.{nestream._MODULES[name]}"
    assert {module, f"{module}.{name}"} & documented


def test_the_pages_load_nothing_from_elsewhere() -> None:
    assert SITE["theme"]["font"] is False
    assert [
        item for key in ("extra_css", "extra_javascript") for item in SITE.get(key, []) if "//" in item
    ] == []


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("zensical")
    shutil.copytree(DOCS, tmp_path / "docs")  # in a folder of its own, so that nothing is left in this one
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    for name in ("src", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert {page.removesuffix(".md") + ".html" for page in PAGES} <= pages
    outside = r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]+"'
    assert re.findall(outside, (tmp_path / "site" / "index.html").read_text(encoding="utf-8")) == []
