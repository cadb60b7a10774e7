"""Fuzzes the parser for a bounded time, guided by coverage: `python -m tests.fuzz.fuzz_parse 60` (seconds).

Any text must give a query or a QueryError, and a query must be read from its own print. Anything else ends
the fuzzer with its traceback and a nonzero exit code.
"""

from __future__ import annotations

import sys
import time

import atheris

with atheris.instrument_imports(include=["nestream.language", "nestream.model", "lark"]):
    from nestream.language.parser import parse
    from nestream.language.printer import print_query
    from nestream.model.diagnostics import QueryError

LONGEST_ANSWER = 5.0
SEEDS = (
    b"PATTERN SEQ(A a, !(B b, b.x = a.x), (C c : c.x + 1 > 3 AND NOT c.f), a.id = c.id) WITHIN 1 hour",
    b"EVENT SEQ(X x, !ANY(Y, Z) y) WHERE [id] AND x.a-b IN (1, 'b') WITHIN 100 EVENTS RETURN x.y AS z",
    b"EXISTS x : A a OR `B b` AND (C c), a.t > TIMESTAMP '2026-01-01' /* c */ BETWEEN 1e3 AND 10 minutes",
)


def check(data: bytes) -> None:
    """One text: its answer must come soon and be a query or a QueryError."""
    text = data.decode("utf-8", "surrogateescape")
    began = time.perf_counter()
    try:
        query = parse(text)
    except QueryError as error:
        str(error)
    else:
        if parse(print_query(query)) != query:
            raise AssertionError(f"the print of the query reads as another: {text!r}")
    if time.perf_counter() - began > LONGEST_ANSWER:
        raise AssertionError(f"the answer took too long: {text!r}")


def main() -> None:
    """Runs for as many seconds as the first argument says."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for seed in SEEDS:
        check(seed)
    arguments = [sys.argv[0], f"-max_total_time={seconds}", "-max_len=2000", "-print_final_stats=1"]
    atheris.Setup(arguments, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
