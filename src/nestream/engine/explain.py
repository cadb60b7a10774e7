"""The operators of a native program as an indented tree, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nestream.engine.block import Block, Negation, why_no_range
from nestream.engine.operator import Measured
from nestream.engine.operators.chain import Chain
from nestream.engine.operators.derived import MatchStair
from nestream.engine.operators.grouped import Grouped, counted_by
from nestream.engine.operators.operator import PhysicalOperator
from nestream.engine.program import EVENT, Decided, Edge, Interval, Program, Scope
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import Attribute, Expression, transform
from nestream.model.text import print_expression, print_name, quantity_text

EMITTED = {
    Decided.LAST: "a match is emitted with its last event",
    Decided.CLOSED: "a match is emitted when the time of its last event has passed",
    Decided.WINDOW: "a match is emitted when the window of its first event has passed",
}


def explain_native(
    operators: Sequence[PhysicalOperator], scope: Scope, measured: Sequence[Measured] = ()
) -> str:
    """The operators as indented text, with their measurements if they have run."""
    lines = ["Engine"]
    depth = 1
    keep = scope.keep if isinstance(scope, Program) else None
    if keep is not None:
        one = operators[0] if len(operators) == 1 and not scope.distinct else None
        how = "of the matches in the order of the output"
        if isinstance(one, Chain) and one.chooses(keep):
            how = "one match an event, without building the others"
        lines.append(f"  Keep {keep}, {how}")
        depth += 1
    if len(operators) > 1:
        lines.append("  " * depth + "Union" + (", then Distinct" if scope.distinct else ""))
        depth += 1
    elif scope.distinct:
        lines.append("  " * depth + "Distinct")
        depth += 1
    for number, (operator, decided) in enumerate(zip(operators, scope.decided, strict=True)):
        lines.append("  " * depth + f"{_headline(operator)}; {EMITTED[decided]}")
        lines += ["  " * (depth + 1) + line for line in _inside(operator, scope)]
        if measured:
            found = measured[number]
            lines.append(
                "  " * (depth + 1) + f"measured: {found.matches:,} found in {found.seconds * 1e3:,.2f} ms"
            )
    return "\n".join(lines)


def _headline(operator: PhysicalOperator) -> str:
    block = operator.block
    steps = operator.steps if isinstance(operator, Chain) else [(name,) for name in block.leaves]
    parts = [f"{operator.name} ({', '.join(map(_step, steps))})"]
    if block.key:
        parts.append(f"by key {key_text(block.key)}")
    if block.equalities:
        parts.append(
            "looking up " + ", ".join(f"{term_text(e.left)} = {term_text(e.right)}" for e in block.equalities)
        )
    predicates = operator.filters if isinstance(operator, Chain) else block.predicates
    if predicates:
        parts.append("where " + ", ".join(map(print_expression, predicates)))
    if isinstance(operator, Chain) and operator.ranges:
        parts.append("as ranges " + ", ".join(map(print_expression, operator.ranges)))
    return ", ".join(parts)


def _step(names: Sequence[str]) -> str:
    text = ", ".join(map(print_name, names))
    return text if len(names) == 1 else f"AND({text})"


def _inside(operator: PhysicalOperator, scope: Scope) -> Iterator[str]:
    """The scans of an operator and its negations, one line each."""
    block = operator.block
    for name, leaf in block.leaves.items():
        yield _scan(name, leaf, scope)
    if isinstance(operator, Grouped):
        operator = operator.candidates
    if isinstance(operator, Chain):
        for composite in operator.composites:
            names = ", ".join(map(print_name, composite.names))
            otherwise = "" if composite.is_optional else ", else all are joined"
            yield f"{composite.operator.name} ({names}): a composite step where that is less work{otherwise}"
    for negation in block.negations:
        yield from _negation(negation, scope)
    yield from _groups(block, scope, counted_by(operator))


def _groups(block: Block, scope: Scope, counted: frozenset[str] = frozenset()) -> Iterator[str]:
    """The groups of a block, how their members are found, and the predicates over them."""
    for group in block.groups:
        quantity = quantity_text(group.least, group.most)
        where = interval_text(group.interval)
        reason = why_no_range(group)
        how = "members are a range of a stack" if reason is None else f"members by LateralJoin, as {reason}"
        if group.variable in counted:
            how += ", counted back from the step after it"
        yield f"Group {print_name(group.variable)} {quantity} {where}: {how}"
        for one in group.alternatives:
            yield from (f"  {_scan(name, leaf, scope)}" for name, leaf in one.block.leaves.items())
            for negation in one.block.negations:
                yield from (f"  {line}" for line in _negation(negation, scope))
            yield from (f"  {line}" for line in _groups(one.block, scope))
    if block.judged:
        yield f"judged by {', '.join(map(print_expression, block.judged))}"


def _scan(name: str, leaf: int, scope: Scope) -> str:
    spec = scope.leaves[leaf]
    if ANY_TYPE in spec.types:
        types = "ANY"
    else:
        names = [print_name(kind) for kind in spec.types]
        types = names[0] if len(names) == 1 else f"ANY({', '.join(names)})"
    filters = ", ".join(filters_text(name, spec.filters))
    return f"Scan {types} {print_name(name)}" + (f" where {filters}" if filters else "")


def _negation(negation: Negation, scope: Scope) -> Iterator[str]:
    names = ", ".join(map(print_name, negation.block.leaves))
    where = interval_text(negation.interval)
    if negation.derived is None:
        yield f"! LateralJoin ({names}) {where}: {negation.reason}"
    else:
        by = f" by {', '.join(term_text(term) for term in negation.link)}" if negation.link else ""
        yield f"! Derived ({names}) {where}{by}: {negation.reason}"
    inner: Block = negation.block
    if negation.derived is not None and isinstance(negation.derived.stair, MatchStair):
        operator = negation.derived.stair.operator
        yield f"  {_headline(operator)}"
        yield from (f"    {line}" for line in _inside(operator, scope))
        return
    yield from (f"  {_scan(name, leaf, scope)}" for name, leaf in inner.leaves.items())
    for deeper in inner.negations:
        yield from (f"  {line}" for line in _negation(deeper, scope))
    counted = frozenset(group.variable for group in inner.groups if negation.derived is not None)
    yield from (f"  {line}" for line in _groups(inner, scope, counted))


def filters_text(name: str, filters: Sequence[Expression]) -> Iterator[str]:
    """The tests of a leaf's events, with the name of the variable."""

    def named(part: Expression) -> Expression:
        return Attribute(name, part.name) if isinstance(part, Attribute) and part.variable == EVENT else part

    return (print_expression(transform(formula, named)) for formula in filters)


