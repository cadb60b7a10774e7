"""Random nesting of SEQ, AND, OR and negation, and which variables may be mentioned where.

The rules of scope are written here again, from docs/reference/semantics.md and not from the binder, so that a
query that the generator takes to be valid and the binder rejects shows that one of the two is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from nestream.language.ast import (
    Composite,
    Exists,
    InnerWindow,
    Negation,
    Operator,
    Pattern,
    Primitive,
    Repeated,
    Step,
)
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import Arithmetic, Attribute, Comparison, Expression, Literal
from nestream.model.time import Window, WindowKind
from tests.generators.choices import Choices, chance, pick, some, weighted
from tests.generators.histories import TYPES


@dataclass(frozen=True)
class Style:
    """What sort of queries to make; the numbers are chances in percent or limits."""

    max_depth: int = 4
    most_positive: int = 5
    most_leaves: int = 9
    nested: int = 35
    nested_negation: int = 45
    negation: int = 34
    groups: int = 0
    """How many of what looks at an interval are groups, not negations."""
    linked: int = 0
    """How many single events that are negated or repeated are joined with the event after them alone."""
    any_of_types: int = 8
    any_type: int = 3
    step: int = 8
    inner_window: int = 6
    named: int = 8
    """How many expressions have a variable."""
    roots: tuple[tuple[int, str], ...] = ((60, "SEQ"), (18, "AND"), (14, "OR"), (4, "event"))
    inner: tuple[tuple[int, str], ...] = ((5, "SEQ"), (3, "AND"), (2, "OR"))
    exists: int = 6
    keys: tuple[tuple[int, str], ...] = ((35, "all"), (30, "none"), (20, "some"), (15, "two"))
    predicates: int = 40
    sase: int = 25
    windows: tuple[tuple[int, str], ...] = ((70, "number"), (20, "events"), (10, "unbounded"))
    returns: int = 30
    limit: int = 3
    keep: int = 9


@dataclass(eq=False)
class Shape:
    """An event expression while it is being made: `kind` is "event" or an operator."""

    kind: str
    parent: Shape | None = None
    negated: bool = False
    group: tuple[int, int | None] | None = None
    """The least and the greatest number of members, where it is a group."""
    group_name: str | None = None
    types: tuple[str, ...] = ()
    name: str = ""
    implicit: bool = False
    components: list[Shape] = field(default_factory=list)
    predicates: list[Expression] = field(default_factory=list)
    hidden: tuple[str, ...] = ()
    step: Step = Step.ANY
    windows: tuple[int, ...] = ()
    expression_name: str | None = None

    def walk(self) -> Iterator[Shape]:
        """This expression and all in it, outermost first."""
        yield self
        for component in self.components:
            yield from component.walk()

    @property
    def apart(self) -> bool:
        """Whether it binds no event of the match around it: a negation or a group."""
        return self.negated or self.group is not None

    def groups(self) -> list[Shape]:
        """The groups that a match of this place has, and that the place sees."""
        if self.kind in ("OR", "event"):
            return []
        found: list[Shape] = []
        for part in self.components:
            if part.group is not None:
                found.append(part)
            elif not part.negated:
                found += part.groups()
        return found

    def positive(self) -> list[Shape]:
        """The events that a match of this expression may bind."""
        if self.kind == "event":
            return [self]
        return [leaf for part in self.components if not part.apart for leaf in part.positive()]

    # -- scope ---------------------------------------------------------------------------------------------

    @property
    def is_place(self) -> bool:
        """Whether predicates are written with it: an operator, or an event that stands alone."""
        alone = self.parent is None or self.apart or self.parent.kind == "OR"
        return self.kind != "event" or alone or bool(self.hidden)

    @property
    def place(self) -> Shape:
        """The place that declares this event."""
        return self if self.is_place or self.parent is None else self.parent

    def own(self) -> list[str]:
        """The variables that this place declares itself."""
        if self.kind == "event":
            return [self.name]
        return [part.name for part in self.components if part.kind == "event" and part.place is self]

    def inner(self) -> list[str]:
        """The variables of positive nested places that are visible here."""
        if self.kind == "OR":
            return []
        return [name for part in self.components if not part.apart for name in part.shown(self)]

    def shown(self, around: Shape) -> list[str]:
        """The variables of this place that the place around it sees."""
        if self.place is around:
            return []
        return [name for name in (*self.own(), *self.inner()) if name not in self.hidden]

    def outer(self) -> list[str]:
        """The variables that the places around this one declare."""
        return [] if self.parent is None else [*self.parent.outer(), *self.parent.own()]

    def local(self) -> list[list[str]]:
        """The variables that this place binds and sees; an OR has a list for each branch."""
        if self.kind == "OR":
            return [branch for part in self.components if (branch := part.shown(self))]
        return [[*self.own(), *self.inner()]]

    def sees(self, names: Collection[str]) -> bool:
        """Whether a predicate over the variables may be written here."""
        outer = set(self.outer())
        return any(set(names) <= outer | set(local) for local in (self.local() or [[]]))

    # -- the tree ------------------------------------------------------------------------------------------

    def pattern(self) -> Pattern:
        """The expression as a syntax tree."""
        body: Pattern
        if self.kind == "event":
            name = None if self.implicit else self.name
            body = Primitive(self.types, name, tuple(self.predicates), step=self.step)
        else:
            components = tuple(part.pattern() for part in self.components)
            windows = tuple(InnerWindow(Window(WindowKind.NUMBER, size)) for size in self.windows)
            body = Composite(
                Operator(self.kind),
                components,
                tuple(self.predicates),
                windows=windows,
                variable=self.expression_name,
            )
        if self.hidden:
            body = Exists(self.hidden, body)
        if self.group is not None:
            return Repeated(body, *self.group, self.group_name)
        return Negation(body) if self.negated else body


@dataclass
class _Budget:
    """How many events may still be made: those that a match binds, and all. Some are promised already."""

    positive: int
    leaves: int

    def promise(self, count: int, counted: bool) -> None:
        self.leaves -= count
        self.positive -= count * counted

    def allows(self, counted: bool) -> bool:
        return self.leaves > 0 and (self.positive > 0 or not counted)


def shape(choices: Choices, style: Style) -> Shape:
    """A random nesting, without predicates."""
    kind = weighted(choices, *style.roots)
    budget = _Budget(style.most_positive, style.most_leaves)
    if kind == "event":
        root = _event(choices, style, None)
    else:
        root = _operator(choices, style, kind, None, budget, style.max_depth, True)
    _name(choices, root)
    for place in root.walk():
        _steps(choices, style, place)
        if place.kind != "event" and chance(choices, style.inner_window):
            place.windows = (choices.integer(1, 5),)
        if place.kind != "event" and place.group is None and chance(choices, style.named):
            place.expression_name = f"s{choices.integer(1, 9)}"
            _limit_length(choices, place)
    for place in root.walk():
        if chance(choices, style.exists):
            _hide(choices, place)
    hidden = {name for place in root.walk() for name in place.hidden}
    if hidden >= {leaf.name for leaf in root.positive()}:  # several EXISTS together leave nothing to show
        for place in root.walk():
            place.hidden = ()
    return root


def _limit_length(choices: Choices, place: Shape) -> None:
    """Give an expression a name of its own, and at times a condition on its length."""
    root = place
    while root.parent is not None:
        root = root.parent
    taken = {other.expression_name for other in root.walk() if other is not place}
    while place.expression_name in taken:
        place.expression_name = f"{place.expression_name}_"
    inner = [part for part in place.walk() if part is not place]
    if chance(choices, 50) and all(part.kind != "OR" for part in inner):
        name = place.expression_name
        length = Arithmetic("-", Attribute(name, "te"), Attribute(name, "ts"))
        limit = Literal(choices.integer(0, 5))
        place.predicates.append(Comparison(pick(choices, ("<", "<=", ">", "!=")), (length, limit)))


def _event(choices: Choices, style: Style, parent: Shape | None) -> Shape:
    types: tuple[str, ...] = (pick(choices, TYPES),)
    if chance(choices, style.any_of_types):
        types = tuple(some(choices, TYPES, 2, 3))
    if chance(choices, style.any_type):
        types = (ANY_TYPE,)
    return Shape("event", parent, types=types)


def _operator(
    choices: Choices,
    style: Style,
    kind: str,
    parent: Shape | None,
    budget: _Budget,
    depth: int,
    positive: bool,
) -> Shape:
    """An operator with at least one positive component; `positive` says that no negation is around it."""
    node = Shape(kind, parent)
    count = (
        weighted(choices, (2, 1), (35, 2), (40, 3), (15, 4), (8, 5))
        if kind != "OR"
        else choices.integer(2, 3)
    )
    sure = choices.integer(0, count - 1)  # this one is positive
    budget.promise(1, positive)
    for index in range(count):
        negated = kind != "OR" and index != sure and chance(choices, style.negation)
        counted = positive and not negated
        if index == sure:
            budget.promise(-1, positive)
        elif not budget.allows(counted):
            continue
        nested = style.nested_negation if negated else style.nested
        if depth > 1 and budget.leaves > 1 and chance(choices, nested):
            inner = weighted(choices, *style.inner)
            part = _operator(choices, style, inner, node, budget, depth - 1, counted)
        else:
            part = _event(choices, style, node)
            budget.promise(1, counted)
        if negated and chance(choices, style.groups) and not _beside_a_group(node):
            part.group = weighted(choices, *_QUANTITIES)
        else:
            part.negated = negated
        node.components.append(part)
    return node


_QUANTITIES: tuple[tuple[int, tuple[int, int | None]], ...] = (
    (30, (1, None)),
    (20, (0, None)),
    (10, (2, None)),
    (8, (1, 1)),
    (8, (0, 1)),
    (8, (1, 3)),
    (8, (2, 2)),
    (4, (3, None)),
    (4, (0, 2)),
)


def _beside_a_group(node: Shape) -> bool:
    """Whether a group of a SEQ has no single event after it yet."""
    if node.kind != "SEQ":
        return False
    for part in reversed(node.components):
        if part.group is not None:
            return True
        if not part.negated:
            return False
    return False


def _steps(choices: Choices, style: Style, place: Shape) -> None:
    """Write NEXT or DIRECTLY before some events of a SEQ that come after others."""
    follows = False
    for part in place.components if place.kind == "SEQ" else ():
        if part.apart:
            continue
        if follows and part.kind == "event" and not part.implicit and chance(choices, style.step):
            part.step = weighted(choices, (2, Step.NEXT), (1, Step.DIRECTLY))
        follows = True


def _name(choices: Choices, root: Shape) -> None:
    """Give every event a variable: `a`, `a2`, ..., or at times its type's name, where that is clear."""
    leaves = [part for part in root.walk() if part.kind == "event"]
    implicit = chance(choices, 6)
    used: dict[str, int] = {}
    for leaf in leaves:
        base = "any" if leaf.types == (ANY_TYPE,) else leaf.types[0].lower()
        if implicit and sum(other.types == leaf.types for other in leaves) == 1 and base != "any":
            leaf.implicit, leaf.name = True, "_or_".join(leaf.types)
            continue
        used[base] = used.get(base, 0) + 1
        leaf.name = f"{base}{used[base]}" if used[base] > 1 or base == "any" else base
    for number, part in enumerate(part for part in root.walk() if part.group is not None):
        if part.kind != "event" or (not part.implicit and chance(choices, 10)):
            part.group_name = f"g{number}"


def _hide(choices: Choices, place: Shape) -> None:
    """Drop some variables with EXISTS, perhaps all of them."""
    names = [leaf.name for leaf in place.positive() if not leaf.implicit]
    if names:
        place.hidden = tuple(some(choices, names, 1, len(names)))
