"""`nestream rules`: changes the rules of a folder or a topic, atomically and with a history."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any

import typer

import nestream
from nestream.cli.arguments import (
    AnswerFormat,
    AnswerOption,
    DialectOption,
    SetOption,
    query_text,
    values_of,
)
from nestream.cli.terminal import note, output
from nestream.job import RulesError, RuleSet, RuleStore, check_name, open_rules
from nestream.queries import check_rules
from nestream.query import Dialect
from nestream.sink.place import is_topic

Changes = Mapping[str, str | None]
Known = Callable[[RuleSet], Changes]


class Action(StrEnum):
    """What to do with the rules."""

    LIST = "list"
    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    HISTORY = "history"
    ROLLBACK = "rollback"


_ARGUMENTS = {
    Action.LIST: "",
    Action.ADD: "[NAME] QUERY",
    Action.REPLACE: "[NAME] QUERY",
    Action.REMOVE: "NAME...",
    Action.HISTORY: "",
    Action.ROLLBACK: "VERSION",
}


def rules(
    place: Annotated[
        str,
        typer.Argument(metavar="RULES", help="A folder of .neel files, or kafka://HOST:PORT/TOPIC."),
    ],
    action: Annotated[Action, typer.Argument(help="What to do.")] = Action.LIST,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME] [QUERY] [VERSION]",
            help="add and replace take a query, as a file or as text, optionally after the name of the "
            "rule (by default that of the file); remove takes names; rollback takes a version.",
        ),
    ] = None,
    format: AnswerOption = AnswerFormat.TEXT,
    dialect: DialectOption = None,
    set: SetOption = None,
) -> None:
    """Change the rules in a folder or a Kafka topic: a running job picks up the change.

    Each change is checked, applied as a whole, and numbered. A rule that is not a valid query is refused, and
    nothing changes; list marks one that you edited by hand.
    """
    given = arguments or []
    kept = open_rules(place)
    folder = Path(place)
    if not is_topic(place) and not folder.is_dir() and (action is not Action.ADD or folder.exists()):
        raise typer.BadParameter(f"there is no folder {place!r}.", param_hint="RULES")
    match action:
        case Action.LIST | Action.HISTORY:
            _counted(action, given, 0, 0)
            _show(_listed(kept, _Check(dialect, set)) if action is Action.LIST else _past(kept), format)
            if action is Action.HISTORY and kept.forgets:
                note("the topic is compacted or old messages were deleted: earlier versions may be missing")
            return
        case Action.ADD | Action.REPLACE:
            _counted(action, given, 1, 2)
            name, text = _named(given)
            what, changes = f"{action.value} {name}", _put(action, name, text)
        case Action.REMOVE:
            _counted(action, given, 1, None)
            what, changes = f"remove {', '.join(given)}", _removed(given)
        case Action.ROLLBACK:
            _counted(action, given, 1, 1)
            what, changes = f"rollback {given[0]}", _rolled_back(kept, given[0])
    is_changed = False

    def wanted(known: RuleSet) -> Changes:
        nonlocal is_changed
        found = changes(known)
        is_changed = any(known.texts.get(name) != text for name, text in found.items())
        return found

    new = kept.change(what, wanted, _Check(dialect, set))
    if not is_changed:
        output().print(f"version {new.version}: nothing to change")
    else:
        output().print(f"version {new.version}: {what}", soft_wrap=True, markup=False)


def _counted(action: Action, given: list[str], least: int, most: int | None) -> None:
    if len(given) < least or (most is not None and len(given) > most):
        said = f"nestream rules RULES {action.value} {_ARGUMENTS[action]}".rstrip()
        raise typer.BadParameter(f"write {said}.", param_hint=action.value)


def _named(given: list[str]) -> tuple[str, str]:
    """The name of a rule and its text."""
    query = query_text(given[-1])
    name = given[0] if len(given) == 2 else "" if query.path is None else query.path.stem
    if not name:
        raise typer.BadParameter("the text of a query needs a name before it.", param_hint="NAME")
    try:
        check_name(name)
    except RulesError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint="NAME") from None
    return name, query.text if query.text.endswith("\n") else query.text + "\n"


# -- what changes --------------------------------------------------------------------------------------


def _put(action: Action, name: str, text: str) -> Known:
    def changes(known: RuleSet) -> Changes:
        if action is Action.ADD and name in known.rules:
            raise RulesError(f"there is a rule {name} already\n  hint: replace it, or choose another name")
        if action is Action.REPLACE:
            _known(known, [name])
        return {name: text}

    return changes


def _removed(names: list[str]) -> Known:
    def changes(known: RuleSet) -> Changes:
        _known(known, names)
        return dict.fromkeys(names)

    return changes


def _rolled_back(kept: RuleStore, version: str) -> Known:
    if not version.isdigit():
        raise typer.BadParameter(f"{version!r} is not the number of a version.", param_hint="VERSION")
    return lambda known: known.differences(kept.at(int(version)).texts)


def _known(known: RuleSet, names: list[str]) -> None:
    for name in names:
        if name not in known.rules:
            close = get_close_matches(name, known.rules, 1)
            listed = shorten(", ".join(known.rules), 60, placeholder=" …")
            there = f"the rules are {listed}" if listed else "there are no rules"
            hint = f"did you mean {close[0]}?" if close else there
            raise RulesError(f"there is no rule {name}\n  hint: {hint}")


class _Check:
    """Raises if changed rules are not queries, or do not fit together with the others on a stream."""

    def __init__(self, dialect: Dialect | None, given: list[str] | None) -> None:
        self._dialect, self._given = dialect, values_of(given)

    def __call__(self, texts: Mapping[str, str], changes: Changes) -> None:
        try:
            check_rules(texts, changes, self._dialect, self._given)
        except ValueError as problem:
            if hasattr(problem, "diagnostics"):
                raise
            raise RulesError(str(problem)) from None

    def problem(self, name: str, text: str) -> str | None:
        """Why a rule cannot run, in short; None if it can. The values of its parameters may be missing."""
        try:
            self({name: text}, {name: text})
        except nestream.QueryError as problem:
            wrong = (one for one in problem.diagnostics if one.is_error and one.code != "missing-parameter")
            return next((one.message for one in wrong), None)
        except RulesError as problem:
            return str(problem).splitlines()[0]
        return None


# -- what is shown -------------------------------------------------------------------------------------


def _listed(kept: RuleStore, check: _Check) -> list[dict[str, Any]]:
    times = {one.version: one.time for one in kept.history()}
    return [
        {
            "rule": name,
            "version": rule.version,
            "time": times.get(rule.version),
            "text": rule.text,
            "problem": check.problem(name, rule.text),
        }
        for name, rule in kept.read(None).rules.items()
    ]


def _past(kept: RuleStore) -> list[dict[str, Any]]:
    return [
        {"version": one.version, "time": one.time, "what": one.what, "rules": one.rules}
        for one in kept.history()
    ]


def _show(rows: list[dict[str, Any]], format: AnswerFormat) -> None:
    if format is AnswerFormat.JSON:
        output().print(json.dumps(rows, ensure_ascii=False), soft_wrap=True, markup=False)
        return
    shown = [[_cell(name, value) for name, value in row.items()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        output().print(line, soft_wrap=True, markup=False)
    if not rows:
        output().print("nothing was changed yet")


def _cell(name: str, value: Any) -> str:
    match name:
        case "version":
            return f"v{value}"
        case "time":
            return "" if value is None else str(value).replace("T", " ").removesuffix("+00:00")
        case "rules":
            return ", ".join(f"-{rule}" if text is None else rule for rule, text in value.items())
        case "problem":
            return "" if value is None else f"cannot run: {value}"
        case "text":
            return shorten(value, 80, placeholder=" …")
    return str(value)
