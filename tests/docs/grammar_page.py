"""Draws the railroad diagrams of docs/reference/grammar.md from the grammar of the language.

`python -m tests.docs.grammar_page` draws them anew, one file for each rule under docs/pictures/grammar.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import railroad
from lark import Token, Tree, load_grammar

ROOT = Path(__file__).resolve().parents[2]
GRAMMAR = ROOT / "src/nestream/language/grammar.lark"
FOLDER = ROOT / "docs/pictures/grammar"
WORDS = {
    "KEPT": ["FIRST", "LAST", "LONGEST", "SHORTEST", "DISJOINT"],
    "REPEAT": ["+", "*"],
    "CASE_END": ["END"],
}
"""Terminals that stand for words of the text."""
NAMES = {"EXPRESSION_NAME": "name", "NAME": "name", "QUOTED_NAME": "`name`"}
"""Terminals that stand for names."""
KINDS = ("NUMBER", "STRING", "PARAMETER")
"""Terminals with many spellings, which the page describes."""
LEFT_OUT = ("UNREADABLE",)
"""What only the recovery from mistakes needs."""
STYLE = """
svg.railroad-diagram path { stroke-width: 2; stroke: #7c8798; fill: none }
svg.railroad-diagram text { font: 14px ui-monospace, monospace; text-anchor: middle; fill: #0f172a }
svg.railroad-diagram rect { stroke-width: 1.5; stroke: #7c8798; fill: #e2e8f0 }
svg.railroad-diagram .terminal rect { fill: #dbeafe }
"""


@cache
def rules() -> dict[str, Tree[Any]]:
    """The rules of the grammar, each with its alternatives as the file has them."""
    parse: Any = load_grammar._parse_grammar  # the rules as they are written
    statements = parse(GRAMMAR.read_text(encoding="utf-8"), GRAMMAR.name).children
    found = {}
    for statement in statements:
        if isinstance(statement, Tree) and statement.data == "rule":
            name = str(statement.children[1]).lstrip("?")
            found[name] = statement.children[-1]
    return found


def shown_rules() -> list[str]:
    """The rules that have a diagram; those that begin with `_` are drawn where they are used."""
    return [name for name in rules() if not name.startswith("_") and name != "named"]


def drawing(rule: str) -> str:
    """The diagram of a rule as SVG."""
    page = io.StringIO()
    railroad.Diagram(node(rules()[rule])).writeStandalone(page.write, STYLE)
    return f"{page.getvalue().rstrip()}\n"


def node(tree: Any) -> Any:
    """A part of a rule as a part of a diagram."""
    if tree.data == "expansions":
        branches = [branch for branch in map(node, tree.children) if branch is not None]
        return branches[0] if len(branches) == 1 else railroad.Choice(0, *branches)
    if tree.data == "alias":
        return node(tree.children[0])
    if tree.data == "expansion":
        parts = list(sequence(tree.children))
        if parts == [None]:
            return None
        return parts[0] if len(parts) == 1 else railroad.Sequence(*parts)
    if tree.data == "expr":
        inner, operator = node(tree.children[0]), str(tree.children[1])
        return {"?": railroad.Optional, "*": railroad.ZeroOrMore, "+": railroad.OneOrMore}[operator](inner)
    return value(tree.children[0])


def sequence(parts: Sequence[Any]) -> Iterator[Any]:
    """The parts of a sequence, where `x ("," x)*` is one loop."""
    position = 0
    while position < len(parts):
        part = parts[position]
        following = parts[position + 1] if position + 1 < len(parts) else None
        separator = separated(part, following)
        if separator is not None:
            yield railroad.OneOrMore(node(part), separator)
            position += 1
        else:
            yield node(part)
        position += 1


def separated(part: Any, following: Any) -> Any:
    """What stands between repetitions of a part, if that is what follows it."""
    if following is None or following.data != "expr" or str(following.children[1]) not in "*+":
        return None
    inner = following.children[0]
    if inner.data != "expansions" or len(inner.children) != 1:
        return None
    repeated = inner.children[0].children
    if len(repeated) == 2 and repeated[1] == part:
        return node(repeated[0])
    return None


def value(leaf: Any) -> Any:
    """A word, a sign, or the name of another rule."""
    if isinstance(leaf, Tree):  # a literal
        return railroad.Terminal(str(leaf.children[0])[1:-1])
    name = str(leaf.name) if not isinstance(leaf, Token) else str(leaf)
    if name in LEFT_OUT:
        return None
    if name in WORDS:
        words = [railroad.Terminal(word) for word in WORDS[name]]
        return words[0] if len(words) == 1 else railroad.Choice(0, *words)
    if name in NAMES:
        return railroad.NonTerminal(NAMES[name])
    if name in KINDS:
        return railroad.NonTerminal(name.lower())
    if name.startswith("_"):
        return node(rules()[name])
    return railroad.Terminal(name) if name.isupper() else railroad.NonTerminal(name)


def write() -> None:
    """Draw all diagrams anew, and remove those of rules that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.svg"):
        old.unlink()
    for rule in shown_rules():
        (FOLDER / f"{rule}.svg").write_text(drawing(rule), encoding="utf-8")


if __name__ == "__main__":
    write()
