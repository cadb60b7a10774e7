"""What type checkers know: the overloads of `match`, and the types of objects.

mypy reads this file with all others; what it says of libraries without types is read with stubs of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import pytest

import nestream
from nestream import Event, Expr, Pattern, all_of, any_of, event, fn, not_, param, seq, when

ROOT = Path(__file__).resolve().parents[2]
ROWS = [{"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 1}]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    def spark(df: DataFrame) -> None:
        query = nestream.query("A a")
        assert_type(query.match(df), DataFrame)
        assert_type(query.match({"A": df, "B": df}), DataFrame)
        assert_type(query.match(df, to="pylist"), list[dict[str, Any]])
        assert_type(query.match(df, time="at", partition_by="key"), DataFrame)
        assert_type(nestream.queries([query]).match(df), DataFrame)
        assert_type(event("A").match(df), DataFrame)


def test_objects_have_types() -> None:
    a, b = event("A"), event("B")
    assert_type(a, Event)
    assert_type(a.x, Expr)
    assert_type(a["x"], Expr)
    assert_type(a.order.id, Expr)
    assert_type(a.x == 1, Expr)
    assert_type((a.x > 1) & (b.x > 1) | ~(a.x < 1), Expr)
    assert_type(1 + a.x * 2, Expr)
    assert_type(a.x.is_in([1]), Expr)
    assert_type(fn.abs(a.x), Expr)
    assert_type(param("floor"), Expr)
    assert_type(when(a.x > 1).then(1).otherwise(2), Expr)
    assert_type(a.where(a.x == 1), Event)
    assert_type(a.next().within(10), Event)
    assert_type(a.one_or_more(), Pattern)
    assert_type(seq(a, "B b", a.x == 1).within("1 hour"), Pattern)
    assert_type(a & b, Pattern)
    assert_type(all_of(a, b), Pattern)
    assert_type(all_of(a.x == 1, b.x == 1), Expr)
    assert_type(any_of(a, "B b"), Pattern)
    assert_type(any_of(a.x == 1, b.x == 1), Expr)
    assert_type(not_(a), Pattern)
    assert_type(not_(a.x == 1), Expr)
    assert_type(a.query(), nestream.Query)
    assert_type(nestream.query(a), nestream.Query)
    assert_type(nestream.query("A a").match(ROWS, to="pylist"), list[dict[str, Any]])


STUBS = {
    "pyarrow": "class Table: ...\nclass Schema: ...\ndef __getattr__(name: str) -> object: ...\n",
    "pandas": "class DataFrame: ...\n",
    "polars": "class DataFrame: ...\n",
}
PROGRAM = """
import pandas as pd
import polars as pl
import pyarrow as pa

import nestream
from nestream import event

query = nestream.query("A a")
reveal_type(query.match(pa.Table()))
reveal_type(query.match([{"ts": 1}]))
reveal_type(query.match("events.parquet", time="at"))
reveal_type(query.match({"A": pd.DataFrame()}))
reveal_type(query.match(pd.DataFrame(), to="arrow"))
reveal_type(query.match(pa.Table(), to="pandas"))
reveal_type(query.match(pa.Table(), to="polars"))
reveal_type(query.match(pa.Table(), to="pylist"))
reveal_type(nestream.queries([query]).match(pa.Table()))
reveal_type(event("A").match(pa.Table(), to="pandas"))
query.match(pa.Table(), to="panda")
query.match(pa.Table(), tiem="at")
"""
REVEALED = [
    "pyarrow.Table",
    "pyarrow.Table",
    "pyarrow.Table",
    "pyarrow.Table",
    "pyarrow.Table",
    "pandas.DataFrame",
    "polars.DataFrame",
    "list[dict[str, Any]]",
    "pyarrow.Table",
    "pandas.DataFrame",
]


@pytest.mark.slow
def test_a_type_checker_knows_the_form_of_the_matches(tmp_path: Path) -> None:
    for package, stub in STUBS.items():
        (tmp_path / "stubs" / package).mkdir(parents=True)
        (tmp_path / "stubs" / package / "__init__.pyi").write_text(stub)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = silent\nignore_missing_imports = True\n")
    path = os.pathsep.join([str(tmp_path / "stubs"), str(ROOT / "src")])
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": path},
        capture_output=True,
        text=True,
    )
    lines = ran.stdout.splitlines()
    revealed = [line.split('"')[1].replace("builtins.", "") for line in lines if "Revealed type" in line]
    assert revealed == REVEALED, ran.stdout
    wrong = {int(line.split(":")[1]) for line in lines if ": error:" in line}
    assert wrong == {20, 21}, ran.stdout
