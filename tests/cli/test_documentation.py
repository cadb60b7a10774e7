"""docs/cli.md shows what the commands print: every `$` line is run, and its output compared.

`python -m tests.cli.test_documentation` writes the outputs anew; read the difference before you commit it.
"""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner

from nestream.cli.main import app
from tests.cli.commands import EXAMPLE, PLAIN, ROOT, shell

PAGE = ROOT / "docs" / "cli.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@contextmanager
def _folder() -> Iterator[Path]:
    """An empty folder with the examples, in which the page's commands run one after the other."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(EXAMPLE.parent, Path(name, "examples"))
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def _output(command: str) -> str:
    """What a command prints, with a fixed number of seconds and of bytes held."""
    words = shlex.split(command, comments=True)
    if words[0] == "nestream" and not set(words) & {"|", ">", ";"}:
        printed = (
            CliRunner(env={**PLAIN, "COLUMNS": "80"}).invoke(app, words[1:], catch_exceptions=False).output
        )
    else:
        result = shell(command)
        printed = result.stdout + result.stderr
    printed = re.sub(r"\d+\.\d+ seconds", "0.12 seconds", printed)
    printed = re.sub(r"state [\d.]+ [KM]?B", "state 1.2 KB", printed)
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def rewritten(page: str) -> str:
    """The page with the outputs that its commands have now."""

    def block(found: re.Match[str]) -> str:
        commands = [line for line in found[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{line}\n{_output(line[2:])}" for line in commands) + "```"

    with _folder():
        return _BLOCK.sub(block, page)


def test_the_page_shows_what_the_commands_print() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page


def test_the_page_shows_every_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = set(re.findall(r"^\$ nestream (\w+)", page, re.MULTILINE))
    assert {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    } <= shown


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
