"""What is computed over events is freed with its last use: nothing waits for Python's search for garbage."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import nestream
from nestream.data import generate
from nestream.engine.evaluation import Evaluation
from nestream.engine.event_buffer import EventBuffer

EVENTS = generate("sase", events=5_000, seed=1, attributes=1, id_domain=20)
TEXTS = (
    "SEQ(A a, B b, ! SEQ(D d, ! F f, E e), C c) WHERE [id] WITHIN 2000",
    "SEQ(A a, B+ b, C c) WHERE [id] WITHIN 2000",
    "AND(A a, SEQ(B b, !C c)) WHERE [id] WITHIN 500",
)


def held() -> int:
    """How many stores of events, and of what is computed over them, there are."""
    return sum(isinstance(one, EventBuffer | Evaluation) for one in gc.get_objects())


@contextmanager
def without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pushed(query: nestream.Query | nestream.Queries) -> int:
    stream = query.stream(schema=EVENTS.schema)
    parts = [EVENTS.slice(start, 500) for start in range(0, len(EVENTS), 500)]
    return int(sum(stream.push_batch(part).num_rows for part in parts) + stream.finish_batch().num_rows)


WAYS: dict[str, Callable[[nestream.Query], object]] = {
    "match": lambda query: query.match(EVENTS),
    "batches": lambda query: list(query.batches(EVENTS, threads=2)),
    "count": lambda query: query.count(EVENTS),
    "first": lambda query: next(iter(query.batches(EVENTS)), None),
    "stream": pushed,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_query_leaves_nothing_behind(text: str, way: str) -> None:
    query = nestream.query(text)
    WAYS[way](query)  # what is kept for the next time is there
    with without_collection():
        before = held()
        WAYS[way](query)
        assert held() == before


@pytest.mark.parametrize("way", ["match", "stream"])
def test_a_set_leaves_nothing_behind(way: str) -> None:
    queries = nestream.queries(dict(zip("abc", TEXTS, strict=True)))
    run: Callable[[], pa.Table | int] = (
        (lambda: queries.match(EVENTS)) if way == "match" else lambda: pushed(queries)
    )
    run()
    with without_collection():
        before = held()
        run()
        assert held() == before
