"""Graphs of plans: the nodes and edges, the rows that are expected and found, and the drawing."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import nestream
from nestream.data import sample
from nestream.show import plan_graph
from tests.cli.commands import EXAMPLE

SVG = "{http://www.w3.org/2000/svg}"
QUERY = nestream.query(EXAMPLE.read_text(encoding="utf-8"))


def graph(query: nestream.Query, *arguments: Any, **options: Any) -> dict[str, Any]:
    found = plan_graph(query, *arguments, **options).json()
    assert json.loads(json.dumps(found)) == found
    numbers = [node["id"] for node in found["nodes"]]
    assert numbers == list(range(len(numbers)))
    assert sorted(below for _, below in found["edges"]) == numbers[1:], "it is a tree"
    return found


def test_the_nested_plan_has_a_node_for_each_operator_event_and_negation() -> None:
    found = graph(QUERY)
    assert [node["label"] for node in found["nodes"]] == [
        "MATCH r, w, o",
        "SEQ",
        "Recycle r",
        "Washing w",
        "NOT",
        "SEQ",
        "Sharpening s",
        "Disinfection d",
        "Checking c",
        "Operating o",
    ]
    assert {node["kind"] for node in found["nodes"]} == {"match", "seq", "event", "negation"}
    assert found["nodes"][5]["detail"] == "s.id = d.id = c.id = o.id"
    assert all(node["measured_rows"] is node["estimated_rows"] is None for node in found["nodes"])


def test_the_rewritten_plan_is_an_or_of_flat_sequences() -> None:
    found = graph(QUERY, rewritten=True)
    kinds = [node["kind"] for node in found["nodes"]]
    assert kinds[:2] == ["match", "or"]
    assert {"projection", "witness"} <= set(kinds)


def test_found_rows_are_those_of_the_events() -> None:
    events = sample("hospital")
    types = events.column("type").to_pylist()
    for rewritten in (False, True):
        found = graph(QUERY, rewritten, events)
        assert found["nodes"][0]["measured_rows"] == QUERY.count(events)
        for node in found["nodes"]:
            if node["label"] in ("Recycle r", "Washing w", "Checking c"):
                assert node["measured_rows"] == types.count(node["label"].split()[0])
                assert node["estimated_rows"] == node["measured_rows"]
        below = [b for a, b in found["edges"] if a == (1 if rewritten else 0)]
        rows = [found["nodes"][number]["measured_rows"] for number in below]
        assert sum(rows) == QUERY.count(events)


def test_an_event_counts_where_what_is_said_of_it_alone_holds() -> None:
    events = [{"ts": ts, "type": "A", "x": ts % 3} for ts in range(9)] + [{"ts": 9, "type": "B", "x": 0}]
    query = nestream.query("SEQ(A a, B b, a.x = 1, b.x < a.x) WITHIN 20 LIMIT 1")
    nodes = {node["label"]: node for node in graph(query, analyze=events)["nodes"]}
    assert nodes["A a"]["measured_rows"] == 3
    assert nodes["B b"]["measured_rows"] == 1
    assert nodes["MATCH a, b"]["measured_rows"] == 3  # before LIMIT


def test_the_columns_of_the_events_may_have_other_names() -> None:
    events = [{"at": 1, "kind": "A"}, {"at": 2, "kind": "B"}]
    query = nestream.query("OR(SEQ(A a, B b), SEQ(B c, !C d, A e)) WITHIN 20")
    found = graph(query, False, events, time="at", type="kind")
    assert found["nodes"][0]["measured_rows"] == 1
    assert [node["measured_rows"] for node in found["nodes"] if node["kind"] == "seq"] == [1, 0]


def test_no_events_have_no_estimates() -> None:
    found = graph(nestream.query("SEQ(A a, B b, a.x = b.x) WITHIN 20"), analyze=[])
    assert found["nodes"][0]["measured_rows"] == 0


def test_the_drawing_has_a_box_for_each_node_and_none_lie_on_each_other() -> None:
    for rewritten in (False, True):
        shown = plan_graph(QUERY, rewritten, sample("hospital"))
        root = ElementTree.fromstring(shown.svg())
        boxes = [
            tuple(float(rect.get(name) or 0) for name in ("x", "y", "width", "height"))
            for rect in root.iter(f"{SVG}rect")
        ]
        assert len(boxes) == len(shown.nodes)
        width, height = float(root.get("width") or 0), float(root.get("height") or 0)
        for place, (x, y, w, h) in enumerate(boxes):
            assert x >= 0
            assert x + w <= width
            assert y + h <= height
            for x2, y2, w2, h2 in boxes[place + 1 :]:
                assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_a_large_plan_is_cut_short() -> None:
    branches = ", ".join(f"SEQ(A a{n}, B b{n}, C c{n})" for n in range(200))
    found = graph(nestream.query(f"OR({branches}) WITHIN 10"))
    assert len(found["nodes"]) <= 401
    assert found["nodes"][-1]["kind"] == "more"
