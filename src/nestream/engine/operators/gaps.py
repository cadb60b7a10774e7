"""Gap predicates: `b.ts - a.ts <= 30 s` bounds the distance between two events, however it is written.

Times are integers, so every comparison of two times and a constant is a least and a greatest distance. Where
the events are neighbours in a chain, both bound a range: the predecessors of an event lie in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nestream.model.expression import (
    TIME_ATTRIBUTE,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Expression,
    Literal,
    Negative,
)
from nestream.model.time import Duration

FARTHEST = 2**63 - 1
"""A difference of times beyond 64 bits is NULL, so no comparison with it holds."""
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class Gap:
    """The event of `later` is between a least and a greatest distance after that of `earlier`.

    Distances are in microseconds if `is_time`, else in the unit of integer times. `strict` says which bounds
    are exclusive, the least first.
    """

    earlier: str
    later: str
    least: int | None = None
    most: int | None = None
    strict: tuple[bool, bool] = (False, False)
    is_time: bool = False

    def ends(self, per_microsecond: int) -> tuple[int | None, int]:
        """The least and the greatest distance, both inclusive, in the resolution of the times."""
        scale = per_microsecond if self.is_time else 1
        least = None if self.least is None else self.least * scale + self.strict[0]
        most = FARTHEST if self.most is None else min(self.most * scale - self.strict[1], FARTHEST)
        return least, most


def gaps_of(predicate: Expression, steps: Sequence[tuple[str, ...]]) -> list[Gap] | None:
    """The gaps between neighbours of a chain that a predicate consists of; None for any other predicate."""
    found = list(_compared(predicate))
    place = {names[0]: number for number, names in enumerate(steps) if len(names) == 1}
    gaps = []
    for left, operator, right in found:
        gap = _gap(left, operator, right, place)
        if gap is None:
            return None
        gaps.append(gap)
    return gaps or None


def _compared(predicate: Expression) -> Iterator[tuple[Expression, str, Expression]]:
    match predicate:
        case Comparison(operator=operator, operands=(left, right)) if operator in _FLIPPED:
            yield left, operator, right
        case Between(operand=operand, low=low, high=high, negated=False):
            yield operand, ">=", low
            yield operand, "<=", high


def _gap(left: Expression, operator: str, right: Expression, place: dict[str, int]) -> Gap | None:
    terms, constants = Counter[str](), list[int | Duration]()
    if not (_collect(left, 1, terms, constants) and _collect(right, -1, terms, constants)):
        return None
    named = {name: sign for name, sign in terms.items() if sign}
    if sorted(named.values()) != [-1, 1] or not set(named) <= place.keys():
        return None
    earlier, later = sorted(named, key=lambda name: place[name])
    if place[later] != place[earlier] + 1:
        return None
    kinds = {type(constant) for constant in constants if constant not in (0, Duration(0))}
    if len(kinds) > 1:
        return None
    is_time = kinds == {Duration}
    distance = -sum(c.microseconds if isinstance(c, Duration) else c for c in constants)
    if named[later] < 0:
        distance, operator = -distance, _FLIPPED[operator]
    found = Gap(earlier, later, is_time=is_time)
    if operator in (">", ">=", "="):
        found = replace(found, least=distance, strict=(operator == ">", False))
    if operator in ("<", "<=", "="):
        found = replace(found, most=distance, strict=(found.strict[0], operator == "<"))
    return found


def _collect(part: Expression, sign: int, terms: Counter[str], constants: list[int | Duration]) -> bool:
    """Add up times and constants; return whether there is nothing else."""
    match part:
        case Attribute(variable=str() as variable, name=name) if name == TIME_ATTRIBUTE:
            terms[variable] += sign
        case Literal(value=Duration(microseconds=length)):
            constants.append(Duration(sign * length))
        case Literal(value=int() as number) if not isinstance(number, bool):
            constants.append(sign * number)
        case Arithmetic(operator="+", left=left, right=right):
            return _collect(left, sign, terms, constants) and _collect(right, sign, terms, constants)
        case Arithmetic(operator="-", left=left, right=right):
            return _collect(left, sign, terms, constants) and _collect(right, -sign, terms, constants)
        case Negative(operand=operand):
            return _collect(operand, -sign, terms, constants)
        case _:
            return False
    return True
