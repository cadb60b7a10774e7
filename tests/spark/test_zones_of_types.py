"""Timestamps in the zone of the session, also with a PySpark that knows UTC alone, as 4.1 does."""

from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from nestream.runtime.spark.columns import _in_zone, arrow_schema

AT = TimestampType()
INNER = StructType([StructField("at", AT), StructField("n", IntegerType(), False)])
TYPES = [
    AT,
    TimestampNTZType(),
    INNER,
    ArrayType(INNER),
    MapType(StringType(), AT),
    MapType(AT, ArrayType(AT, False), False),
    DecimalType(10, 2),
]


@pytest.mark.parametrize("datatype", TYPES, ids=lambda datatype: datatype.simpleString())
def test_a_type_in_utc_is_moved_to_the_zone_that_newer_versions_make_it_in(datatype: DataType) -> None:
    [wanted] = arrow_schema(StructType([StructField("x", datatype)]), "Asia/Tokyo").types
    assert _in_zone(to_arrow_type(datatype, timezone="UTC"), "Asia/Tokyo") == wanted
