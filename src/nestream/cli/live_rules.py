"""The rules of `nestream stream FOLDER` and `nestream stream kafka://...`, which may change while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from textwrap import indent
from typing import Any

from nestream import Queries, Query
from nestream.cli.arguments import values_of
from nestream.cli.types import with_types
from nestream.job import Change, Progress, RuleSource
from nestream.queries import parsed_queries
from nestream.query import Dialect


class Binder:
    """Makes a query set from the texts of rules; texts that were parsed before are not parsed again.

    The rules are opened once, because a topic takes time. A value of `--set` may belong to a later rule.
    """

    def __init__(
        self, rules: RuleSource, dialect: Dialect | None, given: list[str] | None, types: str | None
    ) -> None:
        self.rules = rules
        self.first: Query | Queries | None = None
        """The rules of a first start."""
        self._dialect, self._given = dialect, values_of(given)
        self._types = types
        self._known: dict[tuple[str, str], Query] = {}
        self.attributes: set[str] = set()
        """The attributes that some rule has read."""

    def __call__(self, texts: Mapping[str, str]) -> Queries:
        """The query set; raises if a text is not a query, or the queries do not fit together."""
        members = {name: self._known.get((name, text), text) for name, text in texts.items()}
        found, _ = parsed_queries(members, self._dialect, self._given)
        parsed = Queries(found)
        self._known = {(name, texts[name]): member for name, member in found.items()}
        self.attributes |= set(parsed.attributes_read)
        return with_types(parsed, self._types)


def change_lines(change: Change, running: Mapping[str, int]) -> list[str]:
    """The lines that report a change of the rules, one per rule; `running` are the running versions."""
    lines = []
    for name, since in change.joined.items():
        what = "replaced" if name in change.replaced else "added"
        lines.append(
            f"{name} {what}; it sees {'all events' if since is None else f'events since {_moment(since)}'}"
        )
    lines += [f"{name} removed" for name in change.left if name not in change.refused]
    for name, reason in change.refused.items():
        what = "suspended: it does not fit the events" if name in change.left else "refused"
        what += f"; version {running[name]} keeps running" if name in running else ""
        lines.append(f"{name} {what}\n{indent(reason, '  ')}")
    return [f"rules version {change.version}: {line}" for line in lines]


class RulesProblem:
    """Reports once why the rules cannot be read, until the reason changes."""

    def __init__(self) -> None:
        self._told: str | None = None

    def __call__(self, progress: Progress) -> str | None:
        """The message to show now, if any."""
        problem, told = progress.rules_problem, self._told
        self._told = problem
        if problem is None or problem == told:
            return None
        first = problem.splitlines()[0]
        return f"warning: {first}; version {progress.version} of the rules keeps running"


def _moment(since: Any) -> str:
    if not isinstance(since, datetime):
        return str(since)
    return since.isoformat(" ", "milliseconds").replace("+00:00", "Z")
