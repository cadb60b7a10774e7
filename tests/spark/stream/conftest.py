"""A folder for a stream, on the session that all Spark tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.stream.streams import Folder


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    """A folder of events with a checkpoint and a sink."""
    return Folder(spark, tmp_path)
