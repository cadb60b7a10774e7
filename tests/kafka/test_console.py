"""The console of a job on Kafka: rules of a topic are read and deployed, and webhooks send what comes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from nestream.console import Job, webhooks
from nestream.console.rules import ChangedError, JobRules
from tests.cli.commands import call, environment
from tests.console.browsing import PATIENCE, until, visiting
from tests.console.pipeline import wait
from tests.console.served import JobFolder, event, match, serving
from tests.console.test_webhooks import Receiver
from tests.kafka.broker import Broker
from tests.kafka.test_spark import RULES, order, watching

PAIR = "SEQ(A a, B b, a.id = b.id) WITHIN 1 hour\n"
OTHER = "SEQ(A a, C c, a.id = c.id) WITHIN 1 hour\n"


def described(path: Path, **about: Any) -> Path:
    """The folder of a job whose places are topics."""
    folder = JobFolder(path)
    there = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**there, "live_rules": True, **about}))
    return folder.path


def test_rules_of_a_topic_are_shown_deployed_and_rolled_back(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(retention_ms="-1")
    broker.send(topic, PAIR, key="pair")
    rules = JobRules(Job.read(described(tmp_path / "job", rules=broker.url(topic))))
    try:
        wait(rules.look, 60)
        assert rules.texts() == {"pair": PAIR}
        with pytest.raises(ChangedError):
            rules.deploy("pair", OTHER, "another text", {})
        assert rules.deploy("pair", OTHER, PAIR, {}).version == 2
        wait(lambda: rules.look() and rules.texts() == {"pair": OTHER}, 60)
        assert [one.version for one in rules.seen.versions] == [1, 2]
        assert rules.roll_back(1, rules.at(1).texts, 2).version == 3
        wait(lambda: rules.look() and rules.texts() == {"pair": PAIR}, 60)
        assert rules.seen.rules["pair"].version == 3
    finally:
        rules.close()


def test_a_webhook_sends_the_matches_that_come_to_a_topic_and_goes_on_after_a_restart(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "LOOK", 0.05)
    topic = broker.topic(2)

    def send(*numbers: int) -> None:
        for number in numbers:
            row = match("dirty", o=event(number, "Operating", id=number))
            broker.send(topic, json.dumps(row), partition=number % 2)

    send(1, 2)
    with Receiver().listening() as receiver:
        hook = {"url": f"http://127.0.0.1:{receiver.port}/"}
        folder = described(tmp_path / "job", matches=broker.url(topic), webhooks=[hook])
        with serving(folder):
            wait(lambda: any((folder / "webhooks").glob("*.json")), 60)
            send(3, 4)
            wait(lambda: len(receiver.got) == 2, 60)
        send(5)
        with serving(folder):
            wait(lambda: len(receiver.got) == 3, 60)
        assert sorted(receiver.numbers) == [3, 4, 5]


@pytest.mark.slow
def test_a_job_on_spark_with_all_in_topics_is_watched_and_takes_what_is_deployed(
    browser: Browser, broker: Broker, tmp_path: Path
) -> None:
    source, sink, rules = broker.topic(), broker.topic(), broker.url("console-rules")
    for name, text in RULES.items():
        assert call("rules", rules, "add", name, text).exit_code == 0
    watch = watching(
        broker, source, sink, tmp_path, "--watermark", "5 seconds", "--job", str(tmp_path / "job")
    )
    watch[2] = rules
    broker.send(source, order(0, "Order", 1), order(5, "Order", 2), order(60, "Payment", 1))
    broker.send(source, order(62, "Payment", 1), order(120, "Shipment", 2), order(900, "Order", 3))
    with (tmp_path / "stream.log").open("wb") as log:
        stream = subprocess.Popen(watch, env=environment(), stdout=log, stderr=log, start_new_session=True)
    try:
        wait(lambda: (tmp_path / "job" / "job.json").exists(), 120)
        with serving(tmp_path / "job") as console, visiting(browser, console) as page:
            until(page, "nestream.received >= 3")
            assert set(page.evaluate("nestream.matches.map((match) => match.query)")) == set(RULES)
            page.goto(f"{console.base}/queries?rule=unpaid")
            expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
            page.locator("#query-text").fill(RULES["unpaid"].replace("10 minutes", "5 minutes"))
            expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
            page.get_by_role("button", name="Deploy…").click()
            page.get_by_role("dialog").get_by_role("button", name="Deploy", exact=True).click()
            expect(page.locator("#said")).to_contain_text("Version 4 is deployed", timeout=PATIENCE)
            expect(page.locator("#deployed")).to_contain_text(
                re.compile("Version 4 is deployed, and the job runs it"), timeout=PATIENCE
            )
            broker.send(source, order(1200, "Order", 4), order(1560, "Order", 5))
            until(page, "nestream.matches.some((match) => match.query === 'unpaid' && match.version === 4)")
            page.get_by_role("link", name="Health").click()
            expect(page.get_by_role("region", name="Job", exact=True)).to_contain_text("Rules version 4")
    finally:
        os.killpg(stream.pid, signal.SIGKILL)
        stream.wait()
