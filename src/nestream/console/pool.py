"""Worker processes in which the console reads and runs queries: they can be killed, so they cannot hang it.

A query may run forever or use all memory. In its own process it has limited time and memory, and then it is
killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nestream.console.frames import frame, receive_frame
from nestream.console.hub import dumps

WORKERS = 2
QUICK = ("check", "complete")
"""What is requested while you type: it has its own worker, so that no run delays it."""
MOST_WAITING = 16
SECONDS = 20.0
STARTING = 60.0
MEMORY = 4 << 30


class RunError(Exception):
    """A run without a result, and the reason, in words for the user."""


@dataclass
class Worker:
    """One process, which does one thing at a time."""

    settings: dict[str, Any]
    process: asyncio.subprocess.Process | None = None

    async def ask(
        self, request: dict[str, Any], seconds: float, stop: asyncio.Event | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for the answer, up to a number of seconds, or until `stop`.

        A run sends partial results; if it is stopped, the last one is the answer.
        """
        process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        found: dict[str, Any] | None = None
        try:
            async with asyncio.timeout(seconds):
                process.stdin.write(frame({**request, "seconds": seconds}))
                await process.stdin.drain()
                while True:
                    answer = await _unless(stop, receive_frame(process.stdout))
                    if answer is None or "partial" not in answer:
                        break
                    found = answer["partial"]
        except TimeoutError:
            await self.end()
            return _stopped(found, f"It took longer than {seconds:g} seconds and was stopped.")
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.end()
            raise RunError("It ended early. It may have needed more memory than a run may use.") from None
        except asyncio.CancelledError:
            await self.end()  # the answer would be taken for that of the next request
            raise
        if answer is None:
            await self.end()
            return _stopped(found, "You stopped it.")
        return dict(answer)

    async def _started(self) -> asyncio.subprocess.Process:
        if self.process is None or self.process.returncode is not None:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "nestream.console.worker",
                dumps({**self.settings, "memory": MEMORY, "parent": os.getpid()}),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                process_group=0,  # Ctrl-C is for the server, which ends its workers
            )
            await self._ready(self.process)
        return self.process

    async def _ready(self, process: asyncio.subprocess.Process) -> None:
        """Wait until the process has started, which does not count as time of its first run."""
        assert process.stdout is not None
        try:
            async with asyncio.timeout(STARTING):
                await receive_frame(process.stdout)
        except (TimeoutError, asyncio.IncompleteReadError):
            await self.end()
            raise RunError("The process to run it could not be started.") from None
        except asyncio.CancelledError:
            await self.end()
            raise

    async def end(self) -> None:
        """Kill the process, if there is one."""
        process, self.process = self.process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _unless(stop: asyncio.Event | None, receiving: Coroutine[Any, Any, Any]) -> Any:
    """The message; None if it is told to stop before."""
    if stop is None:
        return await receiving
    tasks = [asyncio.create_task(receiving), asyncio.create_task(stop.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else None
    finally:
        for task in tasks:
            task.cancel()


def _stopped(found: dict[str, Any] | None, why: str) -> dict[str, Any]:
    if found is None:
        raise RunError(why)
    return {**found, "stopped": why}


@dataclass
class Pool:
    """A few workers for all browsers, with a limit on the number of waiting requests."""

    data: dict[str, Path] = field(default_factory=dict)
    time: str = "ts"
    type: str = "type"
    """The columns of those files."""
    seconds: float = field(default_factory=lambda: SECONDS)
    waiting: int = 0
    _idle: tuple[asyncio.Queue[Worker], asyncio.Queue[Worker]] = field(
        default_factory=lambda: (asyncio.Queue(), asyncio.Queue())
    )
    """The idle workers: those for runs, and the one for quick requests."""
    _all: tuple[list[Worker], list[Worker]] = field(default_factory=lambda: ([], []))

    def worker(self) -> Worker:
        """A worker outside of the pool, for something long."""
        files = {name: str(path) for name, path in self.data.items()}
        return Worker({"files": files, "time": self.time, "type": self.type})

    async def ask(
        self, operation: str, stop: asyncio.Event | None = None, /, **request: Any
    ) -> dict[str, Any]:
        """The answer of some worker; raises `RunError`."""
        quick = operation in QUICK
        idle, every = self._idle[quick], self._all[quick]
        if self.waiting >= MOST_WAITING:
            raise RunError("Too many runs are waiting; try again in a moment.")
        self.waiting += 1
        try:
            if idle.empty() and len(every) < (1 if quick else WORKERS):
                every.append(self.worker())
                idle.put_nowait(every[-1])
            worker = await _unless(stop, idle.get())
            if worker is None:
                raise RunError("You stopped it before it began.")
            try:
                answer: dict[str, Any] = await worker.ask(
                    {"operation": operation, **request}, self.seconds, stop
                )
                return answer
            finally:
                idle.put_nowait(worker)
        finally:
            self.waiting -= 1

    async def warm(self) -> None:
        """Start the first worker of each kind, which takes a second, before it is needed."""
        with contextlib.suppress(RunError):
            for operation in ("check", "plan"):
                await self.ask(operation, text="SEQ(A a, B b) WITHIN 1")

    async def close(self) -> None:
        """Kill all."""
        for worker in (*self._all[0], *self._all[1]):
            await worker.end()
