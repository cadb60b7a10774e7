"""Functions, decimals and columns of NULL on Spark mean the same, pushed to the scan or in the tasks."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import nestream
from nestream.model.functions import FUNCTIONS
from nestream.runtime.spark.columns import pushed_test
from tests.functions.kinds import alike, all_functions, calls, events, written
from tests.spark.same import assert_same, frame, rows

CARRIED = ("i", "f", "d", "e", "s", "b", "t", "z", "y")
PUSHED = [function.name for function in all_functions() if function.spark]
TEXTS = ["", "Über", " a b ", "100%", "a\nb", "ab", "😀x", "Ü", "b\\", "a_b", None]
PATTERNS = {"like": ["%", "a_b", "100\\%", "%b", "_", "a\\_b", "%\\\\", ""]}


def texts() -> pa.Table:
    """Strings with everything that a pattern can stumble over."""
    return pa.table({"ts": range(len(TEXTS)), "type": ["A"] * len(TEXTS), "s": TEXTS})


@pytest.mark.parametrize("name", PUSHED)
def test_a_pushed_function_drops_what_the_engine_would_drop(spark: SparkSession, name: str) -> None:
    function, table = FUNCTIONS[name], texts()
    parts = [text for text in TEXTS if text is not None]
    if function.infix:
        tests = [written(function, ["a.s", f"'{pattern}'"]) for pattern in PATTERNS[name]]
    elif len(function.parameters) == 1:
        tests = [f"{name}(a.s) {sign} {n}" for sign in ("=", "<", ">=") for n in (0, 1, 3)]
    else:
        tests = [f"{name}(a.s, '{part}')" for part in parts]
    schema = nestream.Schema.of(table.schema)
    columns = []
    for test in tests:
        (formula,) = nestream.query(f"(A a : {test})").typed(schema)[0].root.predicates
        column = pushed_test(formula, schema)
        assert column is not None, test
        columns.append(F.coalesce(column, F.lit(False)))
    found = frame(spark, table).select(*columns).toArrow()
    for test, passed in zip(tests, found.columns, strict=True):
        matches = nestream.query(f"(A a : {test})").match(table)
        assert pc.indices_nonzero(passed).to_pylist() == matches["match_end"].to_pylist(), test


def test_every_function_gives_in_the_tasks_what_it_gives_in_process(spark: SparkSession) -> None:
    table = events(7, 30, CARRIED)
    schema = nestream.Schema.of(table.schema)
    expressions = []
    for function in all_functions():
        for call in calls(function, 12):
            try:
                nestream.query(f"(A a) RETURN {call} AS v").typed(schema)
                expressions.append(call)
            except nestream.QueryError:
                continue
    returned = ", ".join(f"{call} AS v{place}" for place, call in enumerate(expressions))
    query = nestream.query(f"(A a) RETURN {returned}")
    local = query.match(table)
    found = query.match(frame(spark, table)).toArrow().sort_by("match_end")
    assert len(expressions) > 100
    for place, call in enumerate(expressions):
        wanted = local.column(place).cast(found.column(place).type)
        pairs = zip(found.column(place).to_pylist(), wanted.to_pylist(), strict=True)
        assert all(alike(one, other) for one, other in pairs), call


@pytest.mark.parametrize("partitions", [1, 5])
def test_decimal_keys_that_are_the_same_float_stay_apart_in_any_number_of_partitions(
    spark: SparkSession, partitions: int
) -> None:
    choices = random.Random(3)
    ids = [Decimal("0.1") + Decimal(choices.randrange(4)).scaleb(-18) for _ in range(60)]
    table = pa.table(
        {
            "ts": range(60),
            "type": ["A", "B"] * 30,
            "id": pa.array(ids, pa.decimal128(38, 18)),
        }
    )
    assert_same(spark, "SEQ(A a, B b) WHERE [id] WITHIN 9", table, least=10, partitions=partitions)
    assert_same(spark, "SEQ(A a, B b, a.id * 2 = b.id + a.id) WITHIN 9 RETURN a.id * b.id AS v", table)


@pytest.mark.parametrize("partitions", [1, 5])
def test_decimals_of_two_scales_are_one_key(spark: SparkSession, partitions: int) -> None:
    one = pa.table({"ts": range(9), "id": pa.array([Decimal(n % 3) for n in range(9)], pa.decimal128(10, 1))})
    other = pa.table(
        {"ts": range(9, 18), "id": pa.array([Decimal(n % 4) for n in range(9)], pa.decimal128(20, 6))}
    )
    query = nestream.query("SEQ(A a, B b) WHERE [id] WITHIN 12 RETURN a.ts AS a, b.ts AS b")
    wanted = query.match({"A": one, "B": other})
    found = query.on_spark(
        {"A": frame(spark, one), "B": frame(spark, other)}, partitions=partitions
    ).toArrow()
    assert wanted.num_rows
    assert rows(found) == rows(wanted)


def test_a_void_column_is_null_everywhere(spark: SparkSession) -> None:
    df = frame(spark, texts()).withColumn("x", F.lit(None))
    assert df.schema["x"].dataType.typeName() == "void"
    for text, wanted in (
        ("(A a : coalesce(a.x, a.s) = 'ab')", 1),
        ("(A a : a.x IS NULL AND NOT a.x = 1)", len(TEXTS)),
        ("(A a : a.x LIKE 'a%' OR a.x > 1)", 0),
        ("(A a) RETURN lower(a.x) AS s, coalesce(a.x, 1) AS n", len(TEXTS)),
    ):
        assert nestream.query(text).match(df).count() == wanted


def test_a_function_of_ones_own_travels_to_the_tasks(spark: SparkSession) -> None:
    offset = 3
    nestream.function("shifted", lambda x: pc.add(x, offset), returns="integer")
    text = "SEQ(A a, A b, shifted(a.ts) = b.ts) WITHIN 5 RETURN shifted(a.ts) AS v"
    table = texts()
    found = nestream.query(text).on_spark(frame(spark, table), partitions=2).toArrow()
    assert found.num_rows == len(TEXTS) - offset
    assert rows(found) == rows(nestream.query(text).match(table).cast(found.schema))
