"""The generators: deterministic, ordered, as documented, with their violations planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nestream.data
from nestream.data import GENERATORS, generate
from tests.data import planted

NAMES = sorted(GENERATORS)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_events(name: str) -> None:
    assert generate(name, events=2_000, seed=5).equals(generate(name, events=2_000, seed=5))


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_other_events(name: str) -> None:
    assert not generate(name, events=500, seed=1).equals(generate(name, events=500, seed=2))


@pytest.mark.parametrize("events", [0, 1, 2, 17, 1_000])
@pytest.mark.parametrize("name", NAMES)
def test_there_are_as_many_events_as_asked_for_and_they_are_ordered_by_time(name: str, events: int) -> None:
    table = generate(name, events=events, seed=3)
    assert table.num_rows == events
    times = table["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_documented_columns_and_types_are_those_of_the_table(name: str) -> None:
    generator = GENERATORS[name]
    table = generate(name, events=20_000)
    documented = [column for column in generator.columns if ".." not in column]
    if name == "sase":
        documented += [f"attr{i}" for i in range(1, 6)]
    assert table.column_names == documented
    assert set(pc.unique(table["type"]).to_pylist()) == set(generator.types)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_has_exactly_the_attributes_of_its_type(name: str) -> None:
    for row in generate(name, events=3_000).to_pylist():
        present = {column for column, value in row.items() if value is not None} - {"ts", "type"}
        allowed = set(GENERATORS[name].types[row["type"]])
        assert present <= allowed
        assert present == allowed or row["type"] == "Washing"


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_does_not_depend_on_the_number_of_events(name: str) -> None:
    assert generate(name, events=0).schema == generate(name, events=100).schema


def test_an_unknown_data_set_is_an_error_that_guesses() -> None:
    with pytest.raises(ValueError, match="did you mean 'hospital'"):
        generate("hopsital")


def test_an_unknown_parameter_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"no parameter 'rates' \(did you mean 'rate'\?\); it takes events, seed"
    ):
        generate("stock", rates=3)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("stock", {"rate": 0}),
        ("stock", {"events": -1}),
        ("stock", {"seed": -1}),
        ("hospital", {"violations": 1.5}),
        ("retail", {"stolen": 0.6, "misplaced": 0.6}),
        ("sase", {"types": 0}),
        ("sase", {"clock": "sundial"}),
        ("sase", {"theta": -1}),
        ("coldchain", {"unsafe": -0.1}),
    ],
)
def test_a_parameter_out_of_range_is_an_error(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|needs"):
        generate(name, **parameters)


def test_prices_walk_in_small_steps_and_stay_positive() -> None:
    table = nestream.data.stock(20_000, seed=1)
    for ticker in nestream.data.stock(10_000).column("type").unique().to_pylist():
        prices = table.filter(pc.equal(table["type"], ticker))["price"].to_numpy()
        assert prices.min() >= 1.0
        assert np.abs(np.diff(prices)).max() < 0.051


def test_skewed_amounts_favour_the_small_ones() -> None:
    even = nestream.data.stock(10_000, amounts=50)["amount"].to_numpy()
    skewed = nestream.data.stock(10_000, amounts=50, amount_skew=1.0)["amount"].to_numpy()
    assert even.max() == skewed.max() == 500
    assert np.median(skewed) < np.median(even) / 2


def test_the_hospital_has_a_few_violations_of_every_rule_and_none_when_none_are_planted() -> None:
    rows = nestream.data.hospital(4_000, seed=2).to_pylist()
    clean = nestream.data.hospital(4_000, seed=2, violations=0.0).to_pylist()
    for count in (planted.contaminated_instruments, planted.unsanitized_entries, planted.unwashed_returns):
        assert 0 < count(rows) < 40
        assert count(clean) == 0


def test_the_store_has_a_few_thefts_and_misplaced_products_and_none_when_none_are_planted() -> None:
    rows = nestream.data.retail(4_000, seed=2).to_pylist()
    clean = nestream.data.retail(4_000, seed=2, stolen=0.0, misplaced=0.0).to_pylist()
    assert 0 < planted.shoplifted(rows) < 60
    assert planted.shoplifted(clean) == 0
    assert 0 < planted.misplaced(rows) < 60
    cut_off = rows[-1]["ts"]  # a product on its way at the end of the data may look misplaced
    settled = [r for r in clean if (cut_off - r["ts"]).total_seconds() > 3600 or r["type"] != "SHELF-READING"]
    assert planted.misplaced(settled) <= 2


def test_unsafe_shipments_are_warm_from_some_stop_on() -> None:
    rows = nestream.data.coldchain(4_000, seed=2).to_pylist()
    warm = 0
    for shipment in planted.grouped(rows, "id"):
        temperatures = [row["temperature"] for row in shipment]
        hot = [t >= 8.0 for t in temperatures]
        assert hot == sorted(hot)
        assert all(t < 5.0 or t >= 8.0 for t in temperatures)
        warm += any(hot)
    assert 10 < warm < 100


def test_sase_types_are_letters_and_follow_the_zipf_parameter() -> None:
    even = nestream.data.sase(100_000, attributes=0)
    counts = np.unique(even["type"].to_numpy(), return_counts=True)[1]
    assert len(counts) == 20
    assert counts.max() < 1.2 * counts.min()
    skewed = nestream.data.sase(100_000, attributes=0, theta=1.0)["type"].to_pylist()
    assert 1.8 < skewed.count("A") / skewed.count("B") < 2.2


def test_sase_columns_are_narrow_and_stay_in_their_domains() -> None:
    table = nestream.data.sase(50_000, domains=(10, 200, 40_000), attributes=3, id_domain=1_000)
    assert [str(field.type) for field in table.schema] == [
        "int64",
        "dictionary<values=string, indices=int8, ordered=0>",
        "int16",
        "int8",
        "int16",
        "int32",
    ]
    for column, domain in (("id", 1_000), ("attr1", 10), ("attr2", 200), ("attr3", 40_000)):
        low, high = pc.min_max(table[column]).as_py().values()
        assert low >= 0
        assert 0.9 * domain <= high < domain


def test_sase_times_rise_strictly_by_the_mean_step() -> None:
    steps = np.diff(nestream.data.sase(100_000, step=10)["ts"].to_numpy())
    assert steps.min() >= 1
    assert 9.9 < steps.mean() < 10.1
    assert pa.types.is_timestamp(nestream.data.sase(5, clock="timestamp").schema.field("ts").type)
