"""Groups, aggregates and KEEP: beside a negation, attributes and other windows, and beside other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import peers_programs as programs
from benchmarks.engine import (
    EVENTS,
    FIVE_COLUMNS,
    GROWTH,
    IDS,
    KEYED_WINDOW,
    LINEAR,
    SASE,
    STEP,
    TYPES,
    best,
    in_threads,
    over_peers,
    quotient,
    slope,
)
from benchmarks.parts import Columns, Part, below, points, rows, speed, table, time
from benchmarks.rivals import PEERS, SHARES, times
from benchmarks.spec import Benchmark, Data, Peer, Result, Results, Suite, Target

ATTRIBUTES = "RETURN a.ts AS t, a.type AS y, a.id AS i, a.attr1 AS u, a.attr2 AS v"
AGGREGATES = (
    "RETURN COUNT(b) AS n, SUM(b.attr2) AS s, AVG(b.attr2) AS a, MIN(b.attr2) AS l, MAX(b.attr2) AS h"
)
FEW, MANY = "SEQ(A a, B+ b, C c) WHERE [id]", "SEQ(A a, B+ b, C c) WHERE a.id < 50 AND c.id < 50"
MANY_WINDOW = 2_000 * TYPES * STEP
"""About 2,000 members without a key."""
FIVE_MINUTES = 300_000
EVERY_MINUTE = round(60_000 / (TYPES * IDS))
"""The step at which an id has an event of a type every minute: five in five minutes, ten now and then."""
FAILURES = Data("sase", parameters={**FIVE_COLUMNS, "step": EVERY_MINUTE})
ENDS = "RETURN a.ts AS ts_a, c.ts AS ts_c"
KEEPS = {"first": f"{ENDS} KEEP FIRST PER a", "last": f"{ENDS} KEEP LAST PER c"}
WIDER = 10**0.5
"""A window this many times as wide has ten times the matches of three steps."""
WIDE = 1.3
"""As many more matches are kept in it."""
QUESTIONS: dict[str, tuple[str, int, str, Data]] = {
    "group": ("SEQ(A a, B{3,} b, C c) WHERE [id]", 2 * KEYED_WINDOW, ENDS, SASE),
    "aggregates": (
        FEW,
        KEYED_WINDOW,
        f"{ENDS}, COUNT(b) AS ts_count, SUM(b.attr2) AS ts_sum, MIN(b.attr2) AS ts_least, "
        "MAX(b.attr2) AS ts_greatest, AVG(b.attr2) AS average",
        SASE,
    ),
    "tenth": ("SEQ(A{9,} f, A last) WHERE [id]", FIVE_MINUTES, "RETURN last.ts AS ts_last", FAILURES),
    "first-per": ("SEQ(A a, B b, C c) WHERE [id]", KEYED_WINDOW, KEEPS["first"], SASE),
    "last-per": ("SEQ(A a, B b, C c) WHERE [id]", KEYED_WINDOW, KEEPS["last"], SASE),
}
"""The questions that the peers answer too: pattern, window, what is returned, and the events."""
FORMULATIONS = {
    ("DuckDB", "group"): ("number", "natural"),
    ("DuckDB", "aggregates"): ("natural",),
    ("DuckDB", "tenth"): ("lag",),
    ("DuckDB", "first-per"): ("asof",),
    ("DuckDB", "last-per"): ("asof",),
}
SMALL = {("Flink SQL", "first-per"): 0.002}
"""The share of the events for a question that a peer takes long for."""
ASKED = tuple(peer for peer in PEERS if peer != "Spark SQL")
ONE = "it returns one match for each start, not every end"
FORWARD = "it follows a match from its start, so it cannot know the latest one"
MAXIMAL = "a repetition takes so many events as the next step allows; none has all the members for every end"
CANNOT = {
    ("Flink SQL", "group"): ONE,
    ("Flink SQL", "aggregates"): ONE,
    ("Flink CEP", "aggregates"): MAXIMAL,
    ("Siddhi", "aggregates"): MAXIMAL,
    ("Esper", "aggregates"): "`B until C` ends with the first C, and fails where that comes before a B",
    **{(peer, "last-per"): FORWARD for peer in ("Esper", "Siddhi", "Flink CEP", "Flink SQL")},
}
DIFFERENT = (
    "For `B{3,}` Esper, Siddhi and Flink CEP wait for three B and take every C after them. That finds the "
    "same pairs, but not the other members: none of them can show or sum up the whole group. `KEEP FIRST PER "
    "a` is what they do when no step says `every` or `followedByAny`, and what `MATCH_RECOGNIZE` does with "
    "`SKIP TO NEXT ROW`. For ten A in a row they return one match for each start, and nestream one for each "
    "end, which is the same number."
)

ONE_PASS = (
    "The fastest peers answer this question alone with one join or one window function over the columns, "
    "written for it by hand; nestream builds the stacks of all steps."
)

LOOK_UPS = (
    "An attribute is one look-up for each match. The members of a group are found by two searches, and an "
    "extreme of theirs by up to four look-ups."
)


def _ours() -> Iterator[Benchmark]:
    for name, pattern in (("negation", "SEQ(A a, !B b, C c)"), ("group", "SEQ(A a, B{3,} b, C c)")):
        yield _one(f"count/{name}", f"{pattern} WHERE [id]", KEYED_WINDOW, together="count", by="count")
    for size, query, window in (("few", FEW, KEYED_WINDOW), ("many", MANY, MANY_WINDOW)):
        for name, shown in (("attributes", ATTRIBUTES), ("aggregates", AGGREGATES)):
            how = {"threads": 1}
            yield _one(f"return/{size}/{name}", query, window, shown, together=f"return {size}", how=how)
    for keep, shown in KEEPS.items():
        for share in GROWTH:
            data = Data("sase", share, FIVE_COLUMNS)
            name, query = f"keep/{keep}/{share:g}", QUESTIONS["first-per"][0]
            yield _one(name, query, KEYED_WINDOW, shown, data, together=f"keep {share:g}")
        name, window = f"keep/{keep}/wide", round(KEYED_WINDOW * WIDER)
        yield _one(name, QUESTIONS["first-per"][0], window, shown, together="keep 1")
    query, window, shown, data = QUESTIONS["tenth"]
    yield _one("tenth", query, window, shown, data, together="tenth")


def _one(
    name: str, query: str, window: int, shown: str = "", data: Data = SASE, together: str = "", **task: Any
) -> Benchmark:
    return Benchmark(name, "together", data, query, window, shown=shown, together=together, task=task)


def formulations(peer: str, question: str) -> Iterator[Peer]:
    """How a peer formulates a question, and its threads."""
    if peer == "Polars":
        yield from (Peer(peer, "", threads) for threads in (2, 1))
    elif peer == "DuckDB":
        found = FORMULATIONS[peer, question]
        yield from (*(Peer(peer, one) for one in found), Peer(peer, found[0], 1))
    else:
        yield from (Peer(peer, "", threads) for threads in ((1, 2) if peer.startswith("Flink") else (1,)))


def _beside() -> Iterator[Benchmark]:
    for question, (query, window, shown, data) in QUESTIONS.items():
        for peer in ASKED:
            cannot = CANNOT.get((peer, question), "")
            one = Benchmark(
                f"beside/{question}/{peer.lower().replace(' ', '-')}",
                "beside",
                Data("sase", SMALL.get((peer, question), SHARES.get(peer, 0.02)), data.parameters),
                query,
                window,
                shown=shown,
                shape=question,
                peers=() if cannot else tuple(formulations(peer, question)),
                told={"peer": peer, "cannot": cannot, "question": question},
            )
            told = {
                **one.told,
                "lines": programs.our_lines(one.text),
                "version": programs.version(peer),
            }
            yield Benchmark(**{**vars(one), "told": told})


def _targets() -> Iterator[Target]:
    counts = quotient("count/group|best", "count/negation|best")
    yield Target("`count` of `SEQ(A a, B{3,} b, C c)` against `SEQ(A a, !B b, C c)`", 1.3, "times", counts)
    for size, words in (("few", "few members"), ("many", "2,000 members")):
        ratio = quotient(f"return/{size}/aggregates|best", f"return/{size}/attributes|best")
        title = f"five aggregates against five attributes, {words}"
        yield Target(title, 2, "times", ratio, why=LOOK_UPS)
    for keep, per in (("first", "a"), ("last", "c")):

        def exponent(results: Results, keep: str = keep) -> float:
            return slope(points([results[f"keep/{keep}/{share:g}"] for share in GROWTH], "events"))

        title = f"`KEEP {keep.upper()} PER {per}`"
        yield Target(f"{title}: growth with the events", LINEAR, "exponent", exponent)
        wider = quotient(f"keep/{keep}/wide|best", f"keep/{keep}/1|best")
        yield Target(f"{title}: time with ten times as many matches in all", WIDE, "times", wider)
    rate = quotient("tenth|events", "tenth|best", 1e-6)
    title = "ten failures within five minutes"
    yield Target(title, 10, "million events a second", rate, at_least=True)
    for question, (query, *_) in QUESTIONS.items():
        for threads in (1, 2):

            def over(results: Results, question: str = question, threads: int = threads) -> float | None:
                return over_peers(below(results, f"beside/{question}"), threads)

            title = f"`{query}`, {question}, against the fastest peer, {in_threads(threads)}"
            yield Target(title, 1.0, "times", over, why=ONE_PASS)


def _parts(results: Results) -> list[Part]:
    own = [result for name, result in results.items() if not name.startswith("beside/")]
    columns: Columns = {
        "query": "`{query}`",
        "events": "{events:,}",
        "matches": "{matches:,}",
        "time": time,
        "million events/s": speed,
    }
    return [*table("Groups and KEEP", columns, own), *_peers(below(results, "beside"))]


def _peers(results: list[Result]) -> list[Part]:
    if not results:
        return []
    lines: dict[str, dict[str, str]] = {}
    tried: list[dict[str, Any]] = []
    for result in results:
        found = best(result, result["peer"])
        cell = "cannot express it" if result["cannot"] else f"{times(found['ratio'])} ×" if found else "-"
        lines.setdefault(f"`{result['query']}`", {})[result["peer"]] = cell
        tried += [
            {**result, **peer, "own": result["lines"], "lines": peer.get("lines", "-")}
            for peer in result["peers"]
        ]
    names = list(dict.fromkeys(result["peer"] for result in results))
    cells = [[query, *(peers.get(name, "-") for name in names)] for query, peers in lines.items()]
    foot = (
        "The time of the peer in its best formulation, as a multiple of nestream's on the same events; above "
        "1 it is slower. With a slow peer, both run on fewer events."
    )
    details: Columns = {
        "question": "{question}",
        "peer": "{name}",
        "formulation": "{formulation}",
        "threads": "{threads}",
        "events": "{events:,}",
        "matches": lambda one: f"{one['matches']:,}" if "matches" in one else "-",
        "time": time,
        "× nestream": lambda one: times(one["ratio"]) if "ratio" in one else "-",
        "lines": "{lines}",
        "nestream": "{own}",
    }
    reasons: Columns = {"question": "{question}", "peer": "{peer}", "why": "{cannot}"}
    return [
        Part("Groups beside the peers", (rows(("query", *names), cells), foot, DIFFERENT)),
        *table("Every peer and question about groups", details, tried),
        *table("What a peer cannot ask of groups", reasons, [one for one in results if one["cannot"]]),
    ]


GROUPS = Suite(
    "groups",
    "Groups, aggregates and KEEP",
    "Repetition, aggregates of its members, and the choice among matches, beside other programs.",
    EVENTS,
    500_000,
    (*_ours(), *_beside()),
    tuple(_targets()),
    _parts,
    text="""
A group has all events between its neighbours as members. Counting them takes two searches for each event,
so a group should cost as much as a negation, and an aggregate as much as an attribute, for any number of
members. `KEEP` on the first or last event builds only the matches that it keeps.""",
    conditions="What is compared takes turns in one process, or each peer with nestream on the same events. "
    "All find the same matches, by number and by a checksum of their times and whole numbers.",
    repeats=5,
    limit=40,
)
