"""The guides to Spark: their examples give what the pages show."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.docs.pages import DOCS, run


def test_the_examples_of_the_guide_to_batches_give_what_it_shows(spark: SparkSession) -> None:
    page = DOCS / "guides/spark.md"
    assert run(page, {"spark": spark}).text == page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_of_the_guide_to_streams_give_what_it_shows(spark: SparkSession) -> None:
    page = DOCS / "guides/spark-streams.md"
    assert run(page, {"spark": spark}).text == page.read_text(encoding="utf-8")
