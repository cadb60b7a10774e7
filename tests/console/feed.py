"""Writes payments to a growing file at a steady rate: `python -m tests.console.feed FILE RATE SECONDS`.

At the end it prints how many events it has written. About one in two hundred completes a match of `RULES`.
"""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime

RULES = {
    "large-without-login": """// title: Large payment without a login
// severity: high
PATTERN SEQ(!(Login l, l.user = p.user), Payment p, p.amount > 990)
WITHIN 10 seconds
""",
    "refund-after-payment": """// title: Large refund soon after a payment
// severity: low
PATTERN SEQ(Payment p, Refund r, p.user = r.user, r.amount > 990)
WITHIN 10 seconds
""",
}
STEP = 0.05
USERS = 100_000


def feed(path: str, rate: float, seconds: float) -> int:
    """Write the events; a machine that falls behind writes more at a time."""
    chance = random.Random(7)
    kinds = ["Login"] * 3 + ["Payment"] * 6 + ["Refund"]
    begin, written = time.monotonic(), 0
    with open(path, "a", buffering=1 << 20) as file:
        while (passed := time.monotonic() - begin) < seconds:
            wanted = int(rate * min(passed + STEP, seconds))
            at = datetime.now(UTC).isoformat()
            for _ in range(wanted - written):
                kind, user = kinds[int(chance.random() * 10)], int(chance.random() * USERS)
                amount = (
                    f', "amount": {chance.random() * 1000:.2f}, "currency": "EUR"' if kind != "Login" else ""
                )
                file.write(f'{{"ts": "{at}", "type": "{kind}", "user": "u{user}"{amount}}}\n')
            written = wanted
            file.flush()
            time.sleep(max(0.0, begin + passed + STEP - time.monotonic()))
    return written


if __name__ == "__main__":
    print(feed(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])), flush=True)
