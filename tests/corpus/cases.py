"""Reads and writes the files of cases: tests/corpus/README.md describes the format.

A case keeps the lines it was read from, so that an update changes its results and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

FOLDER = Path(__file__).parent
HEADING = "== "
OPTIONS = ("dialect", "order", "letters", "types", "columns")
RESULTS = ("expect", "error", "warning", "explain", "rewriting")
KEYWORDS = ("query", "events", *OPTIONS, *RESULTS)
_SECTION = re.compile(rf"({'|'.join(KEYWORDS)}):(.*)")


class CaseError(ValueError):
    """A file of cases that does not follow the format."""


@dataclass
class Section:
    """A keyword with its text; `comments` are the lines that stand before it."""

    keyword: str
    lines: list[str]
    comments: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What the section says."""
        return "\n".join(self.lines)

    def written(self) -> Iterator[str]:
        """The section as lines of a file: one line on its own stands beside the keyword."""
        yield from self.comments
        if len(self.lines) == 1 and self.keyword not in ("query", "explain", "rewriting"):
            yield f"{self.keyword}: {self.lines[0]}".rstrip()
        else:
            yield f"{self.keyword}:"
            yield from (f"    {line}".rstrip() for line in self.lines)


@dataclass
class Case:
    """One case: a query with options, and what it gives."""

    path: Path
    name: str
    sections: list[Section]

    def one(self, keyword: str) -> str | None:
        """The text of a section, None where the case has none."""
        found = [section for section in self.sections if section.keyword == keyword]
        if len(found) > 1:
            raise CaseError(f"{self.path.name}: {self.name}: several sections `{keyword}`")
        return found[0].text if found else None

    @property
    def query(self) -> str:
        """The text of the query."""
        text = self.one("query")
        if text is None:
            raise CaseError(f"{self.path.name}: {self.name}: no query")
        return text

    @property
    def letters(self) -> Mapping[str, str]:
        """The types of the short names, `r=Recycle w=Washing`."""
        pairs = re.findall(r"([a-z]+)=(`[^`]+`|\S+)", self.one("letters") or "")
        return {short: kind.strip("`") for short, kind in pairs}

    @property
    def columns(self) -> tuple[str, str]:
        """The columns of the time and of the type of the events."""
        time, kind = (self.one("columns") or "ts type").split()
        return time, kind

    @property
    def types(self) -> Mapping[str, list[str]] | None:
        """The attributes of each type, `A(id, x) B(id)`, None where the case does not say."""
        text = self.one("types")
        if text is None:
            return None
        found = re.findall(r"([\w-]+)\(([^)]*)\)", text)
        return {name: [item.strip() for item in names.split(",") if item.strip()] for name, names in found}

    @property
    def runs(self) -> list[tuple[Section, Section | None]]:
        """Every history with the matches that are expected of it."""
        runs: list[tuple[Section, Section | None]] = []
        for section in self.sections:
            if section.keyword == "events":
                runs.append((section, None))
            elif section.keyword == "expect":
                if not runs or runs[-1][1] is not None:
                    raise CaseError(f"{self.path.name}: {self.name}: `expect` without `events` before it")
                runs[-1] = (runs[-1][0], section)
        return runs

    def written(self) -> Iterator[str]:
        """The case as lines of a file."""
        yield HEADING + self.name
        for section in self.sections:
            yield from section.written()


@dataclass
class CaseFile:
    """A file of cases, with the lines before its first one."""

    path: Path
    preface: list[str]
    cases: list[Case]

    def write(self) -> None:
        """Write the file anew."""
        lines = list(self.preface)
        for case in self.cases:
            lines += ["", *case.written()] if lines else list(case.written())
        self.path.write_text("\n".join(lines).strip("\n") + "\n", encoding="utf-8")


def read_file(path: Path) -> CaseFile:
    """The cases of a file."""
    text = path.read_text(encoding="utf-8")
    preface, *parts = re.split(rf"^{HEADING}", text, flags=re.MULTILINE)
    cases = [_read_case(path, part) for part in parts]
    return CaseFile(path, preface.rstrip("\n").splitlines(), cases)


def read_all(folder: Path = FOLDER) -> list[Case]:
    """Every case below the folder, in the order of the files' names."""
    return [case for path in sorted(folder.rglob("*.case")) for case in read_file(path).cases]


def _read_case(path: Path, text: str) -> Case:
    name, *lines = text.splitlines()
    case = Case(path, name.strip(), [])
    comments: list[str] = []
    while lines:
        line = lines.pop(0)
        if not line.strip():
            continue
        if line.startswith("#"):
            comments.append(line)
            continue
        found = _SECTION.fullmatch(line)
        if found is None:
            raise CaseError(f"{path.name}: {case.name}: cannot read {line!r}")
        body = [found[2].strip()] if found[2].strip() else []
        block = []
        while lines and (lines[0].startswith(" ") or not lines[0].strip()):
            block.append(lines.pop(0))
        body += dedent("\n".join(block)).strip("\n").splitlines() if any(map(str.strip, block)) else []
        case.sections.append(Section(found[1], body, comments))
        comments = []
    if comments:
        raise CaseError(f"{path.name}: {case.name}: a comment after the last section")
    return case
