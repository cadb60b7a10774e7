"""From text to groups: flat runs follow the Plan-Finder, and explain shows estimates beside measurements."""

from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nestream
from nestream.data import generate
from nestream.model.schema import Schema
from nestream.runtime.local import LocalRun
from nestream_papers.engine.program import BlockProgram
from nestream_papers.flat import flat_plan
from nestream_papers.optimize.cost import Objective
from nestream_papers.optimize.operators import Operator
from tests.papers.tools import in_blocks

MIXED = (
    "OR(SEQ(MSFT m1, !AND(IPIX x1, QQQ q1, RIMM r1), ORCL o1, INTC i1), "
    "SEQ(OR(RIMM r2, IPIX x2), DELL d2, AMAT a2, MSFT m2, ORCL o2), "
    "SEQ(CSCO c3, !SEQ(IPIX x3, RIMM r3), YHOO y3, QQQ q3)) WITHIN 10 s"
)
BY_ROWS = {"cost_in_time": False}
TRADES = generate("stock", events=1_500, seed=3, rate=10.0)


def test_the_mixed_workload_is_rewritten_and_grouped_as_in_the_paper() -> None:
    flat = flat_plan(nestream.query(MIXED).plan, objective=Objective.ROWS)
    assert [shape.name for shape in flat.shared.shapes] == ["E1", "E2", "E3", "E4", "E5", "E6", "E7"]
    groups = [(group.members, group.operator) for group in flat.shared.plan.groups]
    assert groups == [
        ((0, 1, 2), Operator.MARKING),
        ((3, 4), Operator.SUFFIX),
        ((5, 6), Operator.MARKING),
    ]


def test_the_program_of_a_flat_run_has_the_groups() -> None:
    query = nestream.query(MIXED)
    run = query.prepare(TRADES, strategy="flat", options=BY_ROWS)
    program = in_blocks(run.compiled().program)
    assert [(group.operator, len(group.members)) for group in program.groups] == [
        ("bit-marking", 3),
        ("suffix clustering", 2),
        ("bit-marking", 2),
    ]
    assert not program.distinct, "groups that marks tell apart give no match twice"


def test_a_flat_run_is_planned_by_time_and_by_rows_only_if_you_ask() -> None:
    """The paper's grouping builds fewer rows, and takes longer by the optimizer's own estimate."""
    query = nestream.query(MIXED)
    by_time, by_rows = (
        query.explain("json", strategy="flat", options=options, analyze=TRADES)["sharing"]
        for options in ({}, BY_ROWS)
    )
    assert by_rows["estimated"]["rows"] < by_time["estimated"]["rows"]
    assert by_time["estimated"]["nanoseconds"] < by_rows["estimated"]["nanoseconds"]
    assert by_time["estimated"]["nanoseconds"] <= by_time["estimated alone"]["nanoseconds"]


def test_explain_shows_the_groups_with_estimates() -> None:
    text = nestream.query(MIXED).explain(strategy="flat", options=BY_ROWS)
    assert "Sharing: 7 expressions in 3 groups" in text
    assert "  E4, E5: suffix clustering (DELL, AMAT, MSFT, ORCL)\n    estimated: " in text
    assert "measured" not in text
    assert "Sharing" not in nestream.query(MIXED).explain()


@pytest.mark.parametrize("strategy", ["auto", "nested", "flat"])
def test_what_is_measured_are_the_matches_of_the_query(strategy: str) -> None:
    query = nestream.query(MIXED)
    found = query.explain("json", strategy=strategy, analyze=TRADES)
    matches = query.count(TRADES)
    assert matches > 1_000
    assert sum(block["matches"] for block in found["measured"]["blocks"]) == matches
    if strategy == "flat":
        groups = found["sharing"]["groups"]
        assert sum(group["measured"]["matches"] for group in groups) == matches
        assert found["sharing"]["statistics"]["events"] == 1_500
        suffix = groups[1]
        assert suffix["estimated"]["matches"] == pytest.approx(suffix["measured"]["matches"], rel=0.5)
    text = query.explain(strategy=strategy, analyze=TRADES)
    assert f"Measured over 1,500 events: {matches:,} found in " in text


def test_predicates_are_tested_on_a_sample() -> None:
    query = nestream.query(
        "SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o, m.amount > 900, m.price < o.price) WITHIN 10 s"
    )
    shares = query.explain("json", strategy="flat", analyze=TRADES)["sharing"]["statistics"]["selectivities"]
    assert shares["MSFT.amount > 900"] == pytest.approx(0.1, abs=0.06)
    assert 0 < shares["MSFT.price < ORCL.price"] < 1
    assert len(shares) == 2


def test_keys_are_counted() -> None:
    query = nestream.query("SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o) WHERE [id] WITHIN 10 s")
    found = query.explain("json", strategy="flat", analyze=TRADES)["sharing"]
    assert found["statistics"]["domains"] == {"id": 100}


