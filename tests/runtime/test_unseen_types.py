"""A type that no event has is most likely misspelt, and somebody says so; a quiet day is not remarked on."""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nestream
from tests.cli.commands import call

TYPO = "SEQ(Recycel r, Washing w) WITHIN 9"
SENTENCE = "no event has type 'Recycel'; did you mean 'Recycle'?"
KINDS = ("Recycle", "Washing", "Recycle", "Operating")
EVENTS = [{"ts": ts, "type": kind} for ts, kind in enumerate(KINDS)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n" + "".join(f"{event['ts']},{event['type']}\n" for event in EVENTS))
    return path


def told(act: Any) -> list[str]:
    """What is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(warning.message) for warning in caught if warning.category is nestream.UnseenTypeWarning]


def test_match_count_and_batches_warn_of_a_misspelt_type_where_they_were_called() -> None:
    query = nestream.query(TYPO)
    assert told(lambda: query.match(EVENTS)) == [SENTENCE]
    assert told(lambda: query.match(EVENTS, strategy="reference")) == [SENTENCE]
    assert told(lambda: query.count(EVENTS)) == [SENTENCE]
    assert told(lambda: list(query.batches(EVENTS))) == [SENTENCE]
    with pytest.warns(nestream.UnseenTypeWarning) as caught:
        query.match(EVENTS)
    assert caught[0].filename == __file__


def test_a_negated_type_is_looked_at_too() -> None:
    assert told(lambda: nestream.query("SEQ(Recycle r, !Washin w, Operating o) WITHIN 9").match(EVENTS)) == [
        "no event has type 'Washin'; did you mean 'Washing'?"
    ]


def dictionary(words: list[str], *used: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([words.index(name) for name in used], pa.int8()), words)


@pytest.mark.parametrize("rest", [KINDS[2:], ("Washing", "Washing")])
def test_a_dictionary_with_words_that_no_event_has_changes_nothing(rest: tuple[str, str]) -> None:
    several = [
        dictionary(["Unused", "Washing", "Recycle"], *KINDS[:2]),
        dictionary(["Operating", "Washing", "Recycle", "Recycler"], *rest),
    ]
    for text in (TYPO, "SEQ(Unuse u, Washing w) WITHIN 9", "SEQ(Recyclers r, Washing w) WITHIN 9"):
        dictionaries, strings = (
            pa.table({"ts": [0, 1, 2, 3], "type": pa.chunked_array(chunks)})
            for chunks in (several, [chunk.cast(pa.string()) for chunk in several])
        )
        found = told(partial(nestream.query(text).match, dictionaries))
        assert found == told(partial(nestream.query(text).match, strings))


def test_a_set_says_which_query_it_is() -> None:
    found = told(lambda: nestream.queries({"dirty": TYPO, "fine": "Washing w"}).match(EVENTS))
    assert found == [f"query dirty: {SENTENCE}"]


def test_a_stream_warns_when_it_is_finished() -> None:
    stream = nestream.query(TYPO).stream()
    assert told(lambda: [stream.push(event) for event in EVENTS]) == []
    assert told(stream.finish) == [SENTENCE]
    resumed = nestream.query(TYPO).stream()
    resumed.push_batch(EVENTS)
    later = nestream.query(TYPO).stream().restore(resumed.save())
    assert told(later.finish) == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SEQ(Alarm a, Washing w) WITHIN 9", KINDS),
        ("SEQ(Sensor3 s, Washing w) WITHIN 9", ("Sensor1", "Sensor2", "Washing")),
        ("SEQ(Recycle r, Washing w) WITHIN 9", KINDS),
        (TYPO, ()),
    ],
)
def test_a_quiet_day_is_not_remarked_on(text: str, kinds: tuple[str, ...]) -> None:
    events = [{"ts": ts, "type": kind} for ts, kind in enumerate(kinds)]
    query = nestream.query(text)
    assert told(lambda: query.match(events)) == []
    assert told(lambda: [query.stream(events)]) == []


def test_events_of_which_no_type_is_named_are_remarked_on() -> None:
    found = told(lambda: nestream.query("SEQ(A a, B b) WITHIN 9").match(EVENTS))
    assert found[0] == "no event has type 'A'; the events have 'Operating', 'Recycle', 'Washing'"


def test_run_and_check_note_it_on_standard_error(file: Path) -> None:
    ran = call("run", TYPO, file)
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert ran.stderr.count(SENTENCE) == 1
    checked = call("check", TYPO, "--events", file)
    assert (checked.exit_code, f"note: {SENTENCE}" in checked.stderr) == (0, True)
    answer = json.loads(call("check", TYPO, "--events", file, "--format", "json").stdout)
    assert answer["notes"] == [SENTENCE]
    assert "note:" not in call("run", "SEQ(Recycle r, Washing w) WITHIN 9", file).stderr


def test_the_console_tells_it_with_the_matches() -> None:
    from nestream.console.operations import Operations

    answer = Operations({}).answer({"operation": "run", "text": TYPO, "events": EVENTS})
    assert answer["ok"], answer
    assert answer["notes"] == [SENTENCE]
