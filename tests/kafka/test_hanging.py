"""Calls of the client that ignore their timeouts: none holds up a stream for longer than its deadline."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import confluent_kafka
import pytest

import nestream.sink.kafka as sink_module
from nestream.job import RulesError, open_rules
from nestream.job import rule_topic as rules_module
from nestream.sink import SinkError, open_sink
from tests.cli.commands import environment, program
from tests.kafka.broker import Broker
from tests.kafka.jobs import PAIRS, event
from tests.kafka.test_sink import ids, table

CALLS = (
    "init_transactions",
    "begin_transaction",
    "send_offsets_to_transaction",
    "commit_transaction",
)
COMMAND = """
import sys, threading
import confluent_kafka
from nestream.cli.main import main
from nestream.job import job

class Hanging(confluent_kafka.Producer):
    def send_offsets_to_transaction(self, *given):
        print("hangs", flush=True)
        threading.Event().wait()

confluent_kafka.Producer = Hanging
job.LEAVING = job.STALLED = job.LONGEST = 0.5
sys.argv = ["nestream", *sys.argv[1:]]
main()
"""


def hang(patch: pytest.MonkeyPatch, kind: str, call: str, *, times: int, then: bool = False) -> list[Any]:
    """Let the first calls of a client hang for good, `then` after they did their work; return the calls."""
    calls: list[Any] = []
    own = getattr(getattr(confluent_kafka, kind), call)

    def hanging(client: Any, *given: Any, **options: Any) -> Any:
        calls.append(client)
        if len(calls) > times:
            return own(client, *given, **options)
        if then:
            own(client, *given, **options)
        return Event().wait()

    known = getattr(confluent_kafka, kind)
    patch.setattr(confluent_kafka, kind, type(kind, (known,), {call: hanging}))
    patch.setattr(sink_module, "_DEADLINE", 1.0)
    return calls


def send(broker: Broker, topic: str) -> None:
    """Send two groups of matches."""
    sink = open_sink(broker.url(topic))
    sink.restore(None)
    for number in (1, 2):
        sink.write(table(number))
        sink.commit(sink.prepare())
    sink.close()


@pytest.mark.parametrize("then", [False, True], ids=["before its work", "after its work"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_ignores_its_timeout_is_given_up_and_every_match_is_sent_once(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, call: str, then: bool
) -> None:
    topic = broker.topic()
    calls = hang(monkeypatch, "Producer", call, times=1, then=then)
    begin = time.monotonic()
    send(broker, topic)
    assert time.monotonic() < begin + 30
    assert calls
    assert ids(broker, topic) == [1, 2]


def test_a_question_for_the_last_transaction_that_hangs_is_asked_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic()
    sink = open_sink(broker.url(topic))
    sink.restore(None)
    sink.write(table(1))
    saved = sink.prepare()
    sink.close()
    calls = hang(monkeypatch, "Consumer", "committed", times=1)
    sink = open_sink(broker.url(topic))
    sink.restore(saved)
    sink.close()
    assert len(calls) == 2
    assert ids(broker, topic) == [1]


def test_a_transaction_that_hangs_again_and_again_fails_and_the_same_matches_are_sent_later(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic()
    with monkeypatch.context() as patch:
        hang(patch, "Producer", "send_offsets_to_transaction", times=99)
        patch.setattr(sink_module, "LONGEST", 2.0)
        sink = open_sink(broker.url(topic))
        sink.restore(None)
        sink.write(table(1))
        saved = sink.prepare()
        with pytest.raises(SinkError, match=r"The checkpoint has them: the same command continues"):
            sink.commit(saved)
        sink.close()
    assert ids(broker, topic) == []
    sink = open_sink(broker.url(topic))
    sink.restore(json.loads(json.dumps(saved)))
    sink.close()
    assert ids(broker, topic) == [1]


@pytest.mark.parametrize("call", CALLS[:2] + CALLS[3:])
def test_a_change_of_several_rules_that_hangs_fails(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    rules = open_rules(broker.url(f"{broker.topic()}-rules"))
    monkeypatch.setattr(rules_module, "_DEADLINE", 1.0)
    hang(monkeypatch, "Producer", call, times=1)
    with pytest.raises(RulesError, match="cannot write to kafka://"):
        rules.change("add", lambda _: {"one": PAIRS, "two": PAIRS}, lambda *_: None)


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGINT, signal.SIGINT]])
def test_a_stream_whose_transaction_hangs_is_stalled_ends_when_asked_and_continues(
    broker: Broker, tmp_path: Path, signals: list[signal.Signals]
) -> None:
    events, matches = broker.topic(), broker.topic()
    broker.send(events, event(1, "A", 7), event(3, "B", 7))
    options = ["stream", PAIRS, "--local", "--checkpoint", str(tmp_path)]
    options += ["--from", broker.url(events), "--to", broker.url(matches)]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *options],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "hangs\n"
    end = time.monotonic() + 30
    while json.loads((tmp_path / "progress.json").read_text())["state"] != "stalled":
        assert time.monotonic() < end
        time.sleep(0.05)
    for one in signals:
        process.send_signal(one)
        time.sleep(0.1)
    _, said = process.communicate(timeout=10)
    assert process.returncode == (130 if len(signals) == 2 else 1), said
    if len(signals) == 1:
        assert "run the same command to continue" in said
    assert ids(broker, matches) == []
    assert program(*options, "--once").returncode == 0
    assert ids(broker, matches) == [7]
