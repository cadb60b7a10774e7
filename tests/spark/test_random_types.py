"""Random columns of Spark's types: batch and stream find the matches of this process, or refuse them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import nestream
from tests.spark.same import rows
from tests.spark.stream.streams import Folder

SEED = 71
CASES = 4
MANY = 40
ROWS = 40
VALUES = {
    "tinyint": ["-128", "0", "127"],
    "smallint": ["-1", "32767"],
    "int": ["0", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
    "float": ["1.5", "'NaN'", "'-0.0'", "0.0"],
    "double": ["0.1", "'NaN'", "'Infinity'", "-0.0"],
    "decimal(10,2)": ["1.10", "1.1", "-0.01"],
    "decimal(38,0)": ["9007199254740992", "9007199254740993"],
    "string": ["''", "'a'", "'A'", "'ä'", "'a '"],
    "string collate UTF8_LCASE": ["'a'", "'A'", "'b'"],
    "boolean": ["true", "false"],
    "date": ["'1969-12-31'", "'2026-03-29'", "'0001-01-01'"],
    "timestamp": ["'2026-03-29 01:30:00Z'", "'1900-01-01 00:00:00.000001Z'"],
    "timestamp_ntz": ["'2026-03-29 02:30:00'", "'0001-01-01'"],
    "interval day to second": ["'1 00:00:00'", "'-0 00:00:00.000001'"],
    "binary": ["'x'", "''"],
    "array<int>": ["array(1, NULL)", "array()"],
    "struct<p:int,q:string>": ["named_struct('p', 1, 'q', NULL)"],
    "map<string,int>": ["map('k', 1)"],
    "void": ["NULL"],
    "variant": ["parse_json('[1]')"],
    "varchar(3)": ["'x'"],
    "interval month": ["'1'"],
}
"""Types, and the values that are tried of them."""
NOT_READ = ("varchar(3)", "interval month")
TIMES = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")


@dataclass
class Case:
    """Events with two columns of random types, a query over them, and how it is run."""

    df: DataFrame
    text: str
    partition_by: str | None

    def __str__(self) -> str:
        return f"{self.text} by {self.partition_by} over {self.df.schema.simpleString()}"


def _null(name: str) -> list[str]:
    """NULL, where Spark's own toArrow can carry it: of a variant it cannot."""
    return [] if name == "variant" else ["NULL"]


def random_case(spark: SparkSession, number: int, time: str | None = None) -> Case:
    """The case of a number, the same in each run."""
    chance = Random(f"{SEED} {number}")
    time = time or chance.choice(TIMES)
    types = [chance.choice(list(VALUES)) for _ in "xy"]
    entries = []
    for row in range(ROWS):
        values = [f"cast({chance.choice([*VALUES[name], *_null(name)])} AS {name})" for name in types]
        moment = {
            "date": f"date_add(DATE'2026-03-20', {row})",
            "timestamp": f"timestamp_seconds({1_774_740_000 + 600 * row})",
            "timestamp_ntz": f"TIMESTAMP_NTZ'2026-03-29 00:00:00' + make_dt_interval(0, 0, {10 * row})",
        }.get(time, f"cast({row} AS {time})")
        entries.append(f"SELECT {moment} AS ts, '{chance.choice('ABC')}' AS type, {row} AS n, " + ", ".join(
            f"{value} AS {name}" for value, name in zip(values, "xy", strict=True)
        ))  # fmt: skip
    df = spark.sql(" UNION ALL ".join(entries)).orderBy(F.rand(number))
    left, right = chance.choice("xy"), chance.choice("xy")
    operator = chance.choice(["=", "=", "!=", "<", "<="])
    window = "2 hours" if time.startswith("timestamp") else "4 days" if time == "date" else "5"
    condition = chance.choice([f"a.{left} {operator} b.{right}", "a.n < b.n", f"b.{left} IS NOT NULL", "[x]"])
    negated = chance.choice(["", "!C c, "]) if condition != "[x]" else ""
    returned = chance.choice(["", f" RETURN a.{left} AS one, b.n AS two"])
    text = f"SEQ(A a, {negated}B b) WHERE {condition} WITHIN {window}{returned}"
    return Case(df, text, chance.choice([None, None, "time", "single"]))


def check(case: Case) -> bool:
    """Fail unless both ways to run a case give the same; whether it is not refused."""
    query = nestream.query(case.text)
    try:
        found = query.on_spark(case.df)
    except (nestream.EventError, nestream.QueryError):
        return False
    if case.partition_by is not None and "[x]" not in case.text:
        found = query.on_spark(case.df, partition_by=case.partition_by)
    unread = [name for name in "xy" if case.df.schema[name].dataType.simpleString() in NOT_READ]
    expected = query.match(case.df.drop(*unread).toArrow())
    assert rows(found.toArrow()) == rows(expected), str(case)
    assert query.count(case.df) == expected.num_rows
    return True


def test_random_types_have_the_matches_of_this_process_or_are_refused(spark: SparkSession) -> None:
    taken = [check(random_case(spark, number)) for number in range(CASES)]
    assert any(taken)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CASES, MANY))
def test_many_random_types_have_the_matches_of_this_process_or_are_refused(
    spark: SparkSession, number: int
) -> None:
    check(random_case(spark, number))


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_random_types_pass_through_a_stream(spark: SparkSession, tmp_path: Path, number: int) -> None:
    folder = Folder(spark, tmp_path)
    case = next(
        case
        for at in range(100 * number, 100 * number + 100)
        if (case := random_case(spark, at, "timestamp")).text.find("!C") < 0 and _is_taken(case)
    )
    (folder.path / "in").mkdir()
    case.df.coalesce(1).write.parquet(str(folder.path / "in" / "first"))
    later = (
        case.df.limit(1)
        .withColumn("ts", F.lit("2030-01-01").cast("timestamp"))
        .withColumn("type", F.lit("Z"))
    )
    later.coalesce(1).write.parquet(str(folder.path / "in" / "second"))
    reader = spark.readStream.schema(case.df.schema).option("recursiveFileLookup", "true")
    events = reader.parquet(str(folder.path / "in")).withWatermark("ts", "0 seconds")
    folder.run(nestream.query(case.text).match(events))
    expected = nestream.query(case.text).match(case.df)
    assert rows(folder.found()) == rows(expected.toArrow()), str(case)


def _is_taken(case: Case) -> bool:
    """Whether a query takes the columns of a case, and Parquet its types."""
    kept = {field.dataType.typeName() for field in case.df.schema.fields}
    try:
        found = nestream.query(case.text).match(case.df)
    except (nestream.EventError, nestream.QueryError):
        return False
    return not kept & {"void", "variant", "varchar", "interval"} and found.count() > 0
