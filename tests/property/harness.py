"""Compares what a runner gives with what the reference gives, and shows the difference to be read."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from nestream.query import Query, query
from tests.generators.histories import labels, shown
from tests.property.cases import Case
from tests.property.runners import Run, Runner


@dataclass(frozen=True)
class Difference:
    """What is wrong with the result of a runner."""

    what: str
    case: Case
    expected: pa.Table | None = None
    found: pa.Table | None = None

    def __str__(self) -> str:
        names = dict(zip(self.case.table.column("n").to_pylist(), labels(self.case.table), strict=True))
        parts = [self.what, "", str(self.case)]
        for head, table in (("expect:", self.expected), ("# found:", self.found)):
            if table is not None:
                rows = [_shown(row, names) for row in table.to_pylist()]
                mark = "#   " if head.startswith("#") else "    "
                parts += [head, *(mark + row for row in rows)] if rows else [f"{head} none"]
        return "\n".join(parts)


class DifferenceError(AssertionError):
    """A runner that does not agree with the reference."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


def assert_same_matches(query_text: str, table: pa.Table, runner: Run | Runner, **options: Any) -> None:
    """Fail unless the runner gives the matches of the reference.

    `options` are those of a `Case`: `order`, `seed`, `name`. A plain function promises no order of its rows.
    """
    wrong = difference(
        Case(query_text, table, **options), runner if isinstance(runner, Runner) else Runner(runner)
    )
    if wrong is not None:
        raise DifferenceError(wrong)


def difference(case: Case, runner: Runner) -> Difference | None:
    """How the runner's result differs from the reference's, or None where it does not."""
    read = query(case.text)
    expected = read.match(case.table, order=case.order, strategy="reference")
    try:
        found = runner.run(case.text, case.table, order=case.order, seed=case.seed)
    except Exception as error:  # whatever a runner raises is the finding
        return Difference(f"the runner raised {type(error).__name__}: {error}", case, expected)
    wrong = _compare(read, case, runner, expected, found)
    return Difference(wrong, case, expected, found) if wrong else None


def _compare(read: Query, case: Case, runner: Runner, expected: pa.Table, found: pa.Table) -> str | None:
    if not isinstance(found, pa.Table):
        return f"the result is a {type(found).__name__}, not an Arrow table"
    if found.schema != expected.schema:
        return f"the columns differ\nexpected:\n{expected.schema}\nfound:\n{found.schema}"
    wanted, given = _rows(expected), _rows(found)
    if runner.ordered:
        if wanted == given:
            return None
        return "the order differs" if Counter(wanted) == Counter(given) else _counted(wanted, given)
    if read.plan.limit is None:
        return _counted(wanted, given)
    if len(wanted) != len(given):
        return f"LIMIT gives {len(given)} matches, not {len(wanted)}"
    unlimited = Query(replace(read.bound, plan=replace(read.plan, limit=None)))
    all_matches = Counter(_rows(unlimited.match(case.table, order=case.order, strategy="reference")))
    return f"LIMIT gives {_listed(wrong)}" if (wrong := Counter(given) - all_matches) else None


def _counted(wanted: Sequence[str], given: Sequence[str]) -> str | None:
    missing, extra = Counter(wanted) - Counter(given), Counter(given) - Counter(wanted)
    parts = [f"{name}: {_listed(rows)}" for name, rows in (("missing", missing), ("extra", extra)) if rows]
    return "\n".join(parts) or None


def _listed(rows: Counter[str]) -> str:
    return "; ".join(f"{row} ({times} times)" if times > 1 else row for row, times in rows.items())


def _rows(table: pa.Table) -> list[str]:
    """A text for each match that tells it from every other; NaN equals itself."""
    return [" ".join(f"{name}={_value(cell)}" for name, cell in row.items()) for row in table.to_pylist()]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + " ".join(f"{name}={_value(part)}" for name, part in value.items()) + "}"
    return "NaN" if isinstance(value, float) and math.isnan(value) else repr(value)


def _shown(row: dict[str, Any], names: dict[int, str]) -> str:
    """The match in the notation of the corpus."""
    start, end = row.pop("match_start"), row.pop("match_end")
    events = [cell for cell in row.values() if isinstance(cell, dict)]
    parts = [
        names.get(cell["n"], str(cell))
        if isinstance(cell, dict)
        else str(cell)
        if isinstance(cell, list)
        else "-"
        if cell is None and not re.fullmatch(r"v\d", name)  # a variable; returned values are v0, v1, ...
        else f"{name}={shown(cell)}"
        for name, cell in row.items()
    ]
    times = [event["ts"] for event in events]
    if not times or (min(times), max(times)) != (start, end):
        parts.append(f"[{start}..{end}]")
    return " ".join(parts)
