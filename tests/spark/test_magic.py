"""The notebook magic on a Spark DataFrame."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from IPython.core.interactiveshell import InteractiveShell
from pyspark.sql import SparkSession
from traitlets.config import Config

ROWS = [(1, "A", 1), (2, "B", 1), (3, "B", 2), (4, "B", 1)]


def test_a_cell_on_a_dataframe_assigns_one_and_shows_its_first_matches(
    spark: SparkSession, tmp_path: Path
) -> None:
    quiet = Config({"HistoryManager": {"enabled": False}})
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=quiet, ipython_dir=str(tmp_path))
    try:
        shell.run_line_magic("load_ext", "nestream")
        shell.push({"frame": spark.createDataFrame(ROWS, "ts long, type string, id long")})
        query = "SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 RETURN b.ts AS at"
        ran = shell.run_cell(f"%%neel frame -o found\n{query}")
        ran.raise_error()
        assert isinstance(ran.result, pd.DataFrame)
        assert sorted(ran.result["at"]) == [2, 4]
        assert sorted(row["at"] for row in shell.user_ns["found"].collect()) == [2, 4]
    finally:
        InteractiveShell.clear_instance()
