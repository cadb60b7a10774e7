"""Collects the rows of a Spark job in the driver; a job that lost its Python workers is run again."""

from __future__ import annotations

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from nestream.model.schema import EventError
from nestream.runtime.spark.shipping import why

LOST_WORKERS = (
    "Python worker failed to connect back",
    "Python worker exited unexpectedly",
    "org.apache.spark.api.python.PythonWorkerFactory",
)
"""What Spark reports when a worker did not start in ten seconds or died, or when their starter died.
"""
MOST_TRIES = 6
"""How often a job that loses its workers is run; every try begins from the same state."""


def collected(rows: DataFrame) -> pa.Table:
    """The rows of a DataFrame; raises an `EventError` that says why there are none."""
    for left in reversed(range(MOST_TRIES)):
        try:
            return rows.toArrow()
        except (PySparkException, Py4JError) as problem:
            if not left or not any(text in str(problem) for text in LOST_WORKERS):
                raise EventError(why(str(problem))) from None
    raise AssertionError("the last try returns or raises")
