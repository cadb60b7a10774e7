"""What the engine holds stays bounded however long a stream goes on."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from nestream.engine.event_buffer import EventBuffer
from nestream.engine.matcher import Matcher
from nestream.model.schema import Schema
from tests.papers.tools import SCHEMA, program

WINDOW = 50
BURSTS = 40
LONGER = 15
MEASURED = 8
"""How many of the last bursts are looked at: what is held goes up and down."""

Burst = Callable[[int], pa.Table]


def held(root: object) -> int:
    """The bytes of everything that can be reached from an object: arrays, Arrow buffers, containers."""
    seen: set[int] = set()
    pending = [root]
    total = 0
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, type | type(gc) | type(held)):
            continue
        seen.add(id(thing))
        if isinstance(thing, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray):
            total += thing.get_total_buffer_size()
        elif isinstance(thing, np.ndarray):
            total += thing.nbytes
            if thing.base is not None:
                pending.append(thing.base)
        else:
            total += sys.getsizeof(thing)
            pending += gc.get_referents(thing)
    return total


def burst(number: int, gap: int) -> pa.Table:
    """Twelve events of four types and three keys; the next burst comes after a gap."""
    start = number * (12 + gap)
    rows = [{"ts": start + n, "type": "ABCD"[n % 4], "id": n // 4, "x": number} for n in range(12)]
    return pa.Table.from_pylist(rows, SCHEMA)


def with_new_words(number: int, gap: int) -> pa.Table:
    """The same with a text that never comes again, in a dictionary, as readers give it."""
    table = burst(number, gap)
    words = pa.array([f"a rather long text {number} {n}" for n in range(table.num_rows)])
    return table.append_column("text", words.dictionary_encode())


def grown(text: str, batch: Burst, silence: int = 0) -> tuple[int, int, int]:
    """What is held after some bursts at the most, and after many times as many; and the matches.

    Time goes on after each burst, by as much as the silence: then the engine may forget all it has.
    """
    schema = batch(0).schema
    made = program(text, schema)
    events = EventBuffer(made.leaves, Schema.of(schema), schema.names)
    matcher = Matcher(made, events)
    found, most = 0, []
    for end in (BURSTS, BURSTS * LONGER):
        sizes = []
        for number in range(0 if end == BURSTS else BURSTS, end):
            table = batch(number)
            last = table.column("ts")[-1].as_py()
            events.append(table)
            for watermark in (last, last + silence):
                found += sum(part.count for part in matcher.advance(watermark))
            if end - number <= MEASURED:
                sizes.append(held(matcher))
        most.append(max(sizes))
    return most[0], most[1], found


@pytest.mark.parametrize("gap", [0, 2 * WINDOW, 8 * WINDOW], ids=["steady", "bursts", "long silence"])
@pytest.mark.parametrize(
    "text",
    [
        f"SEQ(A a, B b, C c) WHERE [id] WITHIN {WINDOW}",
        f"EXISTS a : SEQ(A a, B b, C c) WITHIN {WINDOW}",
        f"EXISTS a : OR(SEQ(A a, B b), SEQ(C c, D d)) WITHIN {WINDOW}",
        f"SEQ(A a, !SEQ(B b, C c), D d, !A e) WHERE [id] WITHIN {WINDOW}",
        f"EXISTS a : SEQ(!C c, A a, B b, !D d) WITHIN {WINDOW}",
        "EXISTS b : SEQ(A a, B b, C c) WITHIN 20 EVENTS",
    ],
)
def test_a_stream_that_goes_on_holds_no_more_than_at_first(text: str, gap: int) -> None:
    early, late, found = grown(text, lambda number: burst(number, gap), gap)
    assert found >= BURSTS or "!" in text
    assert late <= 1.2 * early


def test_texts_that_are_gone_leave_the_dictionary() -> None:
    text = f"SEQ(A a, B b, C c) WHERE [id] WITHIN {WINDOW}"
    early, late, found = grown(text, lambda number: with_new_words(number, 0))
    assert found > BURSTS
    assert late <= 1.2 * early
