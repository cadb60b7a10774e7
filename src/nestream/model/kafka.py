"""The address of Kafka topics, `kafka://HOST:PORT/TOPIC?OPTION=VALUE`, and the settings of a client."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from threading import Thread
from types import ModuleType
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from nestream.model.extras import needs

SCHEME = "kafka://"
PORT = 9092
T = TypeVar("T")
PATIENCE = 20.0
"""How many seconds a broker has to answer."""
_NO_ID = "A" * 22
"""The id of a topic at brokers that have no ids."""
_FORM = "Write kafka://HOST:PORT/TOPIC"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s]+)(?::(\d{1,5}))?")
_OURS = {
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "isolation.level",
    "transactional.id",
}
"""The settings that exactly-once delivery depends on."""
_LOG = logging.getLogger("nestream.kafka")
_LOG.addHandler(logging.NullHandler())  # the client's log is for those who listen to it


@dataclass(frozen=True)
class KafkaPlace:
    """Brokers, topics, and options by name."""

    brokers: str
    topics: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The address without its options."""
        return f"{SCHEME}{self.brokers}/{','.join(self.topics)}"

    def settings(self) -> dict[str, Any]:
        """The settings of a client: the brokers, and the settings in the file that `config` names."""
        return {"bootstrap.servers": self.brokers, **self.configured()}

    def configured(self) -> dict[str, str]:
        """The settings in the file that `config` names, one `name=value` per line."""
        path = self.options.get("config")
        if path is None:
            return {}
        try:
            with open(path, encoding="utf-8") as file:
                lines = [line.strip() for line in file]
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ValueError(
                f"cannot read the settings in {path}: {why}. Correct config= in the address"
            ) from None
        found = {}
        for number, line in enumerate(lines, 1):
            if not line or line.startswith("#"):
                continue
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not name:
                raise ValueError(f"{path}, line {number}: expected a setting. Write name=value")
            if name in _OURS:
                raise ValueError(f"{path}, line {number}: nestream sets {name} itself. Remove the line")
            found[name] = value
        return found


def is_kafka(place: str) -> bool:
    """Whether a place is an address of Kafka."""
    return place.startswith(SCHEME)


def read_kafka(text: str, options: Collection[str]) -> KafkaPlace:
    """The parts of an address; raises a ValueError that says what to write."""
    rest, _, asked = text.removeprefix(SCHEME).partition("?")
    hosts, _, names = rest.partition("/")
    brokers = []
    for host in hosts.split(","):
        found = _BROKER.fullmatch(host)
        if found is None or int(found[2] or 0) > 65_535:
            wrong = f"{host!r} is not the address of a broker" if host else "it names no broker"
            raise ValueError(f"cannot use {text}: {wrong}. {_FORM}")
        brokers.append(f"{found[1]}:{found[2] or PORT}")
    topics = tuple(dict.fromkeys(names.split(",")))
    for topic in topics:
        if not _TOPIC.fullmatch(topic):
            wrong = f"{topic!r} is not the name of a topic" if topic else "it names no topic"
            raise ValueError(f"cannot use {text}: {wrong}. {_FORM}")
    return KafkaPlace(",".join(brokers), topics, _options(text, asked, options))


