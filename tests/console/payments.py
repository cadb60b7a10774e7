"""A payments job on the embedded runtime for the tests of the pages: its events, its rules, its console.

The stream is the command `nestream stream --local --job` in a process of its own; events are appended to the
file that it follows.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.console.pipeline import COMMAND, wait
from tests.console.served import Console, serving

RULES = {
    "large-without-login": """// title: Large payment without a login
// severity: high
PATTERN SEQ(!(Login l, l.user = p.user), Payment p, p.amount > 900)
WITHIN 1 minute
""",
    "refund-after-payment": """// title: Refund soon after a payment
// severity: low
PATTERN SEQ(Payment p, Refund r, p.user = r.user, r.amount >= 500)
WITHIN 2 minutes
""",
}
LARGEST = 5000.0


class Payments:
    """A job whose events are written on request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job = folder / "job"
        self.events = folder / "events.jsonl"
        self.chance = random.Random(7)
        self.now = datetime.now(UTC) - timedelta(minutes=12)
        (folder / "rules").mkdir(parents=True)
        for name, text in RULES.items():
            (folder / "rules" / f"{name}.neel").write_text(text)
        self.events.touch()
        self.stream: subprocess.Popen[bytes] | None = None

    def go_on(self, events: int = 300) -> None:
        """Some more events."""
        for _ in range(events):
            kind = self.chance.choices(["Login", "Payment", "Refund"], [3, 6, 1])[0]
            attributes: dict[str, Any] = {
                "user": f"u{self.chance.randrange(12)}",
                "city": self.chance.choice(["Utrecht", "Gent", "New York"]),
            }
            if kind != "Login":
                attributes["amount"] = round(self.chance.expovariate(1 / 300), 2)
                attributes["currency"] = self.chance.choice(["EUR", "USD"])
            self.write(kind, **attributes)

    def write(self, kind: str, **attributes: Any) -> None:
        """One more event, about a second later."""
        self.now += timedelta(seconds=self.chance.uniform(0.1, 2))
        row = {"ts": self.now.isoformat(), "type": kind, **attributes}
        with self.events.open("a") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def large(self, user: str, **attributes: Any) -> None:
        """A payment that breaks the first rule, and an event after it, so that it is decided."""
        self.write("Payment", user=user, amount=LARGEST, currency="EUR", **attributes)
        self.write("Payment", user="nobody", amount=1.0, currency="EUR", city="Gent")

    def progress(self) -> dict[str, Any]:
        """What the job says of itself."""
        try:
            found: dict[str, Any] = json.loads((self.job / "progress.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def start(self) -> None:
        """Start the stream."""
        places = ["--from", str(self.events), "--job", str(self.job), "--metrics", "0"]
        command = ["stream", str(self.folder / "rules"), "--local", *places]
        with (self.folder / "stream.log").open("ab") as log:
            program = [sys.executable, "-c", COMMAND, *command]
            self.stream = subprocess.Popen(program, stdout=log, stderr=log)

    def stop(self, sign: int = signal.SIGTERM) -> None:
        """Stop the stream, or kill it."""
        if self.stream is not None:
            self.stream.send_signal(sign)
            self.stream.wait(60)

    def committed(self) -> int:
        """How many matches the job says it has written."""
        return int(self.progress().get("matches", 0))


@contextmanager
def running_payments(folder: Path) -> Iterator[tuple[Payments, Console]]:
    """A payments job with its stream and its console; the first matches are found."""
    payments = Payments(folder)
    payments.go_on()
    payments.start()
    try:
        wait(lambda: payments.committed() > 0, 120)
        about = json.loads((payments.job / "job.json").read_text())
        more = {"title": "Payments", "entity": "user", "facets": ["user", "city", "currency"]}
        (payments.job / "job.json").write_text(json.dumps({**about, **more}))
        with serving(payments.job) as console:
            yield payments, console
    finally:
        payments.stop()
