"""The commands that pages only show, which no test runs, have the subcommands and options that they name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from nestream.cli.main import app
from tests.cli.commands import ROOT

PAGES = [
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
    *(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "design"),
    *(ROOT / "benchmarks").glob("*.md"),
    *(ROOT / "editors").glob("*/*.md"),
]
SHOWN = re.compile(r"^ *```sh[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
TYPED = re.compile(r"^\$ (.+)$", re.MULTILINE)
INLINE = re.compile(r"`((?:(?:\S*/)?nestream|(?:\./)?scripts/[a-z-]+) [^`]+)`")
ENDS = {"|", "&", "&&", "||", ";", ">", ">>", "<"}
COMMANDS = get_command(app)
IN = typer.Context(COMMANDS)
TAKES = {"bench": ["benchmarks/__main__.py", "benchmarks/report.py"], "matrix": ["tests/matrix/__main__.py"]}
"""Where a script finds its options, if not in itself."""
HANDS_ON = {"demo", "pin", "slow-test", "test"}
"""Scripts that hand their arguments on to another program."""


def shown(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a page: of its shell blocks, its transcripts and its sentences."""
    blocks = [line for block in SHOWN.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    for line in (*blocks, *TYPED.findall(text), *INLINE.findall(text.replace("\\|", "|"))):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in (*lexer, ";"):
            if word not in ENDS:
                words.append(word)
            elif words:
                yield words
                words = []


def wrong(words: list[str]) -> str:
    """What is wrong with a command of ours; nothing if it is right, or not ours."""
    for place, word in enumerate(words):
        if Path(word).name == "nestream" and words[place + 1 :]:
            return wrong_nestream(words[place + 1 :])
        if Path(word).parent.name == "scripts":
            return wrong_script(Path(word).name, words[place + 1 :])
    return ""


def wrong_nestream(words: list[str]) -> str:
    if words[0].startswith("-"):
        return "" if words[0] in ("--help", "--version") else f"no option {words[0]}"
    command = COMMANDS.get_command(IN, words[0])  # type: ignore[attr-defined]
    if command is None:
        return "" if words[0].isupper() or words[0] == "..." else f"no command {words[0]}"
    try:
        command.make_parser(typer.Context(command, parent=IN)).parse_args(words[1:])
    except Exception as error:  # whatever the parser refuses: an unknown option, one without its value
        return str(error)
    return ""


def wrong_script(name: str, words: list[str]) -> str:
    script = ROOT / "scripts" / name
    if not script.is_file():
        return f"no script {name}"
    texts = [(ROOT / path).read_text("utf-8") for path in (f"scripts/{name}", *TAKES.get(name, ()))]
    unknown = [word for word in words if word.startswith("--") and not any(word in text for text in texts)]
    return f"no option {unknown}" if unknown and name not in HANDS_ON else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_are_accepted(page: Path) -> None:
    found = [(wrong(words), shlex.join(words)) for words in shown(page.read_text(encoding="utf-8"))]
    assert [(reason, command) for reason, command in found if reason] == []


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert wrong(["nestream", "rnu", "q.neel"]) == "no command rnu"
    assert "--formt" in wrong(["time", ".venv/bin/nestream", "run", "q.neel", "e.csv", "--formt", "csv"])
    assert wrong(["nestream", "stream", "q.neel", "--from", "a", "--local"]) == ""
    assert wrong(["./scripts/setup", "--with", "dev", "--fast"]) == "no option ['--fast']"
    assert list(shown("```sh\ntail -f a | nestream run \\\n  q e  # now\n```")) == [
        ["tail", "-f", "a"],
        ["nestream", "run", "q", "e"],
    ]
