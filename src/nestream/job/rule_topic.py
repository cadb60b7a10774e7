"""The rules of a Kafka topic: the key of a message names a rule, the value is its text, no value removes it.

The topic has one partition, so its messages have one order. The version of a rule is one more than the offset
of its message, which is the same for all readers and survives compaction. A topic that was recreated, which
its id shows, is read from its beginning, and its versions begin again.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from nestream.job.rules import Changes, Rule, RulesError, RuleSet, Version, rules_of
from nestream.model.kafka import (
    PATIENCE,
    TopicIds,
    admin_of,
    client_log,
    consumer_of,
    is_another,
    kafka_client,
    kafka_reason,
    make_topic,
    read_kafka,
    topics_of,
    within,
)

OPTIONS = ("config",)
SENT = "sent"
"""What the history says of a version that another program wrote."""
HEADER = "nestream"
"""The header that says what was done."""
AGAIN = 5.0
"""The seconds between two attempts to read a topic that cannot be read, and two looks at its id."""
BRIEFLY = 0.2
"""How many seconds a running job waits for brokers that were away."""
ANSWER = 2.0
"""How many seconds brokers that have just sent messages have to say that the topic is the same."""
_DEADLINE = PATIENCE + 5
"""The seconds after which a call that ignores its timeout is given up."""
_MOST = 1000
_KEPT_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@dataclass(frozen=True)
class _Message:
    offset: int
    time: str
    what: str
    name: str
    text: str | None


class RuleTopic:
    """The rules of a topic: for a job that reads them, and for a command that changes them."""

    def __init__(self, address: str) -> None:
        try:
            self._kafka = kafka_client()
            self._place = read_kafka(address, OPTIONS)
            self._place.settings()
        except ValueError as error:
            raise RulesError(str(error)) from None
        if len(self._place.topics) > 1:
            raise RulesError(f"cannot use {self._place.where}: rules are in one topic. Name one")
        self.where, self._topic = self._place.where, self._place.topics[0]
        self._consumer: Any = None
        self._tried: float | None = None
        self._away: str | None = None
        """Why no broker could be reached, if that happened."""
        self._failed: str | None = None
        """Why the topic could not be read, until it is read to its end."""
        self._ids: TopicIds | None = None
        self._id = ""
        """The id of the topic that is read; empty if the brokers have no ids."""
        self._asked = 0.0
        """When the brokers were last asked for it."""
        self._begin()

    def _begin(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._version, self._end = 0, 0
        self._at_end = False
        self._messages: list[_Message] = []

    # -- reading -------------------------------------------------------------------------------------------

    def read(self, known: RuleSet | None) -> RuleSet:
        """The current rules; a running job waits for brokers only the first time."""
        try:
            self._open()
            self._take()
            self._look()
            self._open()  # from the beginning, if the topic was recreated
        except ValueError as error:
            raise RulesError(str(error)) from None
        except self._kafka.KafkaException as error:
            raise RulesError(f"cannot read the rules in {self.where}: {kafka_reason(error)}") from None
        if not self._at_end:
            if known is None:
                raise RulesError(f"cannot read the rules in {self.where}: the brokers do not answer in time")
            if self._failed is not None:
                raise RulesError(self._failed)
            return known
        self._failed = None
        if known is not None and is_another(known.topic, self._id):
            known = None
        if known is not None and self._end < known.version:
            raise RulesError(
                f"{self.where} ends before version {known.version}: it was emptied or recreated\n"
                "  hint: start over with a new checkpoint, or name the topic that the rules were read from"
            )
        if not self._rules:
            raise RulesError(f"there is no rule in {self.where}\n  hint: nestream rules {self.where} add ...")
        self._check_rules()
        least = 0 if known is None else known.version  # compaction may have removed the last removal
        found = self._found(max(self._version, least))
        return found if known is None or self._id else replace(found, topic=known.topic)

    def _found(self, version: int) -> RuleSet:
        return RuleSet(version, dict(sorted(self._rules.items())), self._id or None)

    def _open(self) -> None:
        """Start reading. Brokers that are away are waited for the first time, and then retried."""
        if self._consumer is not None:
            return
        now, patience = clock.monotonic(), PATIENCE if self._tried is None else BRIEFLY
        if self._failed is not None and self._tried is not None and now < self._tried + AGAIN:
            raise ValueError(self._failed)
        self._tried = now
        consumer = self._client()
        try:
            found = topics_of(consumer, self._place, patience)
            if self._topic not in found:
                raise self._missing()
            if (count := len(found[self._topic].partitions)) > 1:
                raise ValueError(
                    f"the topic {self._topic} has {count} partitions, so its messages have no total order\n"
                    "  hint: use a topic with one partition for rules"
                )
            self._check_kept()
            ids = self._asking().now(max(patience, ANSWER))
            if self._topic not in ids:
                raise self._missing()
            self._id = ids[self._topic]
        except ValueError as error:
            consumer.close()
            self._failed = str(error)
            raise
        consumer.assign([self._kafka.TopicPartition(self._topic, 0, self._kafka.OFFSET_BEGINNING)])
        self._consumer, self._away, self._asked = consumer, None, clock.monotonic()
        self._wait_for_end(now + patience)

    def _wait_for_end(self, end: float) -> None:
        while self._consumer is not None and not self._at_end and clock.monotonic() < end:
            self._take(0.1)

    def _missing(self) -> ValueError:
        return ValueError(
            f"there is no topic {self._topic} at {self._place.brokers}\n"
            f"  hint: `nestream rules {self.where} add ...` creates it with its first rule"
        )

    def _client(self) -> Any:
        group = f"nestream-rules-{uuid4().hex[:8]}"
        return consumer_of(self._place, **{"group.id": group, "error_cb": self._told})

    def _told(self, error: Any) -> None:
        if error.code() == self._kafka.KafkaError._ALL_BROKERS_DOWN:
            self._away = f"no Kafka broker answers at {self._place.brokers}"

    def _take(self, wait: float = 0.0) -> None:
        """Take the messages that have arrived, if they are from the same topic as those before them."""
        taken: list[Any] = []
        while messages := self._consumer.consume(_MOST, timeout=wait):
            wait = 0.0
            taken += messages
        if taken and not self._is_same():
            return
        for message in taken:
            error = message.error()
            if error is None:
                self._note(_read(message))
                self._at_end = False
            elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                self._at_end, self._end = True, message.offset()
            elif not error.retriable():
                raise self._stopped(f"cannot read the rules in {self.where}: {kafka_reason(error)}")
        if self._away is not None and self._at_end:
            self._look_again()

    def _look(self) -> None:
        """Notice a topic that is gone or was recreated although it has sent nothing; this never waits."""
        if self._consumer is None:
            return
        now, asking = clock.monotonic(), self._asking()
        if now >= self._asked + AGAIN:
            self._asked = now
            asking.ask()
        if (found := asking.answer()) is not None:
            self._compare(found)

    def _is_same(self) -> bool:
        """Whether the topic is the one that was opened; otherwise it has to be opened again."""
        try:
            found = self._asking().now(ANSWER)
        except ValueError as error:
            raise self._stopped(str(error)) from None
        return self._compare(found)

    def _compare(self, ids: Mapping[str, str]) -> bool:
        """Whether the topic still has its id; one that is gone raises."""
        if self._topic not in ids:
            raise self._stopped(str(self._missing()))
        if is_another(self._id, ids[self._topic]):
            self._close()
        return self._consumer is not None

    def _asking(self) -> TopicIds:
        if self._ids is None:
            self._ids = TopicIds(self._place)
        return self._ids

    def _stopped(self, problem: str) -> ValueError:
        """Stop reading for a reason; the topic is opened again later."""
        self._close()
        self._failed, self._tried = problem, clock.monotonic()
        return ValueError(problem)

    def _close(self) -> None:
        """Forget what was read."""
        self._consumer.close()
        self._consumer = None
        self._begin()

    def _look_again(self) -> None:
        """Raise while no broker answers; the client reconnects by itself."""
        assert self._tried is not None
        if clock.monotonic() >= self._tried + AGAIN:
            self._tried = clock.monotonic()
            self._away = None
            topics_of(self._consumer, self._place, BRIEFLY)
        elif self._away is not None:
            raise ValueError(self._away)

    def _note(self, message: _Message) -> None:
        self._messages.append(message)
        self._version = message.offset + 1
        if message.text is None:
            self._rules.pop(message.name, None)
        else:
            self._rules[message.name] = Rule(message.text, self._version)

    # -- what the topic keeps ------------------------------------------------------------------------------

    def _configured(self) -> dict[str, str]:
        """How the topic keeps messages; empty if that cannot be known."""
        from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it does not say what it exports
            ConfigResource,
            ResourceType,
        )

        admin = admin_of(self._place)  # it must live until it has answered
        asked = ConfigResource(ResourceType.TOPIC, self._topic)
        try:
            found = admin.describe_configs([asked])[asked].result(PATIENCE)
        except (self._kafka.KafkaException, TimeoutError):
            return {}
        return {name: found[name].value for name in _KEPT_FOR_EVER if name in found}

    def _check_kept(self) -> None:
        """Raise if the topic deletes messages over time: rules would be gone at the next start."""
        known = self._configured()
        if not known or "compact" in known["cleanup.policy"]:
            return
        limits = [name for name in ("retention.ms", "retention.bytes") if known.get(name, "-1") != "-1"]
        if limits:
            raise ValueError(
                f"the topic {self._topic} deletes messages, including rules: "
                f"{limits[0]} is {known[limits[0]]}\n"
                "  hint: set cleanup.policy=compact of the topic, or retention.ms=-1 to keep its history too"
            )

    def _check_rules(self) -> None:
        """Raise if no message can be a rule: the topic holds something else, such as events."""
        if self._rules and not any(_may_be_a_rule(rule.text) for rule in self._rules.values()):
            raise RulesError(
                f"{self.where} does not look like a topic of rules: none of its messages is one\n"
                "  hint: the key of a message is the name of a rule, and its value is the text of a query"
            )

    @property
    def forgets(self) -> bool:
        """Whether earlier versions may be gone, because the topic is compacted or was truncated."""
        policy = self._configured().get("cleanup.policy", "")
        place = self._kafka.TopicPartition(self._topic, 0)
        try:
            low, _ = self._consumer.get_watermark_offsets(place, timeout=PATIENCE)
        except self._kafka.KafkaException as error:
            raise RulesError(f"cannot read the rules in {self.where}: {kafka_reason(error)}") from None
        return "compact" in policy or low > 0

    def history(self) -> list[Version]:
        """The versions that the topic still has, oldest first."""
        try:
            if self._consumer is not None:
                self._is_same()
            self.read(None)
        except ValueError as error:
            raise RulesError(str(error)) from None
        except self._kafka.KafkaException as error:
            raise RulesError(f"cannot read the rules in {self.where}: {kafka_reason(error)}") from None
        except RulesError:
            if self._consumer is None or not self._at_end:
                raise
        return [Version(m.offset + 1, m.time, m.what, {m.name: m.text}) for m in self._messages]

    def at(self, version: int) -> RuleSet:
        """The rules of a version."""
        known = self.history()
        if self.forgets:
            raise RulesError(
                f"{self.where} does not keep all versions: it is compacted, or old messages were deleted\n"
                "  hint: replace the rules with their earlier text. A topic with cleanup.policy=delete and "
                "retention.ms=-1 keeps all versions"
            )
        return rules_of(known, version, self.where)

    # -- changing ------------------------------------------------------------------------------------------

    def change(
        self,
        what: str,
        changes: Callable[[RuleSet], Changes],
        check: Callable[[Mapping[str, str], Changes], None],
    ) -> RuleSet:
        """Change the rules atomically; their current state decides what has to change."""
        self._make_topic()
        self.history()
        self._check_rules()
        known = self._found(self._version)
        wanted = {name: text for name, text in changes(known).items() if known.texts.get(name) != text}
        if not wanted:
            return known
        new = known.changed(wanted)
        if not new.rules:
            raise RulesError("a job needs at least one rule, and this is the last")
        check(new.texts, wanted)
        self._send(what, wanted)
        self._at_end = False
        try:
            self._wait_for_end(clock.monotonic() + PATIENCE)
            return self.read(None)
        except (ValueError, RulesError, self._kafka.KafkaException) as error:
            is_ours = isinstance(error, ValueError | RulesError)
            why = str(error).splitlines()[0] if is_ours else kafka_reason(error)
            raise RulesError(
                f"the change was sent to {self.where}, but it is not known whether it is there: {why}\n"
                f"  hint: see `nestream rules {self.where} list`"
            ) from None

    def _make_topic(self) -> None:
        """Create the topic, keeping all versions, if it does not exist."""
        try:
            make_topic(self._place, 1, _KEPT_FOR_EVER)
            self._failed = self._tried = None  # it is opened at once
        except ValueError as error:
            raise RulesError(str(error)) from None
        except self._kafka.KafkaException as error:
            raise RulesError(f"cannot create the topic {self._topic}: {kafka_reason(error)}") from None

    def _send(self, what: str, wanted: Changes) -> None:
        """Send the messages; several in one transaction, so that a job sees all of them or none."""
        failed: list[Any] = []
        settings = {**self._place.settings(), "enable.idempotence": True}
        is_one = len(wanted) == 1
        if not is_one:
            settings["transactional.id"] = f"nestream-rules-{uuid4().hex[:16]}"
        try:
            producer = self._kafka.Producer(settings, logger=client_log())
            if not is_one:
                within(_DEADLINE, producer.init_transactions, PATIENCE)
                within(_DEADLINE, producer.begin_transaction)
            for name, text in wanted.items():
                producer.produce(
                    self._topic,
                    None if text is None else text.encode(),
                    name.encode(),
                    partition=0,
                    headers=[(HEADER, what.encode())],
                    on_delivery=lambda error, _: failed.append(error) if error is not None else None,
                )
            if not is_one:
                within(_DEADLINE, producer.commit_transaction, PATIENCE)
            elif producer.flush(PATIENCE) and not failed:
                raise RulesError(f"cannot write to {self.where}: the brokers do not answer in time")
        except self._kafka.KafkaException as error:
            failed.append(error)
        if failed:
            raise RulesError(f"cannot write to {self.where}: {kafka_reason(failed[0])}")


def _may_be_a_rule(text: str) -> bool:
    """Whether a text may be a query: it is not empty, and neither JSON nor binary, such as Avro."""
    is_binary = any(character < " " and character not in "\n\r\t\f" for character in text)
    return bool(text.strip()) and not text.lstrip().startswith(("{", "[")) and not is_binary


def _read(message: Any) -> _Message:
    """A message as a change of a rule; one that is not a rule becomes a refused one, so that it is shown."""
    offset, value = message.offset(), message.value()
    _, moment = message.timestamp()
    headers = dict(message.headers() or ())
    name = f"(message without a key at offset {offset})"
    text = None if value is None else value.decode(errors="backslashreplace")
    if message.key() is not None:
        name = message.key().decode(errors="backslashreplace")
    elif text is not None:
        text = ""
    time = datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds")
    return _Message(offset, time, (headers.get(HEADER) or SENT.encode()).decode(errors="replace"), name, text)
