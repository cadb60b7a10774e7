"""The current rules of a job: texts by name, each with the version that brought it.

A change of a set has a number, its version; a rule has the version of the change that brought its current
text. Rules come from a `RuleSource`: a folder, or a Kafka topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

LONGEST_NAME = 200
Changes = Mapping[str, str | None]
"""The rules that change, with their new texts; None for a removed rule."""


class RulesError(Exception):
    """Rules that cannot be read or changed: what is wrong, where, and what to do."""


def check_name(name: str) -> None:
    """Raise where a text cannot be the name of a rule: it is the name of a file, or the key of a message."""
    if not name or "/" in name or name.startswith((".", "_")) or not name.isprintable():
        raise RulesError(
            f"{name!r} cannot be the name of a rule, which is also a file name: write printable characters "
            "without `/`, and begin with neither `.` nor `_`"
        )
    if len(name.encode()) > LONGEST_NAME:
        raise RulesError(f"the name of a rule is also a file name: it has at most {LONGEST_NAME} bytes")


@dataclass(frozen=True)
class Rule:
    """A rule of a set, and the version of the set that brought it."""

    text: str
    version: int


@dataclass(frozen=True)
class RuleSet:
    """The rules of one version."""

    version: int = 0
    rules: Mapping[str, Rule] = field(default_factory=dict)
    topic: str | None = field(default=None, compare=False)
    """The id of the topic that they are from, if known: versions count within one topic."""

    @property
    def texts(self) -> dict[str, str]:
        """The texts by rule name."""
        return {name: rule.text for name, rule in self.rules.items()}

    @property
    def versions(self) -> dict[str, int]:
        """The versions by rule name."""
        return {name: rule.version for name, rule in self.rules.items()}

    def without(self, names: Iterable[str]) -> RuleSet:
        """The set without some rules."""
        rules = {name: rule for name, rule in self.rules.items() if name not in names}
        return replace(self, rules=rules)

    def changed(self, changes: Mapping[str, str | None], version: int | None = None) -> RuleSet:
        """The set with new texts for some rules, None to remove one; by default as the next version."""
        number = self.version + 1 if version is None else version
        kept = {name: rule for name, rule in self.rules.items() if name not in changes}
        new = {name: Rule(text, number) for name, text in changes.items() if text is not None}
        return replace(self, version=number, rules=dict(sorted({**kept, **new}.items())))

    def taking(self, other: RuleSet, names: Iterable[str]) -> RuleSet:
        """The set with some rules of another, or without those that it lacks; it has the other's version.

        A rule that is the same in both has the version it has in the other.
        """
        names = set(names)
        rules = {name: rule for name, rule in self.rules.items() if name not in names}
        rules |= {name: other.rules[name] for name in names if name in other.rules}
        for name, rule in rules.items():
            if name in other.rules and other.rules[name].text == rule.text:
                rules[name] = other.rules[name]
        return replace(other, rules=dict(sorted(rules.items())))

    def differences(self, texts: Mapping[str, str]) -> dict[str, str | None]:
        """What has to change so that the rules have these texts; None for a removed rule."""
        known = self.texts
        new = {name: text for name, text in texts.items() if known.get(name) != text}
        return {**new, **{name: None for name in known if name not in texts}}

    def json(self) -> dict[str, Any]:
        """The set as plain data, for a checkpoint."""
        rules = {name: [rule.version, rule.text] for name, rule in self.rules.items()}
        saved = {"version": self.version, "rules": rules}
        return saved if self.topic is None else {**saved, "topic": self.topic}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> RuleSet:
        """The set from plain data."""
        rules = {name: Rule(text, version) for name, (version, text) in saved["rules"].items()}
        return cls(saved["version"], rules, saved.get("topic"))


class RuleSource(Protocol):
    """Where the rules of a job come from."""

    where: str

    def read(self, known: RuleSet | None) -> RuleSet:
        """The current rules; `known` are those read last, or those of a checkpoint.

        This is cheap if nothing has changed: a job calls it about once a second. Raises a `RulesError` if the
        rules cannot be read.
        """
        ...


@dataclass(frozen=True)
class Version:
    """A change of a set: its number, its time, what was done, and the rules with their new texts."""

    version: int
    time: str
    what: str
    rules: dict[str, str | None]


def folded(versions: Iterable[Version]) -> RuleSet:
    """The rules after some changes."""
    found = RuleSet()
    for one in versions:
        found = found.changed(one.rules, one.version)
    return found


def rules_of(versions: list[Version], version: int, where: str) -> RuleSet:
    """The rules of a version, given all versions."""
    if version not in [one.version for one in versions]:
        first, last = (versions[0].version, versions[-1].version) if versions else (0, 0)
        known = f"there are {first} to {last}" if versions else "nothing was changed yet"
        raise RulesError(f"the rules in {where} have no version {version}; {known}")
    return folded(one for one in versions if one.version <= version)
