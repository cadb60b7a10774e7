"""The one Spark session that the tests share, in one process: they are a group of pytest-xdist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nestream.runtime.spark.session import local_session

HERE = Path(__file__).parent
SETTINGS = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "America/New_York",  # not the one of the data, nor of the machine
    "spark.driver.memory": "1g",
    "spark.sql.maxMetadataStringLength": "10000",  # plans are looked at in full
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on two cores of this machine."""
    session = local_session("local[2]", "nestream tests", SETTINGS)
    yield session
    session.stop()
