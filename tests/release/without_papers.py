"""What nestream says without nestream-papers; runs where nestream is the contents of its wheel.

Prints one line of JSON: what each call that needs nestream-papers says, and what the others answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import nestream
from nestream.cli.main import app
from nestream.console.operations import Operations
from nestream.query import switches
from nestream.show import plan_graph

EVENTS = [{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}]
QUERY = nestream.query("SEQ(A a, B b) WITHIN 10")
RULES = nestream.queries({"one": QUERY.text})


def said(way: Callable[[], Any]) -> str:
    """The kind and the sentence of an error."""
    try:
        return f"no error: {way()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def command(*arguments: str) -> dict[str, Any]:
    """What a command prints and its exit code; a traceback comes through."""
    ran = CliRunner(env={"NO_COLOR": "1", "COLUMNS": "200", "TERM": "dumb"}).invoke(
        app, arguments, catch_exceptions=False
    )
    return {"exit": ran.exit_code, "said": ran.output}


def shipped(function: Path) -> str:
    """What Spark's workers report of a function that was made where nestream-papers is installed."""
    import pickle

    return said(lambda: list(pickle.loads(function.read_bytes())(iter([]))))


def main(function: Path) -> None:
    """Try everything that uses nestream-papers."""
    events = Path("events.csv")
    events.write_text("ts,type\n1,A\n3,B\n")
    asked: dict[str, Callable[[], Any]] = {
        "match": lambda: QUERY.match(EVENTS, strategy="views-balanced"),
        "batches": lambda: next(QUERY.batches(EVENTS, strategy="nested")),
        "count": lambda: QUERY.count(EVENTS, strategy="flat"),
        "stream": lambda: QUERY.stream(strategy="nested"),
        "set": lambda: RULES.match(EVENTS, strategy="nested"),
        "stream of a set": lambda: RULES.stream(strategy="nested"),
        "explain": lambda: QUERY.explain(strategy="nested"),
        "verbose": lambda: QUERY.explain(verbose=True),
        "operators": lambda: QUERY.explain(dialect="sase"),
        "switch": lambda: QUERY.match(EVENTS, options={"push_in": False}),
        "switch of a set": lambda: RULES.match(EVENTS, options={"push_in": False}),
        "graph": lambda: plan_graph(QUERY, rewritten=True),
    }
    commands = {
        "explain": ("explain", QUERY.text, "--strategy", "nested"),
        "verbose": ("explain", QUERY.text, "--verbose"),
        "operators": ("explain", QUERY.text, "--dialect", "sase"),
        "without": ("explain", QUERY.text, "--without", "push_in"),
        "run": ("run", QUERY.text, str(events), "--strategy", "flat"),
        "stream": ("stream", QUERY.text, "--local", "--from", str(events), "--strategy", "nested"),
    }
    console = Operations({}).plan({"text": QUERY.text, "events": EVENTS})
    answer = {
        "from": nestream.__file__,
        "errors": {name: said(way) for name, way in asked.items()},
        "commands": {name: command(*arguments) for name, arguments in commands.items()},
        "worker": shipped(function),
        "doctor": json.loads(command("doctor", "--format", "json")["said"]),
        "help": command("run", "--help"),
        "demo": command("demo", "hospital", "--help"),
        "switches": switches(),
        "found": QUERY.match(EVENTS).num_rows,
        "memory": QUERY.match(EVENTS, options={"memory": 1 << 20}).num_rows,
        "plan": plan_graph(QUERY, analyze=EVENTS).json(),
        "console": {name: console[name] for name in ("nested", "rewritten")},
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
