"""Groups and KEEP in Polars: counts of the events before, and joins with the members or the nearest event."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl


def numbered(events: pl.LazyFrame) -> pl.LazyFrame:
    """The A, B and C events, each with the number of B events of its id up to it."""
    rows = events.filter(pl.col("type").cast(pl.String).is_in(["A", "B", "C"])).sort("id", "ts")
    return rows.with_columns(number=(pl.col("type") == "B").cast(pl.Int32).cum_sum().over("id"))


def pairs(rows: pl.LazyFrame, window: int, least: int) -> pl.LazyFrame:
    """Each A with each C within the window that has that many B events between; by buckets of a window."""
    bucket = pl.col("id").cast(pl.Int64) * 2**20 + pl.col("ts") // window
    own = {kind: rows.filter(pl.col("type") == kind).with_columns(bucket=bucket) for kind in "AC"}
    a = own["A"].select("bucket", "id", ts_a="ts", since="number")
    c = own["C"].select("bucket", ts_c="ts", until="number")
    both = pl.concat([c, c.with_columns(bucket=pl.col("bucket") - 1)])
    return a.join(both, on="bucket").filter(
        pl.col("ts_c") > pl.col("ts_a"),
        pl.col("ts_c") <= pl.col("ts_a") + window,
        pl.col("until") - pl.col("since") >= least,
    )


def group(events: pl.LazyFrame, window: int) -> pl.LazyFrame:
    """Pairs with three B events or more between them."""
    return pairs(numbered(events), window, 3).select("ts_a", "ts_c")


def aggregates(events: pl.LazyFrame, window: int) -> pl.LazyFrame:
    """Pairs with their members, joined by number, and summed up."""
    rows = numbered(events)
    found = pairs(rows, window, 1).with_columns(
        number=pl.int_ranges(pl.col("since") + 1, pl.col("until") + 1, dtype=pl.Int32)
    )
    members = rows.filter(pl.col("type") == "B").select("id", "number", "attr2")
    joined = found.explode("number").join(members, on=["id", "number"])
    value = pl.col("attr2").cast(pl.Int64)
    return joined.group_by("ts_a", "ts_c").agg(
        ts_count=pl.len().cast(pl.Int64),
        ts_sum=value.sum(),
        ts_least=value.min(),
        ts_greatest=value.max(),
        average=value.mean(),
    )


def tenth(events: pl.LazyFrame, window: int) -> pl.LazyFrame:
    """The A events whose ninth before them of the same id is within the window."""
    rows = events.filter(pl.col("type") == "A").sort("id", "ts").select("id", ts_last="ts")
    ninth = pl.col("ts_last").shift(9).over("id")
    return rows.filter(pl.col("ts_last") - ninth <= window).select("ts_last")


def times(events: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    """The times of the events of a type, in order."""
    step = f"ts_{kind.lower()}"
    return events.filter(pl.col("type") == kind).select("id", pl.col("ts").alias(step)).sort(step)


def first_per(events: pl.LazyFrame, window: int) -> pl.LazyFrame:
    """Each A with the first B after it and the first C after that."""
    found = times(events, "A")
    for left, right in (("A", "B"), ("B", "C")):
        found = found.sort(f"ts_{left.lower()}").join_asof(
            times(events, right),
            left_on=f"ts_{left.lower()}",
            right_on=f"ts_{right.lower()}",
            by="id",
            strategy="forward",
            allow_exact_matches=False,
            coalesce=False,
        )
        found = found.filter(pl.col(f"ts_{right.lower()}").is_not_null()).drop("id_right", strict=False)
    return found.filter(pl.col("ts_c") <= pl.col("ts_a") + window).select("ts_a", "ts_c")


def last_per(events: pl.LazyFrame, window: int) -> pl.LazyFrame:
    """Each C with the last B before it and the last A before that."""
    found = times(events, "C")
    for right, left in (("C", "B"), ("B", "A")):
        found = found.sort(f"ts_{right.lower()}").join_asof(
            times(events, left),
            left_on=f"ts_{right.lower()}",
            right_on=f"ts_{left.lower()}",
            by="id",
            strategy="backward",
            allow_exact_matches=False,
            coalesce=False,
        )
        found = found.filter(pl.col(f"ts_{left.lower()}").is_not_null()).drop("id_right", strict=False)
    return found.filter(pl.col("ts_c") <= pl.col("ts_a") + window).select("ts_a", "ts_c")


GROUPS: dict[str, Callable[[pl.LazyFrame, int], pl.LazyFrame]] = {
    "group": group,
    "aggregates": aggregates,
    "tenth": tenth,
    "first-per": first_per,
    "last-per": last_per,
}
