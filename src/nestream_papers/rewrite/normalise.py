"""Applies the rules until none applies: a plan's normal form, the steps to it, and what stays nested.

The rules lead to one form, whatever their order. By default they are applied as in the paper: negations are
pushed down, then ORs distributed, then nested parts flattened, each rule everywhere before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from nestream.logical.invariants import check_plan
from nestream.logical.nodes import Component, Group, Leaf, Negation, Plan, WinOr, Witness
from nestream.logical.text import expression_text
from nestream_papers.rewrite.blowup import frozen_parts
from nestream_papers.rewrite.canonical import canonical
from nestream_papers.rewrite.forms import Form, form_of
from nestream_papers.rewrite.parts import children, with_children
from nestream_papers.rewrite.rule import Place, Refused, Rule
from nestream_papers.rewrite.rules import DISTRIBUTE, RULES
from nestream_papers.rewrite.rules.absorption import ABSORPTION
from nestream_papers.rewrite.rules.projection import PROJECTION

LIMIT = 64
"""The maximum number of disjuncts of a normalised plan; what would produce more keeps its nested form."""


@dataclass(frozen=True)
class Step:
    """A rule that was applied everywhere it could be, and the plan after it."""

    rule: str
    plan: Plan


@dataclass(frozen=True)
class Kept:
    """A part of the query that stays nested, as text, and the reason."""

    part: str
    reason: str


@dataclass(frozen=True)
class Normalised:
    """A plan in its normal form.

    Its matches are those of the plan it was made from. The components of its SEQs and ANDs are positive
    expressions, negations and witnesses, never an OR of constraints.
    """

    plan: Plan
    form: Form
    steps: tuple[Step, ...] = ()
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True)
class Redex:
    """A place where a rule applies: the steps down to it, and the component that would replace it."""

    rule: Rule
    path: tuple[int, ...]
    result: Component


Choose = Callable[[Sequence[Redex]], Redex]
"""Picks the place to rewrite next."""


def normalise(
    plan: Plan,
    limit: int = LIMIT,
    rules: Sequence[Rule] = RULES,
    choose: Choose | None = None,
) -> Normalised:
    """The plan in the flattest form that is the same query, with at most `limit` disjuncts.

    Types are checked before: in the SASE dialect they decide which predicates there are. `choose` picks the
    next place to rewrite, one at a time; without it, the rules are applied everywhere in order.
    """
    return _Normalising(plan, limit, rules, choose).run()


class _Normalising:
    def __init__(
        self,
        plan: Plan,
        limit: int,
        rules: Sequence[Rule],
        choose: Choose | None,
    ) -> None:
        self.plan = plan
        self.rules = rules
        self.choose = choose
        self.order = {name: rank for rank, name in enumerate(plan.variables)}
        self.frozen = frozen_parts(plan.root, limit, self.pushed_down)
        self.place = Place(order=self.order, frozen=self.frozen.parts)
        self.steps: list[Step] = []

    def run(self) -> Normalised:
        while self.next_step():
            pass
        if self.steps:
            self.plan = self.checked("the canonical order", canonical(self.plan.root, self.place))
            self.steps[-1] = replace(self.steps[-1], plan=self.plan)
            self.step(ABSORPTION, everywhere(ABSORPTION, self.plan.root, self.place))
            self.step(PROJECTION, everywhere(PROJECTION, self.plan.root, self.place))
        return Normalised(self.plan, form_of(self.plan.root), tuple(self.steps), self.kept())

    def pushed_down(self, negation: Negation) -> Component:
        """A negation in its last form, except that the result is not multiplied out."""
        place = Place(root=False, order=self.order)
        rules = [_under_negation(rule) if rule in DISTRIBUTE else rule for rule in self.rules]
        found: Component = negation
        while (changed := _first_change(rules, found, place)) is not None:
            _, found = changed
        return found

    # -- steps ---------------------------------------------------------------------------------------------

    def next_step(self) -> bool:
        """Apply a rule; return False if none applies."""
        if self.choose is None:
            changed = _first_change(self.rules, self.plan.root, self.place)
            if changed is not None:
                self.step(*changed)
            return changed is not None
        found = list(redexes(self.rules, self.plan.root, self.place))
        if found:
            redex = self.choose(found)
            self.step(redex.rule, _with_part(self.plan.root, redex.path, redex.result))
        return bool(found)

    def step(self, rule: Rule, root: Component) -> None:
        """Record what a rule made of the plan, if anything; of consecutive uses of one rule only the last."""
        if root is self.plan.root:
            return
        self.plan = self.checked(f"the rule “{rule.name}”", root)
        if self.steps and self.steps[-1].rule == rule.name:
            self.steps.pop()
        self.steps.append(Step(rule.name, self.plan))

    def checked(self, stage: str, root: Component) -> Plan:
        assert not isinstance(root, Negation | Group | Witness)
        return check_plan(replace(self.plan, root=root), stage)

    # -- what stays nested ---------------------------------------------------------------------------------

    def kept(self) -> tuple[Kept, ...]:
        return tuple(dict.fromkeys(self.kept_in(self.plan.root, self.place, ())))

    def kept_in(self, component: Component, place: Place, around: tuple[Component, ...]) -> Iterator[Kept]:
        """The outermost parts that stay nested, and why: a negation of more than an event, or an inner OR."""
        nested = isinstance(component, Negation) and not isinstance(component.body, Leaf)
        if nested or (isinstance(component, WinOr) and not place.root):
            yield Kept(expression_text(component), self.reason(component, place, around))
            return
        for inner in children(component):
            yield from self.kept_in(inner, place.inside(component), (component,))

    def reason(self, component: Component, place: Place, around: tuple[Component, ...]) -> str:
        """Why a rule refuses the component, or the one around it, which it would split."""
        if component in self.frozen.reasons:
            return self.frozen.reasons[component]
        asked = (component, *(around if isinstance(component, WinOr) else ()))
        said = (rule.apply(part, place) for part in asked for rule in self.rules)
        return next((answer.reason for answer in said if isinstance(answer, Refused)), "a rule is left out")


def everywhere(rule: Rule, component: Component, place: Place) -> Component:
    """The component with the rule applied everywhere, from the inside out, until it no longer applies."""
    if place.keeps(component):
        return component
    if within := children(component):
        below = place.inside(component)
        component = with_children(component, [everywhere(rule, inner, below) for inner in within])
    result = rule.apply(component, place)
    return component if result is None or isinstance(result, Refused) else everywhere(rule, result, place)


def redexes(
    rules: Sequence[Rule], component: Component, place: Place, path: tuple[int, ...] = ()
) -> Iterator[Redex]:
    """Every place where a rule applies."""
    if place.keeps(component):
        return
    for rule in rules:
        result = rule.apply(component, place)
        if result is not None and not isinstance(result, Refused):
            yield Redex(rule, path, result)
    for index, inner in enumerate(children(component)):
        yield from redexes(rules, inner, place.inside(component), (*path, index))


def _first_change(rules: Sequence[Rule], root: Component, place: Place) -> tuple[Rule, Component] | None:
    """The first rule that changes something, and the result."""
    for rule in rules:
        changed = everywhere(rule, root, place)
        if changed is not root:
            return rule, changed
    return None


def _under_negation(rule: Rule) -> Rule:
    """The rule, limited to what is inside a negation."""
    return replace(rule, apply=lambda part, place: rule.apply(part, place) if place.negations else None)


def _with_part(component: Component, path: tuple[int, ...], part: Component) -> Component:
    if not path:
        return part
    inner = list(children(component))
    inner[path[0]] = _with_part(inner[path[0]], path[1:], part)
    return with_children(component, inner)
