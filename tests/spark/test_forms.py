"""Queries of objects on Spark, and matches collected in the form that is asked for."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import nestream
from nestream import event, seq
from tests.spark.same import frame

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "id": [7, 8, 7]})
a, b = event("A"), event("B")
QUERY = seq(a, b).where(a.id == b.id).within(10).returning(id=a.id)
FOUND = [{"id": 7, "match_start": 1, "match_end": 3}]


def test_matches_of_a_dataframe_come_in_the_form_that_is_asked_for(spark: SparkSession) -> None:
    df = frame(spark, EVENTS)
    assert isinstance(QUERY.match(df), DataFrame)
    assert QUERY.match(df, to="pylist") == FOUND
    assert QUERY.match(df, to="arrow").to_pylist() == FOUND
    assert isinstance(QUERY.match(df, to="pandas"), pd.DataFrame)
    assert isinstance(nestream.query(QUERY).match(df, to="polars"), pl.DataFrame)


def test_matches_of_a_stream_are_not_collected(spark: SparkSession) -> None:
    stream = (
        spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS id")
    )
    with pytest.raises(TypeError, match="the matches of a stream cannot be collected"):
        seq(a, b).where(a.id == b.id).within("1 hour").match(
            stream.withWatermark("ts", "1 second"), to="pylist"
        )