def _options(text: str, asked: str, known: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in parse_qsl(asked, keep_blank_values=True):
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"The options are {', '.join(known)}"
            raise ValueError(f"cannot use {text}: there is no option {name!r}. {hint}")
        if not value or name in found:
            wrong = "has no value" if not value else "is there twice"
            raise ValueError(f"cannot use {text}: {name} {wrong}. Write {name}=VALUE once")
        found[name] = value
    return found


def kafka_client() -> ModuleType:
    """The client library; raises a ValueError if it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise ValueError(needs("Kafka", "confluent-kafka", "kafka")) from None
    return confluent_kafka


def client_log() -> logging.Logger:
    """Where a client logs to: nowhere, unless the program listens to `nestream.kafka`."""
    return _LOG


def within(seconds: float, call: Callable[..., T], *given: Any, **options: Any) -> T:
    """The result of a call of the client; raises the client's error if it does not return in time.

    librdkafka may ignore the timeout that a call gives it (its issue 5456), so the call has a thread of its
    own. A thread that hangs is left behind: it does not keep the process alive.
    """
    found: Future[T] = Future()

    def run() -> None:
        try:
            found.set_result(call(*given, **options))
        except BaseException as problem:
            found.set_exception(problem)

    Thread(target=run, name="nestream kafka", daemon=True).start()
    if not wait([found], seconds).done:
        kafka = kafka_client()
        raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
    return found.result()


def consumer_of(place: KafkaPlace, **settings: Any) -> Any:
    """A client that reads committed messages and keeps its own position; raises a ValueError."""
    kafka = kafka_client()
    wanted = {
        "fetch.wait.max.ms": 100,
        **place.settings(),
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        **settings,
    }
    try:
        return kafka.Consumer(wanted, logger=client_log())
    except kafka.KafkaException as error:
        raise ValueError(
            f"cannot read from {place.brokers}: {kafka_reason(error)}. Correct config= in the address"
        ) from None


def topics_of(client: Any, place: KafkaPlace, patience: float | None = None) -> Any:
    """The topics of the brokers, by name; raises a ValueError if no broker answers.

    It asks for all topics, because a broker may create a topic that is asked for by name.
    """
    kafka = kafka_client()
    try:
        return client.list_topics(timeout=PATIENCE if patience is None else patience).topics
    except kafka.KafkaException as error:
        why = "" if _is_silence(error.args[0]) else f": {kafka_reason(error)}"
        raise ValueError(
            f"no Kafka broker answers at {place.brokers}{why}. "
            f"Start it, or correct the address{' or its config=' if 'config' in place.options else ''}"
        ) from None


def admin_of(place: KafkaPlace) -> Any:
    """A client that asks for topics and their settings, and creates them."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(place.settings(), logger=client_log())


def make_topic(place: KafkaPlace, partitions: int = -1, config: Mapping[str, str] | None = None) -> bool:
    """Create the topic of a place if it does not exist; what is not given is the brokers' default.

    Returns whether it was created here. Raises a ValueError if the brokers do not answer, and the client's
    error if they refuse.
    """
    kafka = kafka_client()
    from confluent_kafka.cimpl import NewTopic

    topic, admin = place.topics[0], admin_of(place)
    if topic in topics_of(admin, place):
        return False
    wanted = NewTopic(topic, partitions, replication_factor=-1, config=dict(config or {}))
    try:
        admin.create_topics([wanted])[topic].result(PATIENCE)
    except TimeoutError:
        raise ValueError(f"cannot create the topic {topic}: the brokers do not answer in time") from None
    except kafka.KafkaException as error:
        if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False  # another process has created it since
    return True


class TopicIds:
    """Asks the brokers for the ids of topics: a topic that was recreated has another one.

    An answer has the id of each topic that exists, which is empty if the brokers know no ids.
    """

    def __init__(self, place: KafkaPlace) -> None:
        self._place, self._admin = place, admin_of(place)
        self._asked: dict[str, Future[Any]] = {}
        self._problem: str | None = None
        """Why the brokers did not answer the last question, if they said so."""

    def now(self, patience: float = PATIENCE) -> dict[str, str]:
        """The ids as they are now; raises a ValueError if the brokers do not answer."""
        self.ask()
        wait(self._asked.values(), patience)
        found = self.answer()
        if found is None:
            where = self._place.brokers
            if self._problem is not None:
                raise ValueError(f"cannot ask the Kafka brokers at {where} for topics: {self._problem}")
            raise ValueError(f"no Kafka broker answers at {where} in time")
        return found

    def ask(self) -> None:
        """Ask without waiting."""
        topics = kafka_client().TopicCollection(list(self._place.topics))
        self._asked, self._problem = self._admin.describe_topics(topics), None

    def answer(self) -> dict[str, str] | None:
        """The answer to the last question, once; None if there is none yet, or the brokers failed."""
        if not self._asked or not all(one.done() for one in self._asked.values()):
            return None
        asked, self._asked = self._asked, {}
        kinds, found = kafka_client().KafkaError, {}
        for topic, one in asked.items():
            error = one.exception()
            if error is None:
                found[topic] = str(one.result().topic_id).replace(_NO_ID, "")
            elif not isinstance(error, kafka_client().KafkaException):
                raise error
            elif error.args[0].code() == kinds._UNSUPPORTED_FEATURE:
                found[topic] = ""
            elif error.args[0].code() != kinds.UNKNOWN_TOPIC_OR_PART:
                self._problem = kafka_reason(error)
                return None
        return found


def is_another(before: str | None, now: str | None) -> bool:
    """Whether a topic is another one than before, where both ids are known."""
    return bool(before and now and before != now)


def check_same_topics(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The ids that are known of topics; raises a ValueError if one is not the one that a checkpoint reads."""
    for topic, known in before.items():
        if is_another(known, now.get(topic)):
            raise ValueError(
                f"topic {topic} was recreated, so it is not the one that the checkpoint reads. "
                "Start over without the checkpoint"
            )
    return {topic: now.get(topic) or before.get(topic, "") for topic in {**before, **now}}


def check_topics(place: KafkaPlace, known: Collection[str]) -> None:
    """Raise a ValueError for a topic that does not exist: its name is probably misspelt."""
    for topic in place.topics:
        if topic not in known:
            close = difflib.get_close_matches(topic, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else "Create it, or correct the name"
            raise ValueError(f"there is no topic {topic} at {place.brokers}. {hint}")


def _is_silence(error: Any) -> bool:
    """Whether a client error only says that no broker has answered."""
    kinds = kafka_client().KafkaError
    return isinstance(error, kinds) and error.code() in (
        kinds._TRANSPORT,
        kinds._TIMED_OUT,
        kinds._ALL_BROKERS_DOWN,
    )


def kafka_reason(error: Any) -> str:
    """The message of a client error, on one line."""
    told = error.args[0] if getattr(error, "args", None) else error
    if _is_silence(told):
        return "no broker answers in time"
    text = told.str() if hasattr(told, "str") else str(told)
    return " ".join(text.split())
