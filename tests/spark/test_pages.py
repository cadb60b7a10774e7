"""The guides to Spark: their examples give what the pages show."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from tests.cli.commands import ROOT
from tests.docs.pages import DOCS, run

ALONE = """
from nestream.runtime.spark.session import local_session
from tests.docs.pages import DOCS, run

page = DOCS / "guides/spark-streams.md"
ran = run(page, lambda: {"spark": local_session("local[2]", "guide", {"spark.sql.shuffle.partitions": "2"})})
assert ran.text == page.read_text(encoding="utf-8"), ran.text
"""
"""In a process of its own, so that Spark starts in the folder of the page and finds its files."""


def test_the_examples_of_the_guide_to_batches_give_what_it_shows(spark: SparkSession) -> None:
    page = DOCS / "guides/spark.md"
    assert run(page, lambda: {"spark": spark}).text == page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_of_the_guide_to_streams_give_what_it_shows() -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
