"""The peers that a user could pick instead: which query each can say, in which words, and on how many events.

A query is compared on events with all combinations as its matches. A peer that gives one match for each start
is compared on events of which every type comes once for each id, where both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nestream.bench.engine import FIVE_COLUMNS, KEYED, KEYED_WINDOW, STEP
from nestream.bench.engine import PEERS as SAME_WORK
from nestream.bench.peers_tables import tables
from nestream.bench.spec import Benchmark, Data, Figures, Peer, Suite, Target

EVENTS = 5_000_000
QUERIES = {
    "two": "SEQ(A a, B b)",
    "flat": KEYED["flat"],
    "six": "SEQ(A a, B b, C c, D d, E e, F f)",
    "not-event": KEYED["not-event"],
    "leading": "SEQ(!D d, A a, B b, C c)",
    "trailing": "SEQ(A a, B b, C c, !D d)",
    "not-seq": KEYED["not-seq"],
    "and": "AND(A a, B b, C c)",
    "unkeyed-3": "SEQ(A a, B b, C c)",
}
ONCE_WINDOW = 160_000
"""Most of the 200,000 in which the events of an id lie, so that it matters."""
UNKEYED_WINDOW, UNKEYED_ONCE_WINDOW = 100 * STEP, 150

BOUND = ("not-event", "leading", "trailing", "not-seq")
FIRST = {"not-event": "exists", "leading": "exists", "trailing": "exists"}
"""How one would put a query in SQL first, where that is no join alone; for a nested one it takes too long."""
CANNOT = {
    ("Flink CEP", "leading"): "a pattern cannot begin with an absence",
    ("Flink CEP", "not-seq"): "`notFollowedBy` takes one event, not a sequence",
    ("Flink SQL", "leading"): "a pattern cannot begin with an absence",
    ("Flink SQL", "trailing"): "a pattern cannot end with an absence",
}
"""What a peer has no words for."""
SHARES = {"Polars": 1.0, "DuckDB": 1.0, "Spark SQL": 0.2, "Esper": 0.08, "Siddhi": 0.04, "Flink CEP": 0.02}
"""A slow peer gets fewer of the events, and nestream as many beside it."""
SMALL = {
    ("Spark SQL", "six"): 0.04,
    ("Siddhi", "and"): 0.02,
    ("Flink CEP", "and"): 0.01,
    ("Flink SQL", "and"): 0.008,
}
PARALLEL = ("parallelism 1", "parallelism 2")


def formulations(peer: str, query: str) -> tuple[str, ...]:
    """How a peer puts a query, or the settings that it runs with."""
    best = "bound" if query in BOUND else "bucket"
    match peer:
        case "DuckDB":
            first = () if query == "not-seq" else (FIRST.get(query, "natural"),)
            return (*(("staged",) if query == "six" else ()), best, *first)
        case "Polars":
            return (best,)
        case "Spark SQL":
            return (best,)
        case "Flink CEP" | "Flink SQL":
            return PARALLEL[:1] if query.startswith("unkeyed") else PARALLEL
    return ("one thread",)


def _data(peer: str, query: str) -> Data:
    share = SMALL.get((peer, query), SHARES.get(peer, 0.02))
    if peer != "Flink SQL":
        return Data("sase", share, FIVE_COLUMNS)
    alone = query.startswith("unkeyed")
    return Data(
        "once", share, {"ids": 1, "pause": UNKEYED_ONCE_WINDOW} if alone else {"ids": 1_000, "pause": 0}
    )


def _window(peer: str, query: str) -> int:
    if query.startswith("unkeyed"):
        return UNKEYED_ONCE_WINDOW if peer == "Flink SQL" else UNKEYED_WINDOW
    return ONCE_WINDOW if peer == "Flink SQL" else KEYED_WINDOW


PEERS = (*SHARES, "Flink SQL")


def _benchmarks() -> Iterator[Benchmark]:
    for query, pattern in QUERIES.items():
        for peer in PEERS:
            cannot = CANNOT.get((peer, query), "")
            yield Benchmark(
                f"{query}/{peer.lower().replace(' ', '-')}",
                pattern,
                "peers",
                _data(peer, query),
                pattern if query.startswith("unkeyed") else f"{pattern} WHERE [id]",
                _window(peer, query),
                query,
                peers=() if cannot else tuple(Peer(peer, how) for how in formulations(peer, query)),
                settings={"peer": peer, "cannot": cannot},
            )


def _least(query: str) -> Callable[[Figures], float | None]:
    """How many times as long the fastest peer takes."""

    def ratio(figures: Figures) -> float | None:
        known = [
            peer["ratio"]
            for name, result in figures.items()
            if name.startswith(f"{query}/")
            for peer in result["peers"]
            if "ratio" in peer
        ]
        return min(known) if known else None

    return ratio


def _targets() -> Iterator[Target]:
    for query, pattern in QUERIES.items():
        key = " without a key" if query.startswith("unkeyed") else ""
        title = f"`{pattern}`{key}: the fastest peer against nestream"
        yield Target(title, 1, "times", _least(query), at_least=True, why=SAME_WORK)


TEXT = """\
Nine queries, put to the programs that a user could pick instead, each as its documentation advises. A match
is every combination of events that fits, so Flink CEP takes `followedByAny`, Esper and Siddhi `every` at each
step. Where the patterns of a peer have no words but its queries do, these are taken and their lines counted:
in Esper a subquery for a leading negation and a join for a conjunction, in Siddhi outer joins for negations.
`MATCH_RECOGNIZE` gives one match for each start; Flink SQL is therefore compared on events where that is all
of them."""

PEERS_SUITE = Suite(
    "peers",
    "the programs that a user could pick instead",
    EVENTS,
    tuple(_benchmarks()),
    tuple(_targets()),
    tables,
    about="Each peer runs in turns with nestream on the same events in memory, the first turn left out of "
    "both. All find the same matches, by number and by a checksum of their times. nestream has one thread.",
    heading="Beside other programs",
    text=TEXT,
)
