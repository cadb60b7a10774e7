"""A worker process of the console: reads requests from its input and writes answers to its output."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings

from nestream.console.frames import frame, read_frame
from nestream.console.operations import Operations


def limit_memory(most: int) -> None:
    """Let the process have so many bytes, where the system can see to it."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def main() -> None:
    """Serve one request after the other."""
    settings = json.loads(sys.argv[1])
    limit_memory(settings["memory"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not come between the answers
    operations = Operations(settings["files"])
    answers.write(frame({"ok": True}))  # ready for requests
    answers.flush()
    while (request := read_frame(sys.stdin.buffer)) is not None:
        try:
            answer = operations.answer(request)
        except Exception as error:  # the process goes on; what went wrong is for the one who asked
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}
        answers.write(frame(answer))
        answers.flush()


if __name__ == "__main__":
    main()
