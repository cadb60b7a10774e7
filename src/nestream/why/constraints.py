"""The negations and groups of a match: those that stop it, and what the others examined.

Both are the same question, asked recursively. A negation that stops a match has its own match, whose
negations found nothing. One that found nothing has no match, or only matches that its own negations and
groups reject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nestream.logical.nodes import Group, Leaf, Node, Proj, WinAnd, WinOr, WinSeq
from nestream.logical.text import expression_text
from nestream.model.expression import Expression, aggregates
from nestream.model.text import print_name
from nestream.reference import Binding, Event, Interval, Meaning, Part, holds
from nestream.why.evidence import MOST_LOOKED, Evidence, Way, spread
from nestream.why.obstacle import Obstacle
from nestream.why.partial import Nearness
from nestream.why.places import Places
from nestream.why.reach import Reach, TooManyWaysError
from nestream.why.search import Search, groups_of, negations
from nestream.why.sentences import Sentences, rows_of
from nestream.why.shapes import shapes
from nestream.why.words import Words, pattern

MOST_WAYS = 4
"""How many ways to match a negated expression with ORs are reported."""


@dataclass(frozen=True)
class _Stop:
    """A negation with a match, a group of the wrong size, or a failed condition over groups."""

    about: Node | Group | Expression
    interval: Interval | None = None
    found: tuple[Binding, ...] = ()
    """The match of the negation, or the members of the group."""
    inner: tuple[Evidence, ...] = ()
    """Why the negations of that match do not reject it."""
    groups: tuple[tuple[str, Sequence[Binding]], ...] = ()

    @property
    def events(self) -> Iterator[Event]:
        """The events that it is about."""
        for binding in self.found:
            yield from binding.values()
        for evidence in self.inner:
            yield from evidence.events


@dataclass(frozen=True)
class Constraints:
    """Checks the negations and groups of bindings."""

    meaning: Meaning
    places: Places
    words: Words
    search: Search

    def stopping(self, part: Part, reach: Reach) -> Iterator[Obstacle]:
        """What rejects a complete binding of the query."""
        root = part.root
        for stop in self._stops(part, root, self.meaning.root_limits(root), reach, part.binding):
            yield self._obstacle(stop, part.binding)

    def evidence(self, part: Part, reach: Reach | None) -> Iterator[Evidence]:
        """What each negation and group of a match examined; without a reach, what they look for."""
        root = part.root
        yield from self._evidence(root, self.meaning.root_limits(root), reach, part.binding, part.binding)

    def intervals(self, part: Part) -> Iterator[Interval]:
        """The intervals of the negations and groups of a match."""
        root = part.root
        limits = self.meaning.root_limits(root)
        yield from (interval for _, interval in negations(self.meaning, root, limits))
        yield from (interval for _, interval in groups_of(self.meaning, root, limits))

    # -- what stops ----------------------------------------------------------------------------------------

    def _stops(
        self, whole: Part, part: Part, limits: Interval, reach: Reach, binding: Binding
    ) -> Iterator[_Stop]:
        for body, interval in negations(self.meaning, part, limits):
            witness = next(self.search.occurrences(body, interval, reach, binding), None)
            if witness is not None:
                inside, around = reach.inside(interval, self.meaning), {**binding, **witness.binding}
                inner = tuple(self._evidence(witness, interval, inside, around, binding))
                yield _Stop(body, interval, (witness.binding,), inner)
        found: dict[str, Sequence[Binding]] = {}
        for group, interval in groups_of(self.meaning, part, limits):
            members = found[group.variable] = self.search.members(group, interval, reach, binding)
            if len(members) < group.least or (group.most is not None and len(members) > group.most):
                yield _Stop(group, interval, tuple(members))
        for node in whole.walk():
            for predicate in node.node.predicates:
                if any(aggregates(predicate)) and not holds(
                    predicate, binding, self.meaning.per_microsecond, found
                ):
                    yield _Stop(predicate, groups=tuple(found.items()))

    def _obstacle(self, stop: _Stop, binding: Binding) -> Obstacle:
        owners = {event: print_name(name) for name, event in binding.items()}
        where = "" if stop.interval is None else self.words.interval_text(stop.interval, owners)
        match stop.about:
            case Group() as group:
                text = Sentences(self.words, ()).refused(group, len(stop.found), where)
                return self._group_obstacle(group, stop, text)
            case Leaf() | WinSeq() | WinAnd() | WinOr() | Proj() as body:
                (witness,) = stop.found
                found = ", ".join(self.words.bound(name, event) for name, event in witness.items())
                text = f"!{pattern(body)}, and {where} there is {found}"
                return self._negation_obstacle(body, stop, "; ".join((text, *_unsaved(stop.inner))))
            case predicate:
                return self._judged_obstacle(predicate, stop, binding)

    def _negation_obstacle(self, body: Node, stop: _Stop, text: str) -> Obstacle:
        assert stop.interval is not None
        (witness,) = stop.found
        more = {
            "negation": f"!{expression_text(body)}",
            "interval": self.words.interval(stop.interval),
            "witness": {name: event.row for name, event in witness.items()},
            "inner": [evidence.json() for evidence in stop.inner],
        }
        return Obstacle(
            "negation", text, tuple(witness), rows_of(stop.found), self.places.negation(body), more
        )

    def _group_obstacle(self, group: Group, stop: _Stop, text: str) -> Obstacle:
        assert stop.interval is not None
        more = {
            "group": group.variable,
            "interval": self.words.interval(stop.interval),
            "members": len(stop.found),
            "least": group.least,
            "most": group.most,
        }
        span = self.places.negation(group.body)
        return Obstacle("group", text, (group.variable,), rows_of(stop.found), span, more)

    def _judged_obstacle(self, predicate: Expression, stop: _Stop, binding: Binding) -> Obstacle:
        names = tuple(dict.fromkeys(one.group or "" for one in aggregates(predicate)))
        text = self.words.failed(predicate, binding, dict(stop.groups))
        return Obstacle("predicate", text, names, (), self.places.predicate(predicate, names))

    # -- what was looked at --------------------------------------------------------------------------------

    def _evidence(
        self, part: Part, limits: Interval, reach: Reach | None, binding: Binding, own: Binding
    ) -> Iterator[Evidence]:
        """The evidence of the constraints in a part; `own` are the events of the match itself."""
        sentences = Sentences(self.words, set(own.values()))
        for body, interval in negations(self.meaning, part, limits):
            try:
                yield self._absence(body, interval, reach, binding, sentences)
            except TooManyWaysError:
                yield self._unsearched(body, interval, sentences)
        for group, interval in groups_of(self.meaning, part, limits):
            yield self._members(group, interval, reach, binding, sentences)

    def _absence(
        self, body: Node, interval: Interval, reach: Reach | None, binding: Binding, sentences: Sentences
    ) -> Evidence:
        if reach is None:
            raise TooManyWaysError
        found = next(self.search.occurrences(body, interval, reach, binding), None)
        if found is not None:
            there = sentences.there_is(found.binding, interval, ())
            text = f"{there} now: it was not there when the match was found"
            return self._told(body, interval, text, found.binding.values(), (), found=found.binding)
        inside = reach.inside(interval, self.meaning)
        ways, texts, looked = [], [], []
        every = shapes(body)
        for shape in every[:MOST_WAYS]:
            near = Nearness(shape, interval, inside, binding, self.meaning)
            way, text, events = self._way(near, inside, sentences)
            ways.append(way)
            texts.append(text)
            looked += [event for leaf in shape.leaves for event in near.of_key(leaf)] + events
        if len(every) > MOST_WAYS:
            texts.append(f"{len(every) - MOST_WAYS:,} more alternatives have no match either")
        text = "; ".join(dict.fromkeys(texts))
        return self._told(body, interval, text, looked, tuple(ways))

    def _way(self, near: Nearness, inside: Reach, sentences: Sentences) -> tuple[Way, str, list[Event]]:
        """How close the events come to one way to match a negated node; its sentence, and more events."""
        binding = near.outer
        whole = next(
            self.search.bindings(near.shape, inside, {}, binding, windowed=False),
            None,
        )
        if whole is None:
            lacks = tuple(near.lacks()) if near.outside is None else ()
            return Way({} if near.outside else near.longest, lacks), sentences.absent(near, lacks), []
        part, around = near.shape.part(whole), {**binding, **whole}
        stop = next(self._stops(part, part, near.interval, inside, around))
        why = self._stopped(stop, around, sentences)
        events = [*whole.values(), *stop.events]
        return Way(whole, (), self._obstacle(stop, around)), sentences.would_do(near, whole, why), events

    def _stopped(self, stop: _Stop, binding: Binding, sentences: Sentences) -> str:
        """What rejects a match of a negated node, as evidence."""
        match stop.about:
            case Group() as group:
                assert stop.interval is not None
                return sentences.refused(group, len(stop.found), sentences.where(stop.interval))
            case Leaf() | WinSeq() | WinAnd() | WinOr() | Proj():
                assert stop.interval is not None
                return sentences.there_is(stop.found[0], stop.interval, _unsaved(stop.inner))
            case predicate:
                return self.words.failed(predicate, binding, dict(stop.groups))

    def _unsearched(self, body: Node, interval: Interval, sentences: Sentences) -> Evidence:
        """The evidence of a negation with too many events to search."""
        text = f"no {pattern(body)} {sentences.where(interval)}; there are too many events to show"
        return self._told(body, interval, text, (), ())

    def _told(
        self,
        body: Node,
        interval: Interval,
        text: str,
        looked: Iterable[Event],
        ways: tuple[Way, ...],
        found: Binding | None = None,
    ) -> Evidence:
        events, more = _bounded(looked, (event for way in ways for event in way.named))
        return Evidence(
            "negation",
            text,
            f"!{expression_text(body)}",
            interval,
            self.words.interval(interval),
            events,
            more,
            ways,
            found=found,
            types=tuple(dict.fromkeys(name for leaf in _positive(body) for name in leaf.types)),
            span=self.places.negation(body),
        )

    def _members(
        self, group: Group, interval: Interval, reach: Reach | None, binding: Binding, sentences: Sentences
    ) -> Evidence:
        try:
            if reach is None:
                raise TooManyWaysError
            members = self.search.members(group, interval, reach, binding)
            text = sentences.members(group, len(members), interval)
        except TooManyWaysError:
            members, text = [], f"too many events {sentences.where(interval)} to count again"
        events, more = _bounded((event for member in members for event in member.values()), ())
        return Evidence(
            "group",
            text,
            expression_text(group),
            interval,
            self.words.interval(interval),
            events,
            more,
            members=tuple(members),
            variable=group.variable,
            types=tuple(dict.fromkeys(name for leaf in _positive(group.body) for name in leaf.types)),
            span=self.places.negation(group.body),
        )


def _unsaved(inner: Iterable[Evidence]) -> Iterator[str]:
    """Why the negations of what was found do not reject it."""
    for evidence in inner:
        if evidence.kind == "negation":
            yield f"its own {evidence.what} does not take that away: {evidence.text}"


def _bounded(looked: Iterable[Event], named: Iterable[Event]) -> tuple[tuple[Event, ...], int]:
    """The events to show, named ones first, and how many are left out."""
    first = dict.fromkeys(named)
    others = sorted({*looked} - first.keys(), key=lambda event: event.pos)
    chosen = [*first, *spread(others, max(MOST_LOOKED - len(first), 0))]
    return tuple(sorted(chosen, key=lambda event: event.pos)), len(first) + len(others) - len(chosen)


def _positive(node: Node) -> Iterator[Leaf]:
    """The leaves that a match of a node may bind."""
    for shape in shapes(node):
        yield from shape.leaves
