"""The TextMate grammar of the VS Code extension: made of the words of the language, and read as editors do.

`python -m tests.editor.textmate` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nestream.editor.words import KEYWORDS, called
from nestream.model.time import UNITS

FILE = Path(__file__).resolve().parents[2] / "editors/vscode/syntaxes/neel.tmLanguage.json"
_NAME = r"(?:[^\W\d]\w*(?:-\w+)*|`(?:[^`]|``)+`)"
_BEGIN, _END = r"(?<![\w.$-])", r"(?![\w-])"
_VALUE = r"""(?=\s+(?:[\w`'"“‘$(\[!-]))"""

SCOPES = {
    "keyword.control.neel": ("PATTERN", "EVENT", "WHERE", "WITHIN", "RETURN", "LIMIT", "AS"),
    "keyword.operator.pattern.neel": ("SEQ", "AND", "OR", "NOT", "ANY", "EXISTS"),
    "keyword.operator.word.neel": ("IN", "BETWEEN", "IS"),
    "constant.language.neel": ("NULL", "TRUE", "FALSE"),
}
"""The reserved words by scope."""

SOFT = {
    "keyword.control.keep.neel": (
        (r"KEEP(?=\s+(?:FIRST|LAST|LONGEST|SHORTEST|DISJOINT)\b)", ("KEEP",)),
        (
            r"(?<=KEEP )(?:FIRST|LAST|LONGEST|SHORTEST|DISJOINT)",
            ("FIRST", "LAST", "LONGEST", "SHORTEST", "DISJOINT"),
        ),
        (rf"PER(?=\s+{_NAME})", ("PER",)),
        (r"EVERY(?=\s+(?:[0-9$]|INTERVAL\b))", ("EVERY",)),
        (rf"INTO(?=\s+{_NAME})", ("INTO",)),
    ),
    "storage.modifier.step.neel": (
        (rf"(?:NEXT|DIRECTLY)(?=\s+(?:ANY\b|{_NAME}\s+{_NAME}))", ("NEXT", "DIRECTLY")),
    ),
    "keyword.operator.word.neel": ((rf"(?:LIKE|MATCHES){_VALUE}", ("LIKE", "MATCHES")),),
    "keyword.control.case.neel": (
        (r"CASE(?=\s+WHEN\b)", ("CASE",)),
        (rf"(?:WHEN|THEN|ELSE){_VALUE}", ("WHEN", "THEN", "ELSE")),
        (r"END(?=\s*(?:[),<>=!+*/%-]|$|\b))", ("END",)),
    ),
    "storage.modifier.distinct.neel": ((rf"(?<=\()DISTINCT(?=\s+{_NAME})", ("DISTINCT",)),),
    "constant.language.window.neel": (
        (r"(?<=WITHIN )UNBOUNDED", ("UNBOUNDED",)),
        (r"(?<=[0-9] )EVENTS", ("EVENTS",)),
    ),
    "support.type.neel": (
        (r"""(?:INTERVAL|TIMESTAMP|DATE)(?=\s*['"“‘])""", ("INTERVAL", "TIMESTAMP", "DATE")),
    ),
}
"""The soft words by scope: where the words beside one show that it is meant, and the words."""


def grammar() -> dict[str, Any]:
    """The grammar, of the words of the language."""
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "NEEL",
        "scopeName": "source.neel",
        "fileTypes": ["neel"],
        "patterns": list(_patterns()),
    }


def _patterns() -> Iterator[dict[str, Any]]:
    yield {"name": "comment.block.neel", "begin": r"/\*", "end": r"\*/"}
    yield {"name": "comment.line.double-slash.neel", "match": r"//.*$"}
    yield {"name": "comment.line.double-dash.neel", "match": r"--(?=\s|$).*$"}
    for begin, end, kind in (
        ("'", "'", "single"),
        ('"', '"', "double"),
        ("“", "”", "double"),
        ("‘", "’", "single"),
    ):
        escaped = [{"name": "constant.character.escape.neel", "match": end * 2}]
        yield {
            "name": f"string.quoted.{kind}.neel",
            "begin": begin,
            "end": f"{end}(?!{end})",
            "patterns": escaped,
        }
    yield {"name": "variable.other.quoted.neel", "match": "`(?:[^`]|``)+`"}
    yield {"name": "variable.parameter.neel", "match": r"\$[^\W\d]\w*"}
    for scope, words in SCOPES.items():
        yield {"name": scope, "match": _word("|".join(words))}
    for scope, rules in SOFT.items():
        for expression, _ in rules:
            yield {"name": scope, "match": _word(expression)}
    known = called()
    aggregates = "|".join(sorted(name for name, each in known.items() if each.aggregate))
    functions = "|".join(sorted(name for name, each in known.items() if not each.aggregate))
    yield {"name": "support.function.aggregate.neel", "match": _word(f"(?:{aggregates})") + r"(?=\s*\()"}
    yield {"name": "support.function.neel", "match": _word(f"(?:{functions})") + r"(?=\s*\()"}
    units = "|".join(sorted(UNITS, key=lambda unit: (-len(unit), unit)))
    yield {
        "match": rf"(?i)(?<![\w.])([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?:\s+({units}){_END})?",
        "captures": {"1": {"name": "constant.numeric.neel"}, "2": {"name": "keyword.other.unit.neel"}},
    }
    yield {
        "match": rf"({_NAME})([+*]|\{{[0-9, ]*\}})?\s+({_NAME})(?=\s*(?:[,):]|$))",
        "captures": {
            "1": {"name": "entity.name.type.neel"},
            "2": {"name": "keyword.operator.quantity.neel"},
            "3": {"name": "variable.other.declaration.neel"},
        },
    }
    yield {
        "match": rf"({_NAME})(?=\.)",
        "captures": {"1": {"name": "variable.other.object.neel"}},
    }
    yield {
        "match": rf"\.({_NAME})",
        "captures": {"1": {"name": "variable.other.property.neel"}},
    }
    yield {"name": "keyword.operator.negation.neel", "match": r"!(?!=)|¬"}
    yield {"name": "keyword.operator.comparison.neel", "match": r"==|!=|<>|<=|>=|[=<>≠≤≥]"}
    yield {"name": "keyword.operator.logical.neel", "match": "[∧∨∃]"}
    yield {"name": "keyword.operator.arithmetic.neel", "match": r"[+\-*/%]"}
    yield {"match": _NAME}


def _word(expression: str) -> str:
    return rf"(?i){_BEGIN}(?:{expression}){_END}"


def words_of(grammar: Mapping[str, Any]) -> set[str]:
    """The keywords that a grammar names, in capitals."""
    texts = [
        rule.get("match", "")
        for rule in grammar["patterns"]
        if "support.function" not in rule.get("name", "")
    ]
    return {name for name in KEYWORDS if any(re.search(rf"\b{name}\b", text) for text in texts)}


def scopes(grammar: Mapping[str, Any], text: str) -> dict[int, str]:
    """The scope at each offset of a text, read line by line as editors do."""
    rules = [(re.compile(rule.get("match") or rule["begin"]), rule) for rule in grammar["patterns"]]
    found: dict[int, str] = {}
    inside: dict[str, Any] | None = None
    start = 0
    for line in text.splitlines(keepends=True):
        bare, at = line.rstrip("\r\n"), 0
        while at <= len(bare):
            if inside is not None:
                at, inside = _to_end(bare, at, start, inside, found)
                continue
            matches = [(match, rule) for each, rule in rules if (match := each.search(bare, at)) and match[0]]
            if not matches:
                break
            match, rule = min(matches, key=lambda each: each[0].start())
            _mark(found, rule.get("name", ""), start + match.start(), start + match.end())
            for group, scope in rule.get("captures", {}).items():
                if match[int(group)]:
                    _mark(
                        found, scope["name"], start + match.start(int(group)), start + match.end(int(group))
                    )
            at = match.end()
            inside = rule if "begin" in rule else None
        start += len(line)
    return found


def _to_end(
    line: str, at: int, start: int, rule: dict[str, Any], found: dict[int, str]
) -> tuple[int, dict[str, Any] | None]:
    """Read on in a comment or string: to its end, or to that of the line."""
    inner = [re.compile(each["match"]) for each in rule.get("patterns", ())]
    place = at
    while True:
        end = re.compile(rule["end"]).search(line, place)
        skipped = [match for each in inner if (match := each.search(line, place))]
        first = min(skipped, key=lambda match: match.start(), default=None)
        if first is not None and (end is None or first.start() < end.start()):
            place = first.end()
            continue
        until = end.end() if end else len(line)
        _mark(found, rule["name"], start + at, start + until)
        return (until, None) if end else (len(line) + 1, rule)


def _mark(found: dict[int, str], scope: str, start: int, end: int) -> None:
    if scope:
        found.update(dict.fromkeys(range(start, end), scope))


def written() -> str:
    """The text of the grammar's file."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
