"""What a user of the package sees in an interpreter: the public names, and objects on one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

import nestream

LONG = "PATTERN SEQ(" + ", ".join(f"Type{n} v{n}" for n in range(40)) + ") WITHIN 1 hour"


def test_dir_shows_the_public_names_alone() -> None:
    assert sorted(dir(nestream)) == sorted([*nestream.__all__, "__version__"])
    for name in dir(nestream):
        assert getattr(nestream, name) is not None


def test_dir_is_the_same_after_other_modules_are_imported() -> None:
    code = "import nestream.data, nestream; print(*sorted(dir(nestream)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == sorted([*nestream.__all__, "__version__"])


@pytest.mark.parametrize("text", ["SEQ(A a,\n !B b,\n C c)\nWITHIN 10", LONG])
def test_a_query_is_shown_on_one_line(text: str) -> None:
    shown = repr(nestream.query(text))
    assert "\n" not in shown
    assert len(shown) <= 130
    assert shown.startswith("Query('PATTERN SEQ(")


def test_a_short_query_is_shown_whole() -> None:
    assert repr(nestream.query("SEQ(A a, B b) WITHIN 1 hours")) == (
        "Query('PATTERN SEQ(A a, B b) WITHIN 1 hour')"
    )


def test_a_query_set_is_shown_by_the_names_of_its_queries() -> None:
    assert repr(nestream.queries({"one": "A a", "two": "B b"})) == "Queries('one', 'two')"
    shown = repr(nestream.queries({f"rule-{number}": "A a" for number in range(300)}))
    assert shown.startswith("Queries('rule-0', 'rule-1', ")
    assert shown.endswith("… 300 in all)")
    assert len(shown) <= 130


def test_a_stream_is_shown_by_its_counts() -> None:
    stream = nestream.query("SEQ(A a, B b) WITHIN 10").stream()
    stream.push({"ts": 1, "type": "A"})
    stream.push({"ts": 2, "type": "B"})
    assert repr(stream) == "Stream(events_in=2, matches_out=1, late_count=0, dead_count=0)"
