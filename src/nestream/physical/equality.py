"""Finds keys: the attributes that equality predicates make equal in every variable of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from nestream.engine.program import Equality
from nestream.model.expression import Attribute, Comparison, Expression
from nestream.model.schema import Kind

Term = tuple[str, str]
"""A variable and one of its attributes."""

KindOf = Callable[[str], Kind]


def split_equalities(
    predicates: Iterable[Expression], kind_of: KindOf
) -> tuple[list[Equality], list[Expression]]:
    """Split predicates into equalities between attributes of two variables, and the rest."""
    equalities: list[Equality] = []
    rest: list[Expression] = []
    for predicate in predicates:
        if isinstance(predicate, Comparison) and predicate.operator == "=":
            for pair in pairwise(predicate.operands):
                equality = _equality(pair, kind_of)
                if equality is None:
                    rest.append(Comparison("=", pair, predicate.span))
                else:
                    equalities.append(equality)
        else:
            rest.append(predicate)
    return equalities, rest


def _equality(pair: tuple[Expression, Expression], kind_of: KindOf) -> Equality | None:
    left, right = pair
    if not isinstance(left, Attribute) or not isinstance(right, Attribute):
        return None
    if left.variable is None or right.variable is None or left.variable == right.variable:
        return None
    if kind_of(left.name) is not kind_of(right.name):  # an integer is compared with a float as a float
        return None
    return Equality((left.variable, left.name), (right.variable, right.name))


def classes(equalities: Sequence[Equality]) -> list[frozenset[Term]]:
    """The sets of terms that the equalities make equal, ordered by their first term."""
    parent: dict[Term, Term] = {}

    def find(term: Term) -> Term:
        parent.setdefault(term, term)
        while parent[term] != term:
            parent[term] = parent[parent[term]]
            term = parent[term]
        return term

    for equality in equalities:
        parent[find(equality.right)] = find(equality.left)
    sets: dict[Term, set[Term]] = {}
    for term in list(parent):
        sets.setdefault(find(term), set()).add(term)
    return [frozenset(terms) for terms in sets.values()]


def covering(
    found: Sequence[frozenset[Term]], variables: Sequence[str]
) -> Iterator[tuple[frozenset[Term], Mapping[str, str]]]:
    """The classes with a term of every variable, each with the attribute for each variable."""
    for terms in found:
        serving = {name: min(a for v, a in terms if v == name) for name in variables if _has(terms, name)}
        if len(serving) == len(variables):
            yield terms, serving


def _has(terms: frozenset[Term], variable: str) -> bool:
    return any(name == variable for name, _ in terms)


def key_of(
    equalities: Sequence[Equality], variables: Sequence[str]
) -> tuple[Mapping[str, tuple[str, ...]] | None, list[Equality]]:
    """The attributes that are equal in all variables, and the equalities that this does not cover."""
    keys = [serving for _, serving in covering(classes(equalities), variables)] if len(variables) > 1 else []
    if not keys:
        return None, list(equalities)
    key = {name: tuple(serving[name] for serving in keys) for name in variables}
    rest = [e for e in equalities if not any(_covers(serving, e) for serving in keys)]
    return key, rest


def _covers(serving: Mapping[str, str], equality: Equality) -> bool:
    """Whether the equality follows from the key: both terms are key attributes of their variables."""
    return all(serving.get(name) == attribute for name, attribute in (equality.left, equality.right))


def linked_key(
    own: Sequence[Equality], facts: Sequence[Equality], inner: Sequence[str], outer: Sequence[str]
) -> tuple[Mapping[str, tuple[str, ...]] | None, tuple[str, tuple[str, ...]] | None] | None:
    """The key of a negation: its inner attributes, and the outer variable and attributes that they equal.

    `own` are the negation's equalities, `facts` those of the outer match, and `outer` its variables, nearest
    first. Returns None if some equality of the negation does not follow from a key of all its variables.
    """
    if not own:
        return None, None
    mentioned = {term for equality in own for term in (equality.left, equality.right)}
    keys = [
        (terms, serving) for terms, serving in covering(classes([*own, *facts]), inner) if terms & mentioned
    ]
    if any(
        not any(term in terms and serving.get(term[0], term[1]) == term[1] for terms, serving in keys)
        for term in mentioned
    ):
        return None
    key = {name: tuple(serving[name] for _, serving in keys) for name in inner}
    outer_terms = {term for term in mentioned if term[0] not in inner}
    if not outer_terms:
        return key, None
    link = _link(keys, outer)
    if link is None or not _known_equal(outer_terms, link, keys, facts):
        return None
    return key, link


def _link(
    keys: Sequence[tuple[frozenset[Term], Mapping[str, str]]], outer: Sequence[str]
) -> tuple[str, tuple[str, ...]] | None:
    """The nearest outer variable with a term in every key class."""
    for name in outer:
        if all(_has(terms, name) for terms, _ in keys):
            return name, tuple(min(a for v, a in terms if v == name) for terms, _ in keys)
    return None


def _known_equal(
    outer_terms: Iterable[Term],
    link: tuple[str, tuple[str, ...]],
    keys: Sequence[tuple[frozenset[Term], Mapping[str, str]]],
    facts: Sequence[Equality],
) -> bool:
    """Whether the outer match makes all outer terms equal to the link, class by class."""
    known = classes(facts)
    for place, (terms, _) in enumerate(keys):
        anchor = (link[0], link[1][place])
        for term in outer_terms:
            if term in terms and term != anchor and not any({term, anchor} <= equal for equal in known):
                return False
    return True
