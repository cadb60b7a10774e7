"""What the worker measures of the command line: cold starts, and the time to the first matches of a file."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import time
from typing import Any

Task = dict[str, Any]
NESTREAM = (sys.executable, "-c", "from nestream.cli.main import main; main()")
READ = "import nestream.cli.run, sys, pyarrow.parquet as pq; pq.read_table(sys.argv[1]); print()"


def start(task: Task) -> Task:
    """Seconds of whole commands, in turns with a Python that does nothing.

    Modules have their bytecode, as after an installation, whatever the environment says. Kernels have no
    machine code where it is they that are compiled.
    """
    commands = {
        "python": (sys.executable, "-c", "pass"),
        "import": (sys.executable, "-c", "import nestream"),
        **{name: (*NESTREAM, name, task["query"]) for name in ("fmt", "check", "explain")},
        "run": (*NESTREAM, "run", task["query"], task["path"], "--format", "jsonl"),
        "kernels": (sys.executable, "-m", "nestream.engine.kernels"),
    }
    command = commands[task["command"]]
    samples, bare = [], []
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(task["repeats"] + 1):
            bare.append(_whole(commands["python"], environment))
            with tempfile.TemporaryDirectory() as saved:
                own = {"NUMBA_CACHE_DIR": saved} if task["command"] == "kernels" else {}
                samples.append(_whole(command, environment | own))
    return {"samples": samples[1:], "python": min(bare)}


def _whole(command: tuple[str, ...], environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[3:])}: {done.stderr[-200:]}")
    return time.perf_counter() - begin


def first(task: Task) -> Task:
    """`nestream run`: seconds from its start to its first matches, and to read the file alone."""
    samples, alone = [], []
    for _ in range(task["repeats"]):  # in turns, since the machine may be busy for a while
        alone.append(_first_output((sys.executable, "-c", READ, task["path"]), False))
        samples.append(_first_output((*NESTREAM, "run", task["query"], task["path"]), task["terminal"]))
    return {"samples": samples, "read": min(alone), "after": min(samples) - min(alone)}


def _first_output(command: tuple[str, ...], terminal: bool) -> float:
    """Seconds to the first output; on a terminal to the frame of the table, after any progress."""
    begin = time.perf_counter()
    leader, follower = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
    source = follower if terminal else subprocess.DEVNULL
    wanted, screen = ("╭" if terminal else "\n").encode(), b""
    with subprocess.Popen(
        command, stdout=follower, stderr=subprocess.DEVNULL, stdin=source, env=environment
    ) as process:
        os.close(follower)
        while wanted not in screen:
            try:
                read = os.read(leader, 65_536)
            except OSError:  # a terminal whose program has ended
                read = b""
            if not read:
                break
            screen += read
        seconds = time.perf_counter() - begin
        process.kill()
    os.close(leader)
    if wanted not in screen:
        raise RuntimeError(f"{' '.join(command[3:])} gave no matches: {screen.decode(errors='replace')}")
    return seconds


TASKS = {"start": start, "first": first}
