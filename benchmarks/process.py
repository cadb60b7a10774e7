"""Programs in processes of their own that answer each line with a line of JSON, within limits."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.events import ROOT

LOOK = 0.1
"""Seconds between two looks at a program's memory."""
PAGE = os.sysconf("SC_PAGE_SIZE")


class Program:
    """A running program; it is ended when it is silent for too long, or holds too much memory."""

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
        self.peak = 0
        """The most memory that it and its children held during a turn."""
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors = tempfile.TemporaryFile("w+")
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        )
        threading.Thread(target=self._forward, daemon=True).start()
        self.ready = self._hear()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _forward(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def ask(self, task: Mapping[str, Any]) -> dict[str, Any] | None:
        """What it answers; None when it has ended, or was ended, and `status` says why."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended; `status` says why
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
        self.peak = 0
        return self._hear()

    def _hear(self) -> dict[str, Any] | None:
        deadline = time.monotonic() + self.seconds
        while True:
            try:
                line = self._lines.get(timeout=LOOK)
                self._look()  # so that a turn shorter than the time between two looks has one too
            except queue.Empty:
                self._look()
                if time.monotonic() > deadline:
                    self.status = f"did not finish in {self.seconds:.0f} s"
                elif self.peak > self.memory:
                    self.status = f"more than {self.memory / 2**30:.0f} GB"
                else:
                    continue
                self._process.kill()
                line = None
            if line is None:
                self.end()
                return None
            said: dict[str, Any] = json.loads(line)
            return said

    def _look(self) -> None:
        self.peak = max(self.peak, held(self._process.pid))

    def end(self) -> None:
        """Wait for it to end, which it does when there are no more requests."""
        if self._errors.closed:
            return
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        code = self._process.wait()
        if self.status == "done" and code:
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or [f"exit code {code}"]
            self.status = f"failed: {said[-1][:200]}"
        self._errors.close()


def held(pid: int) -> int:
    """The resident memory of a process and its children, read from /proc: that costs little."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text("ascii").split()]
    except OSError:  # it has ended
        return 0
    return pages * PAGE + sum(held(int(child)) for child in children)
