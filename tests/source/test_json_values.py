"""Lines parsed together are what they are one by one, and a name that comes twice is never overlooked."""

from __future__ import annotations

import itertools
import json

import pytest

from nestream.source.json_values import parse_line, parse_together

VALUES = [
    "1",
    '":"',
    '"x"',
    '"\\":"',
    '{"a":1}',
    '{"b":1,"b":2}',
    "null",
    '[{"c":1,"c":1}]',
    '"\\u0041"',
    '": :"',
]
COLONS = [":", ": ", " : ", "\t:", "  :"]


@pytest.mark.parametrize("colon", COLONS)
def test_lines_together_are_what_they_are_one_by_one(colon: str) -> None:
    for one, other in itertools.product(VALUES, VALUES):
        for name in ("a", "b", ":", 'q\\"'):
            line = f'{{"a"{colon}{one}, "{name}"{colon}{other}}}'.encode()
            value, problem = parse_line(line)
            together = parse_together([b'{"z": 0}', line])
            if problem is not None:
                assert together is None, line
            else:
                assert together == [{"z": 0}, value], line


def test_a_name_that_comes_twice_is_reported() -> None:
    assert parse_together([b'{"a": 1, "a": 2}']) is None
    assert "several members named `a`" in str(parse_line(b'{"a": 1, "a": 2}')[1])
    assert parse_together([json.dumps({"a": ":", "b": '"'}).encode()]) == [{"a": ":", "b": '"'}]
