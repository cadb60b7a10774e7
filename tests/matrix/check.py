"""What every Python and PySpark has to pass; runs in an environment with the wheels and PySpark alone.

Prints one line of JSON: the versions, and for each check "ok" or what went wrong.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

RULES = sys.argv[1]
"""A folder of queries for the sample data `hospital`."""
PACKAGES = ("nestream", "numba", "numpy", "pandas", "pyarrow", "pyspark")


def rows(table: Any) -> list[str]:
    """The rows of a result, in an order of their own."""
    found = (
        table.to_pylist() if hasattr(table, "to_pylist") else [row.asDict(True) for row in table.collect()]
    )
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in found)


def in_process() -> None:
    """Engine, reference and stream agree; every function gives what its example says."""
    import nestream
    from nestream.data import sample
    from nestream.model.functions import FUNCTIONS

    query = nestream.query((Path(RULES) / "contaminated-surgical-instrument.neel").read_text())
    events = sample("hospital")
    wanted = rows(query.match(events))
    assert len(wanted) == 5, wanted
    for strategy in ("reference", "flat", "nested"):
        assert rows(query.match(events, strategy=strategy)) == wanted, strategy
    stream = query.stream()
    pushed = [match for event in events.to_pylist() for match in stream.push(event)]
    pushed += stream.finish()
    assert len(pushed) == len(wanted), pushed
    for name, known in FUNCTIONS.items():
        if known.example and not known.is_word:
            held = nestream.query(f"(A a : {known.example})").count([{"ts": 1, "type": "A"}])
            assert held == 1, f"{name}: {known.example}"


def on_spark() -> None:
    """A set of rules gives the same on a DataFrame as in this process."""
    import nestream
    from nestream.data import sample, sample_path
    from nestream.query import spark_session

    events = sample("hospital")
    texts = {path.stem: path.read_text() for path in sorted(Path(RULES).glob("*.neel"))}
    rules = nestream.queries(texts)
    wanted = rows(rules.match(events))
    session = spark_session("local[2]")
    try:
        frame = session.read.csv(str(sample_path("hospital")), header=True, inferSchema=True)
        assert frame.count() == events.num_rows
        found = rows(rules.match(frame))
        assert len(found) == len(wanted) > 5, (len(found), len(wanted))
    finally:
        session.stop()


def streamed() -> None:
    """`nestream stream` on Spark finds the matches of a folder of files."""
    from nestream.data import sample_path

    program = Path(sys.executable).with_name("nestream")
    query = Path(RULES) / "contaminated-surgical-instrument.neel"
    with tempfile.TemporaryDirectory() as folder:
        arriving, found = Path(folder, "in"), Path(folder, "out")
        arriving.mkdir()
        (arriving / "events.csv").write_bytes(Path(sample_path("hospital")).read_bytes())
        command = [program, "stream", query, "--from", arriving, "--to", found, "--once", "--flush"]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-2000:]
        assert " 5 matches," in ran.stderr, ran.stderr[-2000:]
        assert list(found.rglob("*.parquet")), "no file of matches"


def outcome(check: Callable[[], None]) -> str:
    """Whether a check passes, or the last lines of what went wrong."""
    try:
        check()
        return "ok"
    except Exception:
        return traceback.format_exc()[-1500:]


if __name__ == "__main__":
    found = {check.__name__: outcome(check) for check in (in_process, on_spark, streamed)}
    versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    print(json.dumps({"versions": versions, "checks": found}))
