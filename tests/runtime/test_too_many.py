"""A result that does not fit in memory is refused with its number and the ways that fit; no other is."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nestream
from nestream.model.memory import memory_left
from tests.cli.commands import call

EACH = 5000
ENORMOUS = "SEQ(A a, B b, C c) WITHIN UNBOUNDED"


def enormous() -> pa.Table:
    """Events with 125,000,000,000 matches."""
    types = [kind for kind in "ABC" for _ in range(EACH)]
    return pa.table({"ts": np.arange(3 * EACH), "type": types})


def test_match_says_how_many_there_are_and_what_to_do_instead() -> None:
    with pytest.raises(nestream.TooManyMatchesError) as refused:
        nestream.query(ENORMOUS).match(enormous())
    said = str(refused.value)
    assert said.startswith("125,000,000,000 matches do not fit in memory\n  hint: ")
    assert "`batches`" in said
    assert "LIMIT" in said


def test_what_is_asked_for_with_a_limit_is_never_refused() -> None:
    query = nestream.query(f"{ENORMOUS} LIMIT 3")
    assert query.match(enormous()).num_rows == 3
    assert nestream.queries([query.text]).match_each(enormous())["q1"].num_rows == 3
    stream = query.stream()
    assert stream.push_batch(enormous()).num_rows == 3
    assert stream.push_batch(pa.table({"ts": [10**6], "type": ["C"]})).num_rows == 0
    assert stream.finish() == []


OUT_OF_MEMORY = """
import resource, sys
import nestream
import pyarrow as pa
from tests.runtime.test_too_many import ENORMOUS, enormous
pa.set_cpu_count(1)
table, text = enormous(), ENORMOUS.replace(" WITHIN", ", a.ts < c.ts) WITHIN").replace("c),", "c,")
ways = {
    "match": lambda: nestream.query(text).match(table),
    "set": lambda: nestream.queries([text]).match(table),
    "each": lambda: nestream.queries([text]).match_each(table),
    "push_batch": lambda: nestream.query(text).stream().push_batch(table),
}
nestream.query(text).match(table.slice(0, 9))
used = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize"))) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + 700 * 2**20,) * 2)
try:
    ways[sys.argv[1]]()
except nestream.TooManyMatchesError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize(
    "way",
    ["match", *(pytest.param(way, marks=pytest.mark.slow) for way in ("push_batch", "set", "each"))],
)
def test_memory_that_runs_out_ends_in_the_same_sentence(way: str) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", OUT_OF_MEMORY, way]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match("more than [0-9,]+ matches do not fit in memory\n", done.stdout), done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody says")
def test_the_memory_left_is_at_most_what_a_limit_leaves() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = memory_left()
    assert before is not None
    assert before > 0
    resource.setrlimit(resource.RLIMIT_AS, (2**40, hard))
    try:
        after = memory_left()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert after is not None
    assert after < 2**40


def test_a_table_on_the_screen_shows_the_first_of_any_number(tmp_path: Path) -> None:
    pq.write_table(enormous(), tmp_path / "events.parquet")
    result = call("run", ENORMOUS, str(tmp_path / "events.parquet"), "--format", "table", "--limit", "2")
    assert result.exit_code == 0
    assert "showing 2 of 125,000,000,000 matches" in result.stderr
