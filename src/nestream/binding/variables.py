"""Reports variables of a condition that are not declared, or that the condition cannot see."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from nestream.binding.declare import negation_with, span_of
from nestream.binding.groups import mentioned
from nestream.binding.scopes import AGGREGATED, Scope, Scopes, Unseen
from nestream.model.diagnostics import Diagnostic, Severity
from nestream.model.expression import PATH_MARK, Attribute, Expression, attributes
from nestream.model.text import print_expression


def unknown_variable(
    part: Attribute, scopes: Scopes, ambiguous: Collection[str], written: Sequence[str]
) -> Diagnostic:
    """Report a variable that no component has."""
    name = part.variable or ""
    by_type = [
        variable
        for scope in scopes.root.walk()
        for variable, leaf in scope.leaves.items()
        if name in leaf.types and variable not in scopes.unwritten
    ]
    if name in ambiguous:
        hint = f"several components have the type `{name}`: give each a variable"
    elif by_type:
        hint = f"the component of type `{name}` has the variable `{by_type[0]}`"
    elif close := get_close_matches(name, written, 1):
        hint = f"did you mean `{close[0]}`?"
    else:
        hint = f"the variables are {', '.join(f'`{n}`' for n in written)}"
    return Diagnostic("unknown-variable", f"unknown variable `{name}`", part.span, hint=hint)


def unseen_variable(
    reason: Unseen, mention: str, predicate: Expression, place: Scope, scopes: Scopes
) -> Diagnostic:
    """Report a variable that a condition cannot see from its place."""
    target = scopes.of[mention]
    name = mention.removeprefix(AGGREGATED)
    at = span_of(predicate, place)
    match reason:
        case Unseen.NEGATED:
            inside = [scope for scope in target.path if scope.negated and scope not in place.path][-1]
            fits = _fits(predicate, inside, scopes)
            return Diagnostic(
                "negated-variable",
                f"`{name}` is negated, so it has no event here",
                at,
                detail="a condition on a negated event says which events must not occur",
                hint="write the condition inside the negation"
                if fits
                else _why_unfit(predicate, inside, scopes),
                suggestion=negation_with(inside, predicate) if fits else None,
            )
        case Unseen.GROUPED:
            inside = next(s for s in target.path if s.group is not None and s not in place.path)
            fits = _fits(predicate, inside, scopes)
            group = inside.group_name
            return Diagnostic(
                "grouped-variable",
                f"`{name}` ranges over the members of a group, so it has no single event here",
                at,
                detail="a condition on a member says which events belong to the group",
                hint=f"write the condition with the group, or an aggregate such as COUNT({group})"
                if fits
                else f"compare an aggregate of the group, as in COUNT({group}) > 1",
                suggestion=negation_with(inside, predicate) if fits else None,
            )
        case Unseen.BRANCH | Unseen.OTHER_BRANCH:
            return Diagnostic(
                "across-or-branches" if reason is Unseen.OTHER_BRANCH else "branch-variable",
                f"`{name}` belongs to one branch of an OR and may have no event here",
                at,
                detail="a match has the events of one branch only",
                hint="write the condition inside the OR, with the branch of the variable",
            )
        case Unseen.SIBLING:
            under_negation = any(scope.negated for scope in place.path if scope not in target.path)
            return Diagnostic(
                "sibling-variable",
                f"`{name}` is declared in another expression and is not visible here",
                at,
                detail="a condition sees the variables of its own expression, of those around it, "
                "and of the positive ones nested in it",
                hint=_why_unfit(predicate, place, scopes)
                if under_negation
                else "write the condition in the expression around both, after its components",
                suggestion=None if under_negation else print_expression(predicate),
            )
        case Unseen.HIDDEN:
            return Diagnostic(
                "hidden-variable",
                f"EXISTS drops `{name}`, so it is not visible here",
                at,
                hint="write the condition inside the EXISTS",
            )


def _fits(predicate: Expression, inside: Scope, scopes: Scopes) -> bool:
    """Whether a predicate could be written in a scope."""
    return all(scopes.unseen(name, inside) is None for name in mentioned(predicate, scopes))


def _why_unfit(predicate: Expression, negation: Scope, scopes: Scopes) -> str:
    """Why a predicate fits nowhere in a negation, and what to compare with instead."""
    reasons = {scopes.unseen(name, negation) for name in mentioned(predicate, scopes)}
    if Unseen.SIBLING in reasons:
        return "a negation sees the variables of the expressions around it: compare with one of those"
    if Unseen.BRANCH in reasons:
        return "write the condition inside the negation, with the branch of the variable"
    return "a negation cannot see another: compare each with positive variables"


def hyphens(predicate: Expression, written: Collection[str]) -> Iterator[Diagnostic]:
    """Warnings about `a.x-1`, which is one name, where a subtraction may be intended."""
    for part in attributes(predicate):
        *owners, last = part.name.split(PATH_MARK)
        meant = re.fullmatch(r"(.*[^-])-(\d+)", last) if not owners else None
        for owner in owners:  # `a.x-b.y`
            found = re.fullmatch(r"(.*[^-])-(\w+)", owner)
            meant = found if found and found[2] in written else meant
        if meant:
            base, rest = meant.groups()
            rest += f".{last}" if owners else ""
            yield Diagnostic(
                "hyphen-in-name",
                f"`{meant[0]}` is read as one name",
                part.span,
                Severity.WARNING,
                detail="names may contain hyphens: put spaces around a minus",
                hint=f"for a subtraction write `{part.variable}.{base} - {rest}`",
            )
