"""The bundled samples are what the generators give, and hold a handful of every planted violation."""

from __future__ import annotations

import pytest

from nestream.data import GENERATORS, sample, sample_names, sample_path
from nestream.data.bundle import csv_text
from nestream.source import read_events
from tests.data import planted


@pytest.mark.parametrize("name", sample_names())
def test_a_sample_is_what_its_generator_gives(name: str) -> None:
    assert sample_path(name).read_bytes() == csv_text(name).encode()
    generator = GENERATORS[name]
    assert generator.sample is not None
    assert sample(name).equals(generator(**generator.sample))


@pytest.mark.parametrize("name", sample_names())
def test_a_sample_is_small_and_reads_without_a_malformed_row(name: str) -> None:
    reader = read_events(sample_path(name))
    assert 100 <= reader.read_all().num_rows <= 400
    assert reader.malformed == 0


@pytest.mark.parametrize("name", sample_names())
def test_reading_a_sample_as_a_file_gives_the_same_values(name: str) -> None:
    assert read_events(sample_path(name)).read_all().to_pylist() == sample(name).to_pylist()


def test_the_samples_are_hospital_retail_stock_and_coldchain() -> None:
    assert sorted(sample_names()) == ["coldchain", "hospital", "retail", "stock"]
    with pytest.raises(ValueError, match="no bundled sample"):
        sample("sase")


def test_the_samples_hold_a_handful_of_every_violation() -> None:
    hospital, retail = sample("hospital").to_pylist(), sample("retail").to_pylist()
    assert planted.contaminated_instruments(hospital) == 5
    assert planted.unsanitized_entries(hospital) == 3
    assert planted.unwashed_returns(hospital) == 2
    assert planted.shoplifted(retail) == 3
    assert planted.misplaced(retail) == 3
    arrivals = [r for r in sample("coldchain").to_pylist() if r["type"] == "DrugStore"]
    assert 1 <= sum(r["temperature"] >= 8 for r in arrivals) <= 8
