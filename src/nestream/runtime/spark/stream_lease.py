"""Lets one job at a time use a folder that cannot be locked, as in an object store, by a renewed lease.

A job that finds a lease watches whether it is renewed; clocks of different machines are not compared. If it
is not renewed, its holder is dead, and the lease is taken over. Two jobs that start at the same moment may
both write one. Only the last counts, and a job checks before each commit, so the other one ends with a
message.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from threading import Event, Thread

from nestream.model.schema import EventError
from nestream.runtime.spark.stream_place import Place

FILE = "nestream-lease.json"
RENEWED = 2.0
"""The seconds between two renewals."""
PATIENCE = 4
"""After this many intervals without a renewal, the holder of a lease counts as dead."""


class Lease:
    """The right to use a checkpoint, until `close`."""

    def __init__(self, checkpoint: Place, renewed: float = RENEWED) -> None:
        self._checkpoint, self._renewed = checkpoint, renewed
        self._number = 0
        self._own = {"holder": uuid.uuid4().hex, "host": socket.gethostname(), "process": os.getpid()}
        self._closed = Event()
        found = self._read()
        if found is not None:
            self._watch(found)
        checkpoint.make()
        self._write()
        self._thread = Thread(target=self._renew, name="nestream lease", daemon=True)
        self._thread.start()

    def _watch(self, found: dict[str, object]) -> None:
        """Refuse the checkpoint if the holder of its lease is alive."""
        for _ in range(PATIENCE):
            self._closed.wait(self._renewed)
            now = self._read()
            if now is None:
                return
            if now != found:
                raise self._taken(now)

    def check(self) -> None:
        """Raise an `EventError` if another job has taken the checkpoint."""
        found = self._read()
        if found is None or found["holder"] != self._own["holder"]:
            raise self._taken(found)

    def _taken(self, found: dict[str, object] | None) -> EventError:
        who = "" if found is None else f" (process {found['process']} on {found['host']})"
        return EventError(
            f"another job{who} uses the checkpoint {self._checkpoint}\n"
            "  hint: stop it, or give this job a checkpoint of its own"
        )

    def _read(self) -> dict[str, object] | None:
        data = self._checkpoint.read(FILE)
        try:
            found = json.loads(data or b"null")
        except ValueError:  # it is being written
            return {"holder": "", "host": "unknown", "process": 0, "number": repr(data)}
        return found if isinstance(found, dict) else None

    def _write(self) -> None:
        self._number += 1
        self._checkpoint.write(FILE, json.dumps({**self._own, "number": self._number}).encode())

    def _renew(self) -> None:
        while not self._closed.wait(self._renewed):
            try:
                self.check()
                self._write()
            except EventError:  # `check` reports it before the next commit; or the store is away for a while
                continue

    def close(self) -> None:
        """Release the checkpoint to other jobs."""
        self._closed.set()
        self._thread.join()
        try:
            self.check()
            self._checkpoint.remove(FILE)
        except EventError:  # it is another job's by now, or the store is away
            return
