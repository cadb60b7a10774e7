"""Running other programs with a limit of time and memory, each alone or in turns."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

_LOOK = 0.1
"""Seconds between two looks at a program's memory."""


@dataclass(frozen=True)
class Outcome:
    """What a program said, one JSON value a line, and how it ended: done, or why not."""

    lines: list[dict[str, Any]]
    status: str


class Program:
    """A running program that says one JSON value a line; ended when it is silent for too long or too big."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60,
        memory: int = 8 * 2**30,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.seconds, self.memory = seconds, memory
        self.status = "done"
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._problems: list[str] = []
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._readers = [
            threading.Thread(target=_forward, args=(self._process.stdout, self._lines), daemon=True),
            threading.Thread(target=self._listen, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self._problems.append(self._process.stderr.read())

    def say(self, text: str) -> None:
        """Write to its standard input."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError:  # it has ended; why is told by what it says
            return

    def hear(self) -> dict[str, Any] | None:
        """The next line; None when it has ended, or was ended, and `status` says why."""
        deadline = time.monotonic() + self.seconds
        while True:
            try:
                line = self._lines.get(timeout=_LOOK)
            except queue.Empty:
                if time.monotonic() > deadline:
                    self.status = f"did not finish in {self.seconds:.0f} s"
                elif _held(self._process.pid) > self.memory:
                    self.status = f"more than {self.memory / 2**30:.0f} GB"
                else:
                    continue
                self._process.kill()
                self.end()
                return None
            if line is not None:
                said: dict[str, Any] = json.loads(line)
                return said
            self.end()
            return None

    def close(self) -> None:
        """Say that nothing more is said."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def end(self) -> None:
        """Wait for it to end, which it does when nothing more is said."""
        self.close()
        code = self._process.wait()
        for reader in self._readers:
            reader.join(timeout=5)
        if self.status == "done" and code:
            said = "".join(self._problems).strip().splitlines() or [f"exit code {code}"]
            self.status = f"failed: {said[-1][:200]}"


def limited(
    command: Sequence[str], *, input: str = "", seconds: float = 60, memory: int = 8 * 2**30
) -> Outcome:
    """Run a program alone, until it ends or is ended."""
    program = Program(command, seconds=seconds, memory=memory)
    program.say(input)
    program.close()
    found: list[dict[str, Any]] = []
    while (line := program.hear()) is not None:
        found.append(line)
    if found and program.status != "done" and not program.status.startswith("failed"):
        return Outcome(found, "done")  # it has finished before, and only a repeat was too much
    return Outcome(found, program.status)


def _forward(pipe: Any, lines: queue.Queue[str | None]) -> None:
    for line in pipe:
        lines.put(line)
    lines.put(None)


def _held(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
