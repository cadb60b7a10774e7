"""Spark SQL: runs `spark/QUERY.FORMULATION.sql` over events cached in memory, `local[threads]`.

The rows of the result are dropped by Spark's sink for measurements; matches and checksum are taken once more
from the same query, which is not timed. Loading the events is not timed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.peers import common


def sums(result: Any) -> tuple[int, int]:
    """The matches, and the sum of their times: the first event's once, the second's twice, and so on."""
    times = [name for name in result.columns if name.endswith("_ts")]
    total = " + ".join(f"{place} * {name}" for place, name in enumerate(times, 1))
    row = result.selectExpr("count(*)", f"sum({total})").first()
    return int(row[0]), int(row[1] or 0)


def main() -> None:
    """Load the events, then run the query."""
    task = common.task(__doc__)
    builder = SparkSession.builder.master(f"local[{task.threads}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "8")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    events = session.read.parquet(str(task.events)).cache()
    events.count()
    events.createOrReplaceTempView("events")
    folder = Path(__file__).parent / "spark"
    text = (folder / f"{task.query}.{task.formulation}.sql").read_text(encoding="utf-8")
    result = session.sql(text.format(window=task.window))
    matches, checksum = sums(result)
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        result.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begin
        print(json.dumps({"seconds": seconds, "matches": matches, "checksum": checksum}), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