def test_times_in_nanoseconds_are_planned_for() -> None:
    fine = TRADES.column("ts").cast("timestamp[ns]")
    table = TRADES.set_column(0, "ts", pc.add(fine, pa.scalar(1, pa.duration("ns"))))
    query = nestream.query("SEQ(MSFT m, !SEQ(RIMM r, AMAT a), ORCL o, m.price < o.price) WITHIN 10 s")
    assert query.count(table, strategy="flat") == query.count(TRADES) > 0


def test_no_events_are_analyzed_too() -> None:
    text = nestream.query(MIXED).explain(strategy="flat", analyze=TRADES.slice(0, 0))
    assert "Measured over 0 events: 0 found in 0.00 ms" in text


def test_the_reference_is_not_analyzed() -> None:
    with pytest.raises(
        ValueError, match="the reference evaluator has no plan to analyze: choose another strategy"
    ):
        nestream.query(MIXED).explain(strategy="reference", analyze=TRADES)


def test_equal_numbers_of_other_kinds_are_other_plans() -> None:
    texts = [f"SEQ(A a, !SEQ(B b, C c), D d, a.x = {value}) WITHIN 9" for value in ("1", "1.0", "TRUE")]
    normal = [flat_plan(nestream.query(text).plan).normal for text in texts]
    assert len({repr(form.plan) for form in normal}) == 3


# -- planned anew while it runs ----------------------------------------------------------------------------


def skewed(kinds: str, count: int = 400) -> pa.Table:
    """Events of these types in turns."""
    return pa.table(
        {
            "ts": pa.array(range(count), pa.int64()),
            "type": [kinds[number % len(kinds)] for number in range(count)],
            "id": pa.array([0] * count, pa.int64()),
            "x": pa.array([number % 3 for number in range(count)], pa.int64()),
        }
    )


CHANGING = (
    "OR(SEQ(A a, !SEQ(B b, C c), D d), SEQ(A a2, B b2, C c2), SEQ(A a3, B b3, D d3), AND(A a4, !B b4)) "
    "WITHIN 7"
)


def flat_program(text: str, table: pa.Table) -> BlockProgram:
    return in_blocks(nestream.query(text).prepare(table, strategy="flat", options=BY_ROWS).compiled().program)


def test_a_running_program_is_planned_anew_when_the_share_of_a_type_has_doubled() -> None:
    even, changed = skewed("ABCD"), skewed("ABDABDABDC")
    schema = Schema.of(even.schema)
    planned = flat_program(CHANGING, even.slice(0, 0)).planned_for(even, schema)
    assert isinstance(planned, BlockProgram)
    assert planned.sharing is not None
    assert planned.sharing.model.statistics.counts == {"A": 100, "B": 100, "C": 100, "D": 100}
    assert planned.planned_for(even, schema) is planned
    assert planned.planned_for(skewed("AAABBBCCD", 200), schema) is planned, "so few events say too little"
    anew = planned.planned_for(changed, schema)
    assert isinstance(anew, BlockProgram)
    assert anew is not planned
    assert anew.outlines == planned.outlines
    assert anew.blocks == planned.blocks


def test_a_program_that_no_statistics_decide_stays_as_it_is() -> None:
    table = skewed("ABCD")
    for strategy in ("native", "nested", "views-balanced"):
        run = nestream.query(CHANGING).prepare(table, strategy=strategy)
        program = run.compiled().program
        assert not program.is_planned_by_statistics
        assert program.planned_for(table, run.schema) is program


@pytest.mark.parametrize("seed", range(8))
def test_a_run_that_is_planned_anew_between_batches_gives_each_match_once(seed: int) -> None:
    random = Random(seed)
    events = pa.concat_tables([skewed("".join(random.choices("ABCD", k=9)), 40) for _ in range(4)])
    events = events.set_column(0, "ts", pa.array(range(events.num_rows), pa.int64()))
    query = nestream.query(CHANGING)
    run = query.prepare(events, strategy="flat", options=random.choice(({}, BY_ROWS)))
    local = LocalRun(run.compiled())
    groups, found, done = set(), [], 0
    while done < events.num_rows:
        local.plan_for(skewed("".join(random.choices("ABCD", k=9)), 300))
        groups.add(tuple(group.operator for group in in_blocks(local.program).groups))
        batch = events.slice(done, random.randint(5, 40))
        done += batch.num_rows
        local.append(batch)
        found += list(local.advance(done - 1))
    found += list(local.finish())
    wanted = query.match(events, strategy="reference")
    shown = sorted(map(repr, pa.concat_tables(found).to_pylist()))
    assert shown == sorted(map(repr, wanted.to_pylist()))
