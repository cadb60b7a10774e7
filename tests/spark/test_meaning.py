"""A DataFrame has the matches that it has in process: collations, zones, missing and extreme times."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import nestream
from nestream.runtime.spark.shipping import why
from tests.spark.same import assert_same, frame, jobs, rows

PAIRS = "PATTERN SEQ(A a, B b) WITHIN 10"
KEYED = "PATTERN SEQ(A a, B b, a.key = b.key) WITHIN 10"


def collated(spark: SparkSession, collation: str) -> DataFrame:
    """Events whose strings Spark compares by the collation."""
    entries = [(1, "A", "x", 1), (2, "a", "x", 2), (3, "B", "X", 3), (4, "B", "x", 4), (5, "b", "X", 5)]
    df = spark.createDataFrame(entries, "ts long, type string, key string, n long")
    return df.selectExpr("ts", f"type COLLATE {collation} AS type", f"key COLLATE {collation} AS key", "n")


@pytest.mark.parametrize("collation", ["UTF8_LCASE", pytest.param("UNICODE_CI", marks=pytest.mark.slow)])
def test_strings_are_compared_by_code_point_whatever_their_collation(
    spark: SparkSession, collation: str
) -> None:
    df = collated(spark, collation)
    plain = df.toArrow()
    for text in (
        PAIRS,
        KEYED,
        "PATTERN SEQ(A a, B b, a.key = 'X' OR b.key = 'x') WITHIN 10",
        "PATTERN SEQ(A a, B b, b.key IN ('X')) WITHIN 10",
        "PATTERN SEQ(A a, !(b c, c.key = a.key), B b) WITHIN 10",
    ):
        query = nestream.query(text)
        found = query.match(df)
        assert rows(found.toArrow()) == rows(query.match(plain)), text
        assert query.count(df) == query.count(plain)
        assert found.schema["a"].dataType == df.schema  # shown as it came
    by_time = nestream.query(KEYED).on_spark(df, partition_by="key+time", slice_length=3, partitions=3)
    assert rows(by_time.toArrow()) == rows(nestream.query(KEYED).match(plain))


def test_dataframes_by_type_that_do_not_fit_together_are_refused(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, 1)], "ts long, key long")
    two = spark.createDataFrame([(2, [1])], "ts long, key array<long>")
    with pytest.raises(nestream.EventError, match="the DataFrames by type do not fit together"):
        nestream.query(PAIRS).match({"A": one, "B": two})


TYPES = {
    "char": "cast('x' AS char(4))",
    "varchar": "cast('x' AS varchar(4))",
    "void": "NULL",
    "variant": "parse_json('{\"a\": [1, 2]}')",
    "time": "TIME'10:00:00'",
    "interval": "make_interval(1, 2)",
    "interval month": "INTERVAL '1' MONTH",
    "interval day": "INTERVAL '1' DAY",
    "binary": "cast('x' AS binary)",
    "map": "map('a', 1)",
    "decimal": "cast(1.5 AS decimal(38, 10))",
    "byte": "cast(1 AS tinyint)",
    "float": "cast(1.5 AS float)",
    "void inside": "named_struct('a', NULL)",
}


def refusal(text: str, df: DataFrame, options: dict[str, Any]) -> str:
    """Why a query is refused for a DataFrame, nothing where it is not."""
    try:
        nestream.query(text).match(df, **options)
    except (nestream.EventError, nestream.QueryError) as refused:
        return str(refused)
    return ""


OFTEN = ("char", "void", "variant", "decimal", "void inside")
"""A type for each way in which one can differ; the others are slow tests."""


@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in TYPES]
)
def test_columns_of_every_type_are_matched_as_in_process_or_refused_in_every_role(
    spark: SparkSession, name: str
) -> None:
    settings = "spark.sql.preserveCharVarcharTypeInfo"
    spark.conf.set(settings, "true")
    try:
        df = spark.sql(
            f"SELECT id AS ts, CASE WHEN id % 2 = 0 THEN 'A' ELSE 'B' END AS type, {TYPES[name]} AS key, "
            f"id % 2 AS n FROM range(4)"
        )
        roles: list[tuple[str, dict[str, Any]]] = [
            (PAIRS, {}),
            (KEYED, {}),
            (f"{PAIRS} RETURN a.key AS key", {}),
            (f"{PAIRS} RETURN a.n AS n", {}),
            ("PATTERN SEQ(A a, B b) WITHIN 10", {"time": "key"}),
            ("PATTERN SEQ(A a, B b) WITHIN 10", {"type": "key"}),
        ]
        for text, options in roles:
            refused = refusal(text, df, options)
            if refused:
                assert "key" in refused
                continue
            found = nestream.query(text).match(df, **options)
            if name == "void" and options:  # a column without values: times or types that are missing
                with pytest.raises(PySparkException) as problem:
                    found.collect()
                assert why(str(problem.value)).startswith("an event has no ")
                continue
            plain = (df.drop("key") if "a.n" in text else df).toArrow()
            assert rows(found.toArrow()) == rows(nestream.query(text).match(plain, **options))
    finally:
        spark.conf.unset(settings)


def test_decimals_that_are_equal_as_floats_are_one_key(spark: SparkSession) -> None:
    values = [Decimal(2**53), Decimal(2**53 + 1)]
    key = pa.array(values, pa.decimal128(38, 0))
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "key": key})
    least = nestream.query(KEYED).match(table).num_rows
    assert_same(spark, KEYED, table, least=least, partitions=16)


# -- zones -------------------------------------------------------------------------------------------------


def zoned(spark: SparkSession) -> DataFrame:
    """An event each hour of the day on which New York turns its clocks, in UTC."""
    first = datetime(2026, 3, 8, tzinfo=UTC)
    moments = pa.array([first + timedelta(hours=n) for n in range(24)], pa.timestamp("us", "UTC"))
    return frame(spark, pa.table({"ts": moments, "type": ["A"] * 24, "n": range(24)}))


@pytest.mark.parametrize(
    "condition",
    [
        "ts >= TIMESTAMP '2026-03-08 01:00:00'",
        "ts >= TIMESTAMP '2026-03-08 02:30:00'",  # a time that the clocks skip
        "ts < TIMESTAMP '2026-03-08 05:00:00Z'",
        "ts BETWEEN TIMESTAMP '2026-03-07 20:00:00' AND TIMESTAMP '2026-03-08 04:00:00'",
        "ts IN (TIMESTAMP '2026-03-08 00:00:00', TIMESTAMP '2026-03-08 04:00:00')",
        "ts > DATE '2026-03-08'",
    ],
)
def test_times_written_without_zone_are_of_the_sessions_zone_as_in_spark_sql(
    spark: SparkSession, condition: str
) -> None:
    df = zoned(spark)
    expected = [row.n for row in df.filter(condition).orderBy("n").collect()]
    conditions = condition.replace("ts ", "a.ts ", 1)
    query = nestream.query(f"PATTERN SEQ(A a) WHERE {conditions} WITHIN 1 hours")
    assert sorted(row.a.n for row in query.match(df).collect()) == expected
    assert expected


def test_explain_says_which_zone_is_meant(spark: SparkSession) -> None:
    query = nestream.query("PATTERN SEQ(A a) WHERE a.ts > TIMESTAMP '2026-07-01 00:00:00' WITHIN 1 hours")
    said = query.explain(events=zoned(spark))
    assert "zone: America/New_York, the session's, for times without a zone" in said
    assert "2026-07-01 00:00:00-04:00" in said


# -- events without time or type ---------------------------------------------------------------------------


SPLITS: list[dict[str, Any]] = [
    {},
    {"partition_by": "key+time", "slice_length": 3},
    {"partition_by": "single"},
]


@pytest.mark.parametrize(
    ("missing", "options"),
    [
        ("ts", SPLITS[0]),
        ("type", SPLITS[1]),
        *(
            pytest.param(missing, options, marks=pytest.mark.slow)
            for missing, options in (("type", SPLITS[0]), ("ts", SPLITS[1]), ("ts", SPLITS[2]))
        ),
    ],
)
def test_an_event_without_time_or_type_is_an_error_as_in_process(
    spark: SparkSession, missing: str, options: dict[str, Any]
) -> None:
    entries = [{"ts": 1, "type": "A", "key": 1}, {"ts": 2, "type": "other", "key": 1} | {missing: None}]
    df = spark.createDataFrame(entries, "ts long, type string, key long")
    role = {"ts": "time", "type": "type"}[missing]
    with pytest.raises(nestream.EventError, match=f"has no {role}"):
        nestream.query(KEYED).match(df.toArrow())
    with pytest.raises(PySparkException) as problem:
        nestream.query(KEYED).on_spark(df, **options).collect()
    assert why(str(problem.value)).startswith(f"an event has no {role}: column `{missing}` is NULL\n  hint: ")
    left = nestream.query(KEYED).on_spark(df.filter(f"`{missing}` IS NOT NULL"), **options)
    assert left.count() == 0


# -- times at the ends of what there is --------------------------------------------------------------------

GREATEST = 2**63 - 1


@pytest.mark.parametrize(
    "first",
    [
        GREATEST - 5,
        -GREATEST - 1,
        pytest.param(-3, marks=pytest.mark.slow),
        pytest.param(GREATEST - 1000, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("tail", ["", pytest.param(", !C d", marks=pytest.mark.slow)])
def test_times_at_the_ends_of_64_bits_are_in_their_slices(spark: SparkSession, first: int, tail: str) -> None:
    text = f"PATTERN SEQ(A a, !C c, B b{tail}) WITHIN 4"
    table = pa.table({"ts": range(first, first + 6), "type": ["A", "B", "C", "A", "B", "B"]})
    assert_same(spark, text, table, partition_by="time", slice_length=3)
    assert_same(spark, text, table, partition_by="time")


@pytest.mark.parametrize(
    "times",
    [
        pa.array([126, 127, -128, -127], pa.int8()),
        pa.array([2**31 - 2, 2**31 - 1, -(2**31), 1 - 2**31], pa.int32()),
        pa.array([date(9999, 12, 30), date(9999, 12, 31), date(1, 1, 1), date(1, 1, 2)]),
        pa.array([datetime(9999, 12, 31, 23, n) for n in range(4)], pa.timestamp("us")),
        pa.array([datetime(1, 1, 1, 0, n) for n in range(4)], pa.timestamp("us")),
        pa.array([datetime(1, 1, 2, 0, n) for n in range(4)], pa.timestamp("us", "UTC")),
    ],
)
def test_times_of_other_widths_are_sliced_to_their_ends(spark: SparkSession, times: pa.Array) -> None:
    window = "5" if pa.types.is_integer(times.type) else "2 days"
    table = pa.table({"ts": times, "type": ["A", "B", "A", "B"]})
    assert_same(spark, f"PATTERN SEQ(A a, B b) WITHIN {window}", table, partition_by="time")


def test_a_slice_is_at_least_one_long(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="a time slice is at least 1 long"):
        nestream.query(KEYED).on_spark(
            collated(spark, "UTF8_BINARY"), partition_by="key+time", slice_length=0
        )


def test_why_shows_times_in_the_zone_that_explain_names(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT 'one' AS id, TIMESTAMP'2026-03-08 01:30:00' AS ts, 'A' AS type, "
        "INTERVAL '1' MONTH AS v, parse_json('1') AS w "
        "UNION ALL SELECT 'two', TIMESTAMP'2026-03-08 03:30:00', 'B', INTERVAL '2' MONTH, NULL"
    )
    query = nestream.query("SEQ(A a, B b) WHERE a.ts > TIMESTAMP '2026-03-08 01:45:00' WITHIN 1 hour")
    assert "zone: America/New_York" in query.explain(events=df.drop("v"))
    said = query.why(df, ["two", "one"], by="id").text()
    assert "2026-03-08 01:30:00-05:00" in said
    assert "03:30:00-04:00" in said  # an hour later: the clocks are put forward
    assert "a.ts > TIMESTAMP" in said  # in process as on Spark, 01:45 is that of New York
    stream = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    with pytest.raises(nestream.EventError, match="why cannot read a stream"):
        query.why(stream.selectExpr("ts", "'A' AS type"), ["one"], by="id")


# -- other methods -----------------------------------------------------------------------------------------


def test_matches_are_counted_on_spark(spark: SparkSession) -> None:
    df = collated(spark, "UTF8_BINARY")
    table = df.toArrow()
    for text in (PAIRS, f"{PAIRS} LIMIT 1", f"{PAIRS} RETURN a", f"{PAIRS} RETURN a.n + b.n AS sum"):
        assert nestream.query(text).count(df) == nestream.query(text).count(table) > 0, text
    several = nestream.queries({"pairs": PAIRS, "none": "PATTERN SEQ(Z a, Z b) WITHIN 1"})
    assert several.count(df) == several.count(table) == {"pairs": 2, "none": 0}


def test_methods_of_this_process_say_what_to_call_for_a_dataframe(spark: SparkSession) -> None:
    df = collated(spark, "UTF8_BINARY")
    query, several = nestream.query(PAIRS), nestream.queries([PAIRS])
    before = jobs(spark)
    calls: list[Any] = [
        lambda: list(query.batches(df)),
        lambda: query.explain(analyze=df),
        lambda: query.stream().push_batch(df),
        lambda: list(several.batches(df)),
        lambda: several.match_each(df),
        lambda: several.stream().push_batch(df),
        lambda: query.match({"A": df, "B": df.toArrow()}),
    ]
    for call in calls:
        with pytest.raises(nestream.EventError, match=r"`match\(df\)` and `count\(df\)`.*\n.*toArrow"):
            call()
    with pytest.raises(nestream.EventError, match=r"have no numbers\n.*by=\"id\""):
        query.why(df, [0, 1])
    with pytest.raises(TypeError, match="cannot read a Spark DataFrame: collect the events first"):
        query.show(df)
    for stream in (query.stream, several.stream):
        with pytest.raises(nestream.EventError, match=r"matched on Spark: call `match\(df\)`"):
            stream(df)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on Spark, pass the events as a DataFrame"):
        query.on_spark(pa.table({"ts": [1], "type": ["A"]}))
    assert jobs(spark) <= before + 1  # `toArrow` in the last call


# -- failures of workers -----------------------------------------------------------------------------------


def test_a_worker_without_nestream_says_what_to_set(spark: SparkSession) -> None:
    """The function needs nothing but Python until it has looked for nestream."""
    import pickle
    import sys

    from pyspark import cloudpickle

    from nestream.runtime.spark.shipping import shipped

    travelled = pickle.loads(cloudpickle.dumps(shipped(lambda batches: batches)))  # type: ignore[no-untyped-call]
    assert list(travelled(iter([1]))) == [1]
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "nestream"}
    path = list(sys.path)
    try:
        for name in kept:
            sys.modules[name] = None  # type: ignore[assignment]  # what Python does not find
        with pytest.raises(
            RuntimeError, match=r"(?s)workers cannot import nestream.*hint: set PYSPARK_PYTHON="
        ):
            list(travelled(iter([1])))
    finally:
        sys.modules.update(kept)
        sys.path[:] = path
