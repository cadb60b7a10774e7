"""`explain` in SASE's operators: figures 1 and 6 of the paper, and what the engine adds."""

from __future__ import annotations

import pytest

import nestream
from nestream_papers.options import Options
from nestream_papers.sase.plan import BASIC, PAPER
from tests.cli.commands import call
from tests.papers.sase.test_figures import Q3

FIGURE_1 = """\
Basic plan
  TF  transformation x1; x2; x4
  NG  negation       !C x3 after x2 before x4, x1.attr1 = x3.attr1, x1.attr2 = x3.attr2: by index
  WD  window         x4.ts - x1.ts < 6
  σ   selection      [attr1]; [attr2]; x1.attr3 = "1"; x1.attr4 < x4.attr4
  SC← construction   back through all events
  SS→ scan           (A x1, B x2, D x4); one runtime stack"""
FIGURE_6 = """\
Optimised plan
  TF  transformation x1; x2; x4
  NG  negation       !C x3 after x2 before x4, x1.attr1 = x3.attr1, x1.attr2 = x3.attr2: by index
  σ   selection      x1.attr4 < x4.attr4
  SC← construction   from the stacks; [attr2]; x4.ts - x1.ts < 6
  SS→ scan           (A x1, B x2, D x4); stacks partitioned by [attr1]; x1.attr3 = "1"; x4.ts - x1.ts < 6"""
OUR_OWN = """\
Plan that is run
  TF  transformation x1; x2; x4
  SC← construction   from the stacks, without dead ends; x1.attr4 < x4.attr4; \
!C x3 after x2 before x4, x1.attr1 = x3.attr1, x1.attr2 = x3.attr2: as a bound; x4.ts - x1.ts < 6
  SS→ scan           (A x1, B x2, D x4); stacks partitioned by [attr1], [attr2]; x1.attr3 = "1\""""


def plan(text: str, options: Options | None = None, which: str = "Plan that is run") -> list[str]:
    """The lines of one of the plans, without its title."""
    lines = nestream.query(text).explain(dialect="sase", options=options).splitlines()
    start = lines.index(which) + 1
    end = next((n for n in range(start, len(lines)) if not lines[n].startswith(" ")), len(lines))
    return [line.strip() for line in lines[start:end]]


def test_q3_reads_as_in_figures_1_and_6() -> None:
    told = nestream.query(Q3).explain(dialect="sase")
    assert told == "\n".join((FIGURE_1, FIGURE_6, OUR_OWN))


@pytest.mark.parametrize("options", [BASIC, PAPER], ids=["basic", "optimised"])
def test_a_plan_that_is_run_as_in_the_paper_is_told_once(options: Options) -> None:
    told = nestream.query(Q3).explain(dialect="sase", options=options)
    assert told == f"{FIGURE_1}\n{FIGURE_6}"


def test_the_second_equivalence_test_is_told_where_it_is_made() -> None:
    text = "EVENT SEQ(A a, B b) WHERE [id, x] WITHIN 9"
    both = plan(text, Options(composite=False, filtering=False))
    assert "σ   selection      [x]" in both
    assert both[-1].startswith("SS→ scan           (A a, B b); stacks partitioned by [id]; intersected with")
    neither = plan(text, Options(composite=False, multiple=False, filtering=False))
    assert "σ   selection      [x]" in neither
    assert "intersected" not in neither[-1]
    filtered = plan(text, which="Optimised plan")
    assert "SC← construction   from the stacks; [x]; b.ts - a.ts < 9" in filtered


def test_windows_are_told_where_they_are_checked() -> None:
    text = "SEQ(A a, B b) WITHIN 9"
    neither = plan(text, Options(window_scan=False, window_construction=False))
    assert neither[1] == "WD  window         b.ts - a.ts <= 9"
    assert not any("9" in line for line in neither[2:])
    scan = plan(text, Options(window_construction=False))
    assert "WD  window         b.ts - a.ts <= 9" in scan
    assert scan[-1].endswith("b.ts - a.ts <= 9")


def test_a_trailing_negation_is_postponed_by_the_window() -> None:
    text = "EVENT SEQ(A x, !(B y)) WHERE [id] WITHIN 5 minutes"
    (line,) = (line for line in plan(text, which="Optimised plan") if line.startswith("NG"))
    assert line.endswith("x.id = y.id: by index, postponed by 5 minutes")
    (line,) = (line for line in plan(text, Options(negation_index=False)) if line.startswith("NG"))
    assert line.endswith("by scanning, postponed by 5 minutes")


def test_what_is_no_sequence_is_told_as_a_join_and_each_branch_has_a_plan() -> None:
    told = plan("OR(AND(A a, B b, a.id = b.id), C c) WITHIN 5", which="Optimised plan")
    assert told == [
        "branch 1",
        "TF  transformation a; b",
        "⋈   join           (A a, B b); [id]; within 5",
        "branch 2",
        "TF  transformation c",
        "SS→ scan           (C c)",
    ]


def test_a_single_event_is_scanned_and_selected() -> None:
    text = "EVENT A a WHERE a.x > 1"
    assert plan(text, which="Basic plan") == [
        "TF  transformation a",
        "σ   selection      a.x > 1",
        "SS→ scan           (A a)",
    ]
    assert plan(text, which="Optimised plan")[-1] == "SS→ scan           (A a); a.x > 1"


def test_plans_as_data_have_the_same_operators() -> None:
    told = nestream.query(Q3).explain(format="json", dialect="sase")
    assert list(told) == ["basic", "optimised", "run"]
    (operators,) = told["optimised"]
    assert [part["operator"] for part in operators] == ["TF", "NG", "σ", "SC←", "SS→"]
    assert operators[3]["does"] == ["from the stacks", "[attr2]", "x4.ts - x1.ts < 6"]


def test_the_command_shows_sase_operators_for_every_spelling() -> None:
    for text in (Q3, "SEQ(A a, !B b, C c) WITHIN 9"):
        result = call("explain", text, "--dialect", "sase")
        assert result.exit_code == 0
        assert result.stdout == nestream.query(text).explain(dialect="sase") + "\n"
    assert call("explain", Q3, "--dialect", "neel").exit_code == 1


def test_sase_operators_go_with_nothing_else() -> None:
    query = nestream.query(Q3)
    with pytest.raises(ValueError, match="strategy auto"):
        query.explain(dialect="sase", strategy="flat")
    with pytest.raises(ValueError, match="unknown dialect"):
        query.explain(dialect="neel")
    assert call("explain", Q3, "--dialect", "sase", "--verbose").exit_code == 2