def interval_text(interval: Interval) -> str:
    """The interval of a negation, in words."""
    after = (
        "from the window's start"
        if isinstance(interval.after, Edge)
        else f"after {', '.join(map(print_name, interval.after))}"
    )
    match interval.before:
        case Edge.WINDOW_END:
            before = "to the window's end"
        case Edge.MATCH_END:
            before = "to the match's end"
        case names:
            before = f"before {', '.join(map(print_name, names))}"
    return f"{after} {before}"


def key_text(key: Mapping[str, tuple[str, ...]]) -> str:
    """The attributes of a key; once where they have the same name."""
    spelled = list(dict.fromkeys(key.values()))
    if len(spelled) == 1:
        return ", ".join(map(print_name, spelled[0]))
    return " = ".join(term_text((name, a)) for name, attributes in key.items() for a in attributes)


def term_text(term: tuple[str, str]) -> str:
    """A variable and its attribute."""
    return f"{print_name(term[0])}.{print_name(term[1])}"


def explain_native_json(operators: Sequence[PhysicalOperator], scope: Scope) -> list[dict[str, Any]]:
    """The operators as plain data."""
    return [
        {
            "operator": operator.name,
            "variables": list(operator.block.leaves),
            "key": {name: list(names) for name, names in operator.block.key.items()}
            if operator.block.key
            else None,
            "negations": [_negation_json(negation) for negation in operator.block.negations],
            **_groups_json(operator.block),
            "decided": decided.value,
        }
        for operator, decided in zip(operators, scope.decided, strict=True)
    ]


def _negation_json(negation: Negation) -> dict[str, Any]:
    return {
        "operator": "LateralJoin" if negation.derived is None else "Derived",
        "variables": list(negation.block.leaves),
        "interval": interval_text(negation.interval),
        "reason": negation.reason,
        "inside": [_negation_json(inner) for inner in negation.block.negations],
        **_groups_json(negation.block),
    }


def _groups_json(block: Block) -> dict[str, Any]:
    """The groups of a block as plain data; empty where it has none."""
    if not block.groups:
        return {}
    return {
        "groups": [
            {
                "variable": group.variable,
                "least": group.least,
                "most": group.most,
                "interval": interval_text(group.interval),
                "members": "LateralJoin" if why_no_range(group) else "range",
                "reason": why_no_range(group) or "its interval and key alone decide its members",
            }
            for group in block.groups
        ],
        "judged": [print_expression(predicate) for predicate in block.judged],
    }
