"""The laws of objects: they write every query that the text writes, and mean the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import nestream
from nestream.language.ast import Query
from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.language.type_header import header_types
from nestream.model.diagnostics import QueryError
from tests.corpus.cases import Case, read_all
from tests.corpus.notation import read_history
from tests.generators.language import random_query
from tests.generators.queries import GROUPS
from tests.generators.queries import random_query as meaningful_query
from tests.objects.from_tree import query_of
from tests.property.cases import random_case


def parsed(text: str, dialect: str | None = None) -> Query | None:
    try:
        return parse(text, dialect)
    except QueryError:
        return None


CASES = [
    case
    for case in read_all()
    if parsed(case.query, case.one("dialect")) is not None and not header_types(case.query)[1]
]


def check(tree: Query) -> str:
    """The text of the objects of a tree, which reads as the same tree."""
    text = str(query_of(tree))
    assert text == print_query(tree)
    assert parse(text) == tree
    return text


def outcome(query: Any, case: Case, types: Any = None) -> list[Any]:
    """The plan and the matches of a query, or the codes of what is wrong with it."""
    try:
        checked = nestream.query(query, case.one("dialect"))
        checked = checked.with_types(types) if types else checked
        found: list[Any] = [checked.bound.tree, checked.plan]
        time, kind = case.columns
        for events, _ in case.runs:
            table = read_history(events.text, case.letters, case.columns).table()
            order = case.one("order") or "time"
            how: Any = {"order": order, "types": case.types, "time": time, "type": kind}
            found.append(repr(checked.match(table, strategy="reference", **how).to_pylist()))
        return found
    except QueryError as error:
        return sorted({said.code for said in error.diagnostics})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}: {case.name}")
def test_objects_write_every_query_of_the_corpus_and_match_the_same(case: Case) -> None:
    tree = parse(case.query, case.one("dialect"))
    check(tree)
    of_text = outcome(case.query, case)
    of_objects = outcome(query_of(tree), case, header_types(case.query)[0])
    assert of_objects == of_text or of_objects == ["event-not-in-pattern"] != of_text[:1]


@pytest.mark.parametrize("block", range(2))
def test_objects_write_random_trees(block: int) -> None:
    for seed in range(block * 500, (block + 1) * 500):
        check(random_query(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_objects_write_very_many_random_trees(block: int) -> None:
    for seed in range(50_000 + block * 5000, 50_000 + (block + 1) * 5000):
        check(random_query(seed))


@pytest.mark.parametrize("groups", [False, True], ids=["events", "groups"])
def test_objects_write_random_queries_that_mean_something(groups: bool) -> None:
    for seed in range(200):
        text = meaningful_query(Random(f"objects/{seed}"), GROUPS if groups else None)
        tree = parse(text)
        check(tree)
        assert nestream.query(query_of(tree)).plan == nestream.query(text).plan


@pytest.mark.parametrize("groups", [False, True], ids=["events", "groups"])
def test_objects_match_as_the_text_does(groups: bool) -> None:
    for index in range(15):
        case = random_case(191, index, groups=groups)
        built = nestream.query(query_of(parse(case.text)))
        expected = nestream.query(case.text).match(case.table, order=case.order, strategy="reference")
        found = built.match(case.table, order=case.order, strategy="reference")
        assert repr(found.to_pylist()) == repr(expected.to_pylist())  # where NaN is NaN
