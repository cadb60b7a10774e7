"""One broker for all tests on Kafka, which are one group, so that it is started once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.maven import MavenError
from tests.kafka.broker import Broker

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("kafka"))


def made_broker(folder: Path) -> Broker:
    """A broker that is not started yet; the test is skipped where it cannot be."""
    if shutil.which("java") is None:
        pytest.skip("no Java was found, which a broker of Kafka needs: run scripts/setup --java")
    try:
        return Broker(folder)
    except MavenError as problem:
        pytest.skip(f"the jars of a broker of Kafka cannot be fetched: {problem}")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that stays."""
    made = made_broker(tmp_path_factory.mktemp("broker"))
    made.start()
    yield made
    made.kill()
