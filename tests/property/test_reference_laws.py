"""Laws that hold of every query and history, checked on the reference evaluator alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nestream.language.ast import Composite, Exists, Negation, Operator, Pattern, Query
from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.logical.nodes import Plan, Proj, WinOr, positive
from nestream.model.time import WindowKind
from nestream.query import query
from tests.generators.choices import DrawnChoices
from tests.generators.histories import histories, types_of
from tests.generators.queries import GENERAL, any_query, valid_queries
from tests.generators.shapes import Style
from tests.property.meaning import matches, matches_of, one_negation_less

laws = settings(
    max_examples=int(os.environ.get("LAW_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
orders = st.sampled_from(["time", "arrival"])

PLAIN = replace(GENERAL, sase=0, exists=0, returns=0, limit=0)
POSITIVE = replace(PLAIN, negation=0)
NESTED_SEQUENCES = replace(
    PLAIN, roots=((1, "SEQ"),), inner=((8, "SEQ"), (1, "AND"), (1, "OR")), nested=60, nested_negation=60
)


@st.composite
def cases(draw: st.DrawFn, style: Style | None = None) -> tuple[str, pa.Table, str]:
    """A query, a history and an order."""
    text = any_query(DrawnChoices(draw)) if style is None else draw(valid_queries(style.max_depth, style))
    return text, draw(histories(types=types_of(text))), draw(orders)


# -- histories ---------------------------------------------------------------------------------------------


@laws
@given(cases(), st.integers(0, 20), st.integers(0, 14))
def test_an_event_of_a_type_that_the_query_does_not_mention_changes_nothing(
    case: tuple[str, pa.Table, str], ts: int, place: int
) -> None:
    text, table, order = case
    if query(text).plan.window.kind is WindowKind.EVENTS or "DIRECTLY " in text or "ANY any" in text:
        return  # these are about events of every type
    rows = table.to_pylist()
    rows.insert(place, {"ts": ts, "type": "Z", "id": 1, "x": 1, "n": -1})
    assert matches(text, pa.Table.from_pylist(rows, table.schema), order) == matches(text, table, order)


@laws
@given(cases())
def test_a_match_needs_only_the_events_of_a_window_around_it(case: tuple[str, pa.Table, str]) -> None:
    text, table, order = case
    window = query(text).plan.window
    if window.kind is WindowKind.UNBOUNDED:
        return
    rows = sorted(table.to_pylist(), key=lambda row: row["ts"])
    by_count = window.kind is WindowKind.EVENTS
    places = {row["n"]: place if by_count else row["ts"] for place, row in enumerate(rows)}
    reach = window.size - 1 if by_count else window.size
    for match in list(matches(text, table, order))[:5]:
        taken = [places[number] for _, number in match]
        kept = [row for row in rows if max(taken) - reach <= places[row["n"]] <= min(taken) + reach]
        assert match in matches(text, pa.Table.from_pylist(kept, table.schema), order)


@laws
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing_where_no_times_are_equal(
    case: tuple[str, pa.Table, str], random: st.DataObject
) -> None:
    text, table, order = case
    rows = sorted(table.to_pylist(), key=lambda row: row["ts"])
    rows = [{**row, "ts": 2 * row["ts"] + place} for place, row in enumerate(rows)]
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    expected = matches(text, pa.Table.from_pylist(rows, table.schema), order)
    assert matches(text, pa.Table.from_pylist(shuffled, table.schema), order) == expected


@laws
@given(cases())
def test_the_two_orders_agree_where_no_times_are_equal(case: tuple[str, pa.Table, str]) -> None:
    text, table, _ = case
    rows = [{**row, "ts": 20 * row["ts"] + place} for place, row in enumerate(table.to_pylist())]
    distinct = pa.Table.from_pylist(rows, table.schema)
    assert matches(text, distinct, "time") == matches(text, distinct, "arrival")


@laws
@given(cases(), st.integers(-50, 50))
def test_moving_all_events_in_time_changes_nothing_unless_a_predicate_reads_the_time(
    case: tuple[str, pa.Table, str], distance: int
) -> None:
    text, table, order = case
    if ".ts" in text or "ts " in text:
        return
    moved = [{**row, "ts": row["ts"] + distance} for row in table.to_pylist()]
    assert matches(text, pa.Table.from_pylist(moved, table.schema), order) == matches(text, table, order)


# -- operators ---------------------------------------------------------------------------------------------


@laws
@given(cases(replace(POSITIVE, roots=((1, "SEQ"),), step=0)))  # NEXT and DIRECTLY are of a SEQ alone
def test_the_matches_of_a_sequence_without_negation_are_among_those_of_the_conjunction(
    case: tuple[str, pa.Table, str],
) -> None:
    text, table, order = case
    tree = parse(text)
    assert isinstance(tree.pattern, Composite)
    conjunction = replace(tree, pattern=replace(tree.pattern, operator=Operator.AND))
    assert matches(text, table, order) <= matches(print_query(conjunction), table, order)


@laws
@given(cases(NESTED_SEQUENCES))
def test_a_sequence_in_a_sequence_equals_its_flattening(case: tuple[str, pa.Table, str]) -> None:
    text, table, order = case
    tree = parse(text)
    flat = print_query(replace(tree, pattern=flattened(tree.pattern)))
    assert matches(flat, table, order) == matches(text, table, order)


def flattened(pattern: Pattern) -> Pattern:
    """The pattern with every SEQ in a SEQ that has no window and no name replaced by its components."""
    match pattern:
        case Negation(body=body) | Exists(body=body):
            return replace(pattern, body=flattened(body))
        case Composite(operator=operator, components=components, predicates=predicates):
            inner: list[Pattern] = []
            for component in map(flattened, components):
                match component:
                    case Composite(Operator.SEQ, windows=(), variable=None) if operator is Operator.SEQ:
                        inner += component.components
                        predicates += component.predicates
                    case _:
                        inner.append(component)
            return replace(pattern, components=tuple(inner), predicates=predicates)
        case _:
            return pattern


@laws
@given(cases(replace(GENERAL, roots=((1, "OR"),), sase=40)))
def test_the_matches_of_an_or_are_the_union_of_those_of_its_branches(
    case: tuple[str, pa.Table, str],
) -> None:
    text, table, order = case
    root = query(text).plan.root
    assert isinstance(root, WinOr)

    def branch(number: int, plan: Plan) -> Plan:
        chosen = positive(root)[number]
        assert not isinstance(chosen, Proj)
        return replace(plan, root=replace(chosen, predicates=chosen.predicates + root.predicates))

    branches = [
        matches(text, table, order, lambda plan, number=number: branch(number, plan))  # type: ignore[misc]
        for number in range(len(root.components))
    ]
    assert matches(text, table, order) == set().union(*branches)


@laws
@given(cases(replace(PLAIN, negation=60)))
def test_negations_that_stand_side_by_side_commute(case: tuple[str, pa.Table, str]) -> None:
    text, table, order = case
    expected = matches(text, table, order)
    for swapped in swaps(parse(text)):
        assert matches(print_query(swapped), table, order) == expected


@laws
@given(cases(replace(PLAIN, roots=((1, "AND"), (1, "OR")), inner=((1, "AND"), (1, "OR"), (1, "SEQ")))))
def test_the_components_of_and_and_or_commute(case: tuple[str, pa.Table, str]) -> None:
    text, table, order = case
    tree = parse(text)
    turned = print_query(replace(tree, pattern=reversed_components(tree.pattern)))
    assert matches(turned, table, order) == matches(text, table, order)


def swaps(tree: Query) -> Iterator[Query]:
    """The query with two neighbouring negations of a SEQ swapped, in every place where there are two."""
    yield from (replace(tree, pattern=pattern) for pattern in _swaps(tree.pattern))


def _swaps(pattern: Pattern) -> Iterator[Pattern]:
    match pattern:
        case Negation(body=body) | Exists(body=body):
            yield from (replace(pattern, body=swapped) for swapped in _swaps(body))
        case Composite(components=parts):
            for place in range(len(parts) - 1):
                first, second = parts[place : place + 2]
                if isinstance(first, Negation) and isinstance(second, Negation):
                    yield replace(pattern, components=(*parts[:place], second, first, *parts[place + 2 :]))
            for place, part in enumerate(parts):
                for swapped in _swaps(part):
                    yield replace(pattern, components=(*parts[:place], swapped, *parts[place + 1 :]))
        case _:
            return


def reversed_components(pattern: Pattern) -> Pattern:
    """The pattern with the components of every AND and OR in the opposite order."""
    match pattern:
        case Negation(body=body) | Exists(body=body):
            return replace(pattern, body=reversed_components(body))
        case Composite(operator=operator, components=components):
            inner = tuple(map(reversed_components, components))
            return replace(pattern, components=inner if operator is Operator.SEQ else inner[::-1])
        case _:
            return pattern


# -- negations, windows, projections -----------------------------------------------------------------------


@laws
@given(cases())
def test_removing_a_negation_only_adds_matches(case: tuple[str, pa.Table, str]) -> None:
    text, table, order = case
    expected = matches(text, table, order)
    for fewer in one_negation_less(query(text).plan.root):
        assert expected <= matches(text, table, order, lambda plan, root=fewer: replace(plan, root=root))  # type: ignore[misc]


@laws
@given(cases(POSITIVE), st.integers(1, 5))
def test_a_wider_window_only_adds_matches_where_nothing_is_negated(
    case: tuple[str, pa.Table, str], wider: int
) -> None:
    text, table, order = case
    window = query(text).plan.window
    assert matches(text, table, order) <= matches(
        text, table, order, lambda plan: replace(plan, window=replace(window, size=window.size + wider))
    )


@laws
@given(cases(replace(GENERAL, returns=100, exists=20, limit=0)))
def test_a_projection_gives_the_distinct_rest_of_the_matches(case: tuple[str, pa.Table, str]) -> None:
    text, table, order = case
    read = query(text)
    kept = set(read.plan.output.kept)
    rest = {frozenset(pair for pair in match if pair[0] in kept) for match in matches(text, table, order)}
    rest.discard(frozenset())
    assert matches_of(read.plan, table, order) == rest
    assert read.match(table, order=order, strategy="reference").num_rows == len(rest)
