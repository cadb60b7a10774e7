"""A worker process of the console: reads requests from its input and writes answers to its output."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings

import nestream
from nestream.console.frames import frame, read_frame
from nestream.console.operations import Operations

LOOK = 0.5
"""The seconds between two checks that the server still exists."""
GRACE = 5.0
"""The seconds beyond its time limit after which a run ends by itself."""


def limit_memory(most: int) -> None:
    """Limit the memory of the process, if the system supports it."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def end_with(parent: int) -> None:
    """End this process, whatever it does, when the process that started it ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def limit_time(seconds: float) -> None:
    """Let the system end the process after that many seconds; 0 means never.

    The server does so itself, and earlier. This is for a run that blocks all other threads of the process, so
    that it would not notice the end of the server.
    """
    if hasattr(signal, "setitimer"):  # Windows has none
        signal.setitimer(signal.ITIMER_REAL, seconds)


def load() -> None:
    """Load what a run needs, so that it does not count as time of the first run."""
    events = [{"ts": 1, "type": "A", "id": 1}, {"ts": 2, "type": "B", "id": 1}]
    nestream.query("SEQ(A a, B b) WHERE [id] WITHIN 1").match(events)


def main() -> None:
    """Serve one request after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # without process groups, Ctrl-C arrives here too
    settings = json.loads(sys.argv[1])
    limit_memory(settings["memory"])
    end_with(settings["parent"])
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the answers

    def send(message: object) -> None:
        answers.write(frame(message))
        answers.flush()

    operations = Operations(settings["files"], settings["time"], settings["type"])
    operations.partly = lambda found: send({"partial": found})
    load()
    send({"ok": True})  # ready for requests
    while (request := read_frame(sys.stdin.buffer)) is not None:
        limit_time(request["seconds"] + GRACE)
        try:
            answer = operations.answer(request)
        except Exception as error:  # the process continues; the error is for whoever asked
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}
        limit_time(0)
        send(answer)


if __name__ == "__main__":
    main()
