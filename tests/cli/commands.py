"""Running the command line: in process, as a program in a pipe, and as a program on a terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from threading import Timer
from typing import Any

from typer.testing import CliRunner, Result

from nestream.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "contaminated-instruments.neel"
PROGRAM = Path(sysconfig.get_path("scripts")) / "nestream"
PLAIN = {"NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb", "FORCE_COLOR": None, "GITHUB_ACTIONS": None}


_CHANGING = {
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "NO_COLOR",
    "PYTHONUNBUFFERED",  # writes to a closed pipe may then pass for written
    "TTY_COMPATIBLE",
}


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without what changes colours, width or buffers; the program on PATH."""
    kept = {key: value for key, value in os.environ.items() if key not in _CHANGING}
    return {**kept, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", **changes}


def call(*arguments: str | Path, input: str | bytes | None = None) -> Result:
    """Run a command in this process; what is not meant for a user comes through."""
    return CliRunner(env=PLAIN).invoke(app, list(map(str, arguments)), input=input, catch_exceptions=False)


def program(
    *arguments: str | Path, input: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program with pipes all around."""
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        input=input,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def shell(command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a line of shell."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",  # `head` may cut a character in two
        timeout=600,
        check=False,
    )


def on_terminal(
    arguments: Sequence[str | Path],
    pipe_stdout: bool = False,
    meanwhile: Callable[[subprocess.Popen[bytes], str], None] | None = None,
    **popen: Any,
) -> tuple[int, str, str]:
    """Run the program on a terminal of 100 columns; its exit code, what was piped, what the screen got."""
    leader, follower = pty.openpty()
    ioctl(follower, TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        [str(PROGRAM), *map(str, arguments)],
        stdin=popen.pop("stdin", follower),
        stdout=subprocess.PIPE if pipe_stdout else follower,
        stderr=follower,
        env=environment(TERM="xterm"),
        preexec_fn=_heed_interrupts,
        **popen,
    )
    os.close(follower)
    watchdog = Timer(600, process.kill)
    watchdog.start()
    screen = b""
    while True:
        try:
            piece = os.read(leader, 65_536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        screen += piece
        if meanwhile is not None:
            meanwhile(process, screen.decode(errors="replace"))
    watchdog.cancel()
    os.close(leader)
    piped = process.stdout.read().decode() if process.stdout else ""
    return process.wait(timeout=60), piped, screen.decode().replace("\r\n", "\n")


def _heed_interrupts() -> None:
    """Let the program be interrupted even where the tests run in the background, which ignores that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def without_colours(screen: str) -> str:
    """The characters that the screen shows in the end, line by line."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)


if sys.platform == "win32":  # pragma: no cover
    raise ImportError("these tests need a pseudo-terminal")
