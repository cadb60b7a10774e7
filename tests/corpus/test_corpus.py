"""Runs every case of the corpus in every configuration; those of the papers' switches are slow tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

import nestream
from nestream.logical.nodes import has_groups as has_group
from nestream.model.diagnostics import Diagnostic
from tests.corpus.cases import Case, Section, read_all, read_file
from tests.corpus.configurations import CONFIGURATIONS, EVERY_TIME, GROUPED
from tests.corpus.notation import read_history, write_matches

CASES = read_all()
NOTHING = ["none"]


@dataclass
class Outcome:
    """What a case gives: matches for every history, diagnostics, a plan."""

    matches: list[list[str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    explain: list[str] = field(default_factory=list)
    rewriting: list[str] = field(default_factory=list)
    message: str = ""


def outcome(case: Case, configuration: str) -> Outcome:
    """Run the case: bind its query, then match every history."""
    result = Outcome()
    try:
        query = nestream.query(case.query, case.one("dialect"))
        result.warnings = shown(query.warnings, case.query)
        result.explain = query.explain().splitlines()
        if case.one("rewriting") is not None:
            told = query.explain(verbose=True).splitlines()
            result.rewriting = told[told.index("Rewriting") :]
        for events, _ in case.runs:
            time, kind = case.columns
            table = read_history(events.text, case.letters, case.columns).table()
            order = case.one("order") or "time"
            run = CONFIGURATIONS[configuration]
            matches = run(query, table, order=order, types=case.types, time=time, type=kind)
            result.matches.append(write_matches(matches, time) or NOTHING)
    except nestream.QueryError as problem:
        result.errors = shown([d for d in problem.diagnostics if d.is_error], case.query)
        result.warnings = shown([d for d in problem.diagnostics if not d.is_error], case.query)
        result.message = str(problem)
    return result


def shown(diagnostics: list[Diagnostic] | tuple[Diagnostic, ...], text: str) -> list[str]:
    """Diagnostics as a case writes them: the code and the text that it points at."""
    return [
        f"{item.code}: {' '.join(text[item.span.start : item.span.end].split())}".rstrip()
        for item in diagnostics
    ]


def has_groups(case: Case) -> bool:
    """Whether the case runs a query with groups, which the papers' strategies do not."""
    if case.path.stem != "groups" or case.one("error") is not None:
        return False
    return has_group(nestream.query(case.query, case.one("dialect")).plan)


def identity(case: Case) -> str:
    return f"{case.path.stem}: {case.name}"


@pytest.mark.parametrize(
    "configuration",
    [name if name in EVERY_TIME else pytest.param(name, marks=pytest.mark.slow) for name in CONFIGURATIONS],
)
@pytest.mark.parametrize("case", CASES, ids=identity)
def test_a_case_gives_what_it_says(case: Case, configuration: str, update: bool) -> None:
    if configuration not in GROUPED and has_groups(case):
        with pytest.raises(ValueError, match="groups do not run with"):
            outcome(case, configuration)
        return
    result = outcome(case, configuration)
    if update:
        if configuration == next(iter(CONFIGURATIONS)):
            rewrite(case, result)
        return
    if case.one("error") is None:
        assert not result.errors, result.message
    assert (case.one("error") or "").splitlines() == result.errors
    for (events, expected), found in zip(case.runs, result.matches, strict=not result.errors):
        assert expected is not None, "a history without `expect`"
        assert found == expected.lines, f"of the events {events.text}"
    for keyword, lines in (
        ("warning", result.warnings),
        ("explain", result.explain),
        ("rewriting", result.rewriting),
    ):
        if case.one(keyword) is not None:
            assert lines == (case.one(keyword) or "").splitlines()


def rewrite(case: Case, result: Outcome) -> None:
    """Write the outcome into the case's file, in place of what stands there."""
    if result.errors and any(expected is not None for _, expected in case.runs):
        pytest.fail(
            f"a case that expects matches gives an error now; its file is left as it is\n{result.message}"
        )
    sections: list[Section] = []
    found = iter(result.matches)
    for section in case.sections:
        if section.keyword in ("expect", "error"):
            continue
        if section.keyword == "warning":
            section.lines = result.warnings
        if section.keyword == "explain" and not result.errors:
            section.lines = result.explain
        if section.keyword == "rewriting" and not result.errors:
            section.lines = result.rewriting
        sections.append(section)
        if section.keyword == "events" and not result.errors:
            sections.append(Section("expect", next(found)))
    if result.errors:
        sections.append(Section("error", result.errors))
    case.sections = sections
    file = read_file(case.path)
    file.cases = [case if other.name == case.name else other for other in file.cases]
    file.write()


def test_every_case_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(map(identity, CASES)).items() if count > 1] == []


def test_every_case_expects_something() -> None:
    assert [identity(case) for case in CASES if not (case.runs or case.one("error"))] == []
