"""Polars: runs a query in one of several formulations over events in memory, with the streaming engine.

bucket   The later events of a match are put into two buckets each, their own and the one before, so that
         everything within the window of the first shares its bucket: the range join becomes an equality join
         with few candidates.
bound    For a negation: sort by key and time, then running maxima give for each c the latest start of an
         inner match that ended before it; b must be later. At the edge of a query, they give the latest d
         before each a, or the next d after each c, which must lie outside the window. The rest as bucket.
anti     For a negation: the bucketed join, then a join with the events inside each match and an anti-join.
natural  The join as one would write it first: on the id, or as a range join (`join_where`) without one.

Queries with groups and KEEP are in `polars_groups.py`, in one formulation each.

Rows may come in any order; loading the events is not timed.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise

from benchmarks.peers import common

TASK = common.task(__doc__)
os.environ["POLARS_MAX_THREADS"] = str(TASK.threads)  # before Polars is imported

import polars as pl  # noqa: E402

from benchmarks.peers.polars_groups import GROUPS  # noqa: E402

WINDOW: int = TASK.window
KEYED = ("two", "flat", "six", "not-event", "not-seq", "not-seq-not", "not-and", "leading", "trailing", "and")
STEPS = {
    **dict.fromkeys((*KEYED, "unkeyed-3"), ("A", "B", "C")),
    "two": ("A", "B"),
    "six": ("A", "B", "C", "D", "E", "F"),
    "unkeyed-6": ("A", "B", "C", "D", "E", "F"),
    "unkeyed-6-never": ("A", "B", "C", "D", "E", "Never"),
}
POSITION = pl.col("id").cast(pl.Int64) * 2**40 + pl.col("ts")
"""Orders events by id, then by time; the events of an earlier id are before all of a later one."""


def named(frame: pl.LazyFrame, step: str) -> pl.LazyFrame:
    """The columns with the name of their step behind them."""
    return frame.rename(lambda column: f"{column}_{step}")


def of_type(events: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    """The events of one type."""
    return events.filter(pl.col("type") == kind)


def bucketed(
    events: pl.LazyFrame, kinds: tuple[str, ...], keyed: bool, bound: pl.LazyFrame | None
) -> pl.LazyFrame:
    """The sequence by equality joins on the bucket; `bound` are the events of the last step, marked."""
    bucket = pl.col("ts") // WINDOW
    if keyed:
        bucket += pl.col("id").cast(pl.Int64) * 2**20
    steps = "abcdef"[: len(kinds)]
    found: pl.LazyFrame | None = None
    for before, (step, kind) in zip(("", *steps), zip(steps, kinds, strict=True), strict=False):
        frame = bound if bound is not None and step == steps[-1] else of_type(events, kind)
        own = named(frame.with_columns(bucket=bucket), step).rename({f"bucket_{step}": "bucket"})
        if found is None:
            found = own
            continue
        both = pl.concat([own, own.with_columns(bucket=pl.col("bucket") - 1)])
        time = pl.col(f"ts_{step}")
        found = found.join(both, on="bucket").filter(
            time > pl.col(f"ts_{before}"), time <= pl.col("ts_a") + WINDOW
        )
    assert found is not None
    if bound is not None:
        last = pl.col(f"latest_{steps[-1]}")
        found = found.filter(last.is_null() | (pl.col("id_b").cast(pl.Int64) * 2**40 + pl.col("ts_b") > last))
        found = found.drop(f"latest_{steps[-1]}")
    return found.drop("bucket")


def marked(events: pl.LazyFrame, query: str) -> pl.LazyFrame:
    """The C events with the latest start of an inner match that ended before."""
    kinds = {"not-event": "CD", "not-seq": "CDE", "not-seq-not": "CDEF", "not-and": "CDE"}[query]
    rows = events.filter(pl.col("type").cast(pl.String).is_in(list(kinds))).with_columns(p=POSITION).sort("p")
    is_type = {kind: pl.col("type") == kind for kind in kinds}

    def last(kind: str) -> pl.Expr:
        return pl.when(is_type[kind]).then(pl.col("p")).forward_fill()

    if query == "not-event":
        latest = last("D")
    elif query == "not-and":
        latest = pl.when(last("D").is_not_null() & last("E").is_not_null()).then(
            pl.min_horizontal(last("D"), last("E"))
        )
    else:
        ends = is_type["E"]
        if query == "not-seq-not":
            ends = ends & (last("D") > last("F").fill_null(-1))
        latest = pl.when(ends).then(last("D")).cum_max().forward_fill()
    return rows.with_columns(latest=latest).filter(is_type["C"]).drop("p")


def edged(events: pl.LazyFrame, query: str) -> pl.LazyFrame:
    """The flat matches without a d before them, or after them, within the window."""
    kind = "A" if query == "leading" else "C"
    rows = events.filter(pl.col("type").cast(pl.String).is_in([kind, "D"])).with_columns(p=POSITION).sort("p")
    nearest: pl.Expr = pl.when(pl.col("type") == "D").then(pl.col("p"))
    nearest = nearest.forward_fill() if kind == "A" else nearest.backward_fill()
    near = rows.with_columns(near=nearest).filter(pl.col("type") == kind)
    matches = bucketed(events, ("A", "B", "C"), keyed=True, bound=None)
    step = kind.lower()
    found = matches.join(
        near.select("ts", "near"), left_on=f"ts_{step}", right_on="ts"
    )  # times tell events apart
    own = pl.col(f"id_{step}").cast(pl.Int64) * 2**40
    outside = (
        pl.col("near") < own + pl.col("ts_c") - WINDOW
        if kind == "A"
        else pl.col("near") > own + pl.col("ts_a") + WINDOW
    )
    return found.filter(pl.col("near").is_null() | outside).drop("near")


def conjunction(events: pl.LazyFrame, formulation: str) -> pl.LazyFrame:
    """One of each type within the window in any order, by buckets to both sides or by the id alone."""
    found = named(of_type(events, "A"), "a")
    own = pl.col("id_a").cast(pl.Int64) * 2**20 + pl.col("ts_a") // WINDOW
    found = found.with_columns(bucket=own)
    for step in "bc":
        rows = named(of_type(events, step.upper()), step)
        if formulation == "natural":
            found = found.join(rows, left_on="id_a", right_on=f"id_{step}", coalesce=False)
        else:
            bucket = pl.col(f"id_{step}").cast(pl.Int64) * 2**20 + pl.col(f"ts_{step}") // WINDOW
            beside = pl.concat([rows.with_columns(bucket=bucket + shift) for shift in (-1, 0, 1)])
            found = found.join(beside, on="bucket")
        times = [pl.col(f"ts_{taken}") for taken in "abc"[: "abc".index(step) + 1]]
        found = found.filter(pl.max_horizontal(times) - pl.min_horizontal(times) <= WINDOW)
    return found.drop("bucket")


def anti(events: pl.LazyFrame, query: str) -> pl.LazyFrame:
    """The flat matches without those that have an inner match, found by joining on the id."""
    matches = bucketed(events, ("A", "B", "C"), keyed=True, bound=None)
    spans = matches.select(id="id_b", after="ts_b", before="ts_c").unique()  # times tell events apart

    def inside(rows: pl.LazyFrame, kind: str, after: str, before: str) -> pl.LazyFrame:
        """Each row with each event of a type strictly between two times, as column `kind`."""
        inner = of_type(events, kind).select("id", pl.col("ts").alias(kind))
        return rows.join(inner, on="id").filter(pl.col(kind) > pl.col(after), pl.col(kind) < pl.col(before))

    found = inside(spans, "D", "after", "before")
    if query == "not-and":
        found = inside(found.select("id", "after", "before").unique(), "E", "after", "before")
    elif query != "not-event":
        found = inside(found, "E", "D", "before")
    if query == "not-seq-not":
        pairs = found.select("id", "D", "E").unique()
        found = found.join(inside(pairs, "F", "D", "E"), on=["D", "E"], how="anti")
    inner = found.select(ts_b="after", ts_c="before").unique()
    return matches.join(inner, on=["ts_b", "ts_c"], how="anti")


def natural(events: pl.LazyFrame, kinds: tuple[str, ...], keyed: bool) -> pl.LazyFrame:
    """The sequence by joins on the id, or by range joins."""
    steps = "abcdef"[: len(kinds)]
    found = named(of_type(events, kinds[0]), "a").with_columns(until=pl.col("ts_a") + WINDOW)
    for (before, step), kind in zip(pairwise(steps), kinds[1:], strict=True):
        own = named(of_type(events, kind), step)
        fits = (pl.col(f"ts_{step}") > pl.col(f"ts_{before}"), pl.col(f"ts_{step}") <= pl.col("until"))
        if keyed:
            found = found.join(own, left_on="id_a", right_on=f"id_{step}", coalesce=False).filter(*fits)
        else:
            found = found.join_where(own, *fits)
    return found.drop("until")


def formulated(events: pl.LazyFrame, query: str, formulation: str) -> pl.LazyFrame:
    """The query in a formulation."""
    if query in GROUPS:
        return GROUPS[query](events, WINDOW)
    kinds, keyed = STEPS[query], query in KEYED
    if query == "and":
        return conjunction(events, formulation)
    if query in ("leading", "trailing"):
        return edged(events, query)
    match formulation:
        case "bucket":
            return bucketed(events, kinds, keyed, None)
        case "bound":
            return bucketed(events, kinds, keyed, marked(events, query))
        case "anti":
            return anti(events, query)
        case "natural":
            return natural(events, kinds, keyed)
    sys.exit(f"there is no formulation {formulation!r}")


def main() -> None:
    """Load the events, then run the query."""
    kinds = pl.Enum([*"ABCDEFGHIJKLMNOPQRST", "Never"])
    events = pl.read_parquet(TASK.events).with_columns(pl.col("type").cast(pl.String).cast(kinds)).lazy()
    plan = formulated(events, TASK.query, TASK.formulation)
    common.answer(lambda: plan.collect(engine="streaming"), pl.DataFrame.to_arrow)


if __name__ == "__main__":
    main()
