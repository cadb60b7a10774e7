"""Groups on Spark are arrays of structs, the same as those of this process."""

from __future__ import annotations

from typing import Any

import pytest

import nestream

pytest.importorskip("pyspark")

EVENTS = [
    {"ts": ts, "type": kind, "user": user, "ip": ip}
    for ts, (kind, user, ip) in enumerate(
        [
            ("Login", 1, 1),
            ("Failure", 1, 2),
            ("Failure", 2, 7),
            ("Failure", 1, None),
            ("Success", 1, 1),
            ("Login", 2, 5),
            ("Success", 2, 9),
            ("Failure", 2, 9),
        ]
    )
]


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(Login l, Failure* f, Success s) WHERE [user] WITHIN 10",
        "SEQ(Login l, Failure* f, Success s) WHERE [user] WITHIN 10 RETURN f, COUNT(f) AS n, AVG(f.ip) AS a",
        "SEQ(Login l, (SEQ(Failure f, Failure g))* p, Success s) WHERE [user] WITHIN 10",
        "SEQ(Failure{1,} f, Failure last) WHERE [user] WITHIN 10",
        "SEQ(Success s, Failure* f) WITHIN 3",
    ],
)
def test_groups_are_arrays_of_structs_with_the_matches_of_this_process(spark: Any, text: str) -> None:
    query = nestream.query(text)
    found = query.match(spark.createDataFrame(EVENTS, "ts long, type string, user long, ip long"))
    rows = [row.asDict(recursive=True) for row in found.collect()]
    assert sorted(map(repr, rows)) == sorted(map(repr, query.match(EVENTS).to_pylist()))
