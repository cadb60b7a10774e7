"""Runs the examples of the documentation, page by page and block by block, in a folder of the page's own.

| block | what becomes of it |
| --- | --- |
| `python` | it is run, after those before it on the page; the `text` that follows is what it prints |
| any kind with `title="NAME"` | it is written to the file NAME |
| `console` | each line that begins with `$` is run; the lines that follow are what it prints |

`python -m tests.docs.pages PAGE...` writes the results of pages anew, and draws their pictures: read the
difference before you commit it. Other kinds of blocks are shown and not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import nestream
from nestream.cli.main import app
from tests.cli.commands import EXAMPLE, PLAIN, ROOT, shell

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(?P<kind>[\w-]+)(?P<rest>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r'title="([^"]+)"')
PICTURE = re.compile(r"!\[[^]]*\]\(\.\./pictures/cookbook/([\w-]+)\.svg\)")
RETURN = re.compile(r"^RETURN .*?(?=^(?:KEEP|LIMIT)|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    """A page after a run: its text with the results of now, and its pictures by name."""

    text: str
    pictures: Mapping[str, str]


def run(page: Path, names: Callable[[], Mapping[str, Any]] = dict) -> Ran:
    """Run the examples of a page; `names`, called in the folder of the page, are known to its Python."""
    text = page.read_text(encoding="utf-8")
    pieces, end, printed = [], 0, None
    with folder():
        known = dict(names())
        for block in BLOCK.finditer(text):
            kind, body = block["kind"], block["text"]
            title = TITLE.search(block["rest"])
            if title:
                Path(title[1]).parent.mkdir(parents=True, exist_ok=True)
                Path(title[1]).write_text(body, encoding="utf-8")
            elif kind == "text" and printed is not None:
                body = printed
            elif kind == "console":
                body = transcript(body)
            if kind != "text" and printed:
                raise AssertionError(f"{page.name} does not show what this prints:\n{printed}")
            printed = output(body, page, known) if kind == "python" and not title else None
            pieces += [text[end : block.start("text")], body]
            end = block.end("text")
        if printed:
            raise AssertionError(f"{page.name} does not show what this prints:\n{printed}")
        pictures = {name: drawn(name, text) for name in PICTURE.findall(text)}
    return Ran("".join([*pieces, text[end:]]), pictures)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder with the examples of the repository, in which a page runs."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(EXAMPLE.parent, Path(name, "examples"))
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def output(code: str, page: Path, names: dict[str, Any]) -> str:
    """What a block of Python prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(page.relative_to(ROOT)), "exec"), names)
    return printed.getvalue()


def transcript(text: str) -> str:
    """The commands of a block, each with what it prints now."""
    commands = [line for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{command_output(line[2:])}" for line in commands)


def command_output(command: str) -> str:
    """What a command prints, with a fixed number of seconds and of bytes held."""
    words = shlex.split(command, comments=True)
    if words[0] == "nestream" and not set(words) & {"|", ">", ";"}:
        runner = CliRunner(env={**PLAIN, "COLUMNS": "80"})
        printed = runner.invoke(app, words[1:], catch_exceptions=False).output
    else:
        result = shell(command)
        printed = result.stdout + result.stderr
    printed = re.sub(r"\d+\.\d+ seconds", "0.12 seconds", printed)
    printed = re.sub(r"state [\d.]+ [KM]?B", "state 1.2 KB", printed)
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def drawn(name: str, text: str) -> str:
    """The timeline of a query over the events that the page runs it on; without RETURN, events are shown."""
    [events] = set(re.findall(rf"^\$ nestream run {name}\.neel (\S+)", text, re.MULTILINE))
    query = nestream.query(RETURN.sub("", Path(f"{name}.neel").read_text(encoding="utf-8")))
    return query.show(Path(events)).timeline.svg() + "\n"


def picture_file(name: str) -> Path:
    """Where a picture of a page is kept."""
    return DOCS / "pictures" / "cookbook" / f"{name}.svg"


if __name__ == "__main__":
    for named in sys.argv[1:]:
        ran = run(Path(named).resolve())
        Path(named).write_text(ran.text, encoding="utf-8")
        for drawing, svg in ran.pictures.items():
            picture_file(drawing).parent.mkdir(parents=True, exist_ok=True)
            picture_file(drawing).write_text(svg, encoding="utf-8")
