"""Webhooks: sends new matches to addresses in job.json, each at least once and in order.

The sink of the job is the queue: a sender reads the next matches only once the previous ones are delivered,
and keeps its position in a file beside the job. So it holds one batch, however long a receiver is away and
however often the console is started, and nothing is lost. Matches from before a webhook was configured are
not sent.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nestream.console.follow import Follower, match_row
from nestream.console.hub import dumps
from nestream.console.live import bounded, identity
from nestream.job.checkpoint import replace_file
from nestream.job.description import Webhook
from nestream.source import as_beginning, open_source

FOLDER = "webhooks"
MOST_IN_REQUEST = 100
TIMEOUT = 10.0
LOOK = 1.0
"""The seconds between two looks at the sink."""
FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""The seconds before the first retry; each waits twice as long as the previous one, up to the latter."""

About = Callable[[str], tuple[str, str] | None]
"""Maps the name of a rule to its title and severity; None if its matches are not listed."""


class Sender:
    """Sends the matches of a sink to one address, in its own thread."""

    def __init__(
        self, hook: Webhook, job: str, place: str, only: Callable[[], str | None], about: About, kept: Path
    ) -> None:
        self._hook, self._job, self._only, self._about = hook, job, only, about
        self._place = place if "://" in place else str(Path(place).absolute())
        name = hashlib.sha256(f"{hook.address} {hook.severities}".encode()).hexdigest()[:16]
        self._path = kept / FOLDER / f"{name}.json"
        parts = urlsplit(hook.address)
        self.where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
        """The address without its path, which often contains a secret."""
        self.sent = 0
        self.waiting = 0
        """How many of the matches read are waiting to be sent."""
        self.failures = 0
        """How many times in a row the receiver was not reached."""
        self.error: str | None = None
        self.since: float | None = None
        self._position: dict[str, Any] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nestream webhook", daemon=True)

    def start(self) -> None:
        """Start sending, unless it has started."""
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Stop; what is not delivered is sent at the next start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(TIMEOUT + 1)

    def json(self) -> dict[str, Any]:
        """The state, for the browser."""
        return {
            "where": self.where,
            "severities": list(self._hook.severities),
            "sent": self.sent,
            "waiting": self.waiting,
            "failures": self.failures,
            "error": self.error,
            "since": self.since,
        }

    # -- the sink as a queue -------------------------------------------------------------------------------

    def _run(self) -> None:
        sink: Follower | None = None
        while not self._stop.is_set():
            try:
                if sink is None:
                    sink = self._opened()
                elif not self._step(sink):
                    self._stop.wait(LOOK)
            except Exception as problem:  # whatever it is, the matches wait, and Health shows it
                self._failed(problem)
                if sink is not None:
                    sink.close()
                sink = None  # what was read and not delivered is read again, from the saved position
                self._stop.wait(FIRST_RETRY)
        if sink is not None:
            sink.close()

    def _opened(self) -> Follower:
        """The sink from the saved position on; at the first start, from now on."""
        kept = json.loads(self._path.read_bytes()) if self._path.exists() else None
        if kept is not None and kept["matches"] == self._place:
            self._position, self.sent = kept["position"], kept["sent"]
        else:
            self._position = self._end()
            self._save()
        self._recovered()
        return Follower(self._place, "match_end", None, position=self._position, forgiving=True)

    def _end(self) -> dict[str, Any] | None:
        """The position after the existing matches; None if there are none yet."""
        if "://" not in self._place and not Path(self._place).exists():
            return None
        source = open_source(self._place, "match_end", None, moments=(), once=True, forgiving=True)
        try:
            while not source.ended:
                if self._stop.is_set():
                    raise InterruptedError("the console was stopped before it had read the sink")
                source.read(0.2)
            return as_beginning(source.position())
        finally:
            source.close()

    def _step(self, sink: Follower) -> bool:
        """Read what is new and send it; return whether there was anything."""
        rows = sink.new()
        if sink.failed is not None and not rows:
            self._failed(sink.failed)
            return False
        if not rows:
            if self.failures:
                self._recovered()
            return False
        waiting = rows
        while waiting:
            some, waiting = waiting[:MOST_IN_REQUEST], waiting[MOST_IN_REQUEST:]
            matches = [one for row in some if (one := self._match(row)) is not None]
            self.waiting = len(matches) + len(waiting)
            if matches and not self._deliver(matches):
                return False
            self.sent += len(matches)
        self._position, self.waiting = sink.position(), 0
        self._save()
        return True

    def _save(self) -> None:
        told = {"matches": self._place, "position": self._position, "sent": self.sent}
        self._path.parent.mkdir(exist_ok=True)
        replace_file(self._path, json.dumps(told).encode() + b"\n", durable=False)

    def _match(self, given: dict[str, Any]) -> dict[str, Any] | None:
        """A match as it is sent; None if it has another severity."""
        row = match_row(given, self._only())
        name = str(row.get("query", ""))
        about = self._about(name)
        if about is None or about[1] not in self._hook.severities:
            return None
        events = row.get("events")
        parts = [part for part in (events if isinstance(events, list) else []) if isinstance(part, dict)]
        return {
            "id": identity(row),
            "rule": name,
            "title": about[0],
            "severity": about[1],
            "match_start": row.get("match_start"),
            "match_end": row.get("match_end"),
            "version": row.get("version"),
            "events": [{**part, "event": bounded(part.get("event") or {})} for part in parts[:50]],
            "values": bounded(row["values"]) if isinstance(row.get("values"), dict) else {},
        }

    # -- requests ------------------------------------------------------------------------------------------

    def _deliver(self, matches: list[dict[str, Any]]) -> bool:
        """Send until it is received; False if the console is stopped before."""
        body = dumps({"job": self._job, "matches": matches}).encode()
        wait = FIRST_RETRY
        while not self._stop.is_set():
            problem = self._post(body)
            if problem is None:
                self._recovered()
                return True
            self._failed(problem)
            self._stop.wait(wait)
            wait = min(2 * wait, LAST_RETRY)
        return False

    def _post(self, body: bytes) -> Exception | None:
        headers = {"content-type": "application/json", "user-agent": "nestream"}
        request = urllib.request.Request(self._hook.address, body, headers, method="POST")
        try:
            with _OPENER.open(request, timeout=TIMEOUT) as answer:
                answer.read(1 << 16)
        except (OSError, ValueError, http.client.HTTPException) as problem:
            return problem
        return None

    def _failed(self, problem: Exception) -> None:
        if self.since is None:
            self.since = time.time() * 1000
        self.failures += 1
        if isinstance(problem, urllib.error.HTTPError):
            said = f"it answered {problem.code}"
        else:
            said = str(getattr(problem, "reason", problem) or type(problem).__name__)
        self.error = said.replace(self._hook.address, self.where)[:300]

    def _recovered(self) -> None:
        self.failures, self.error, self.since = 0, None, None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would become a GET without the matches, so it counts as a failure."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)
