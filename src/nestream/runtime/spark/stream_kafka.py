"""Kafka topics as source and sink of a stream on Spark.

Spark's connector tracks the offsets and passes messages to the workers, which read them like files: as JSON
lines, or as rows if the messages are Avro. Matches wait in files of the checkpoint. When their micro-batch is
committed, the driver sends them in a transaction with the number of the micro-batch, so each is in the topic
once.
"""

from __future__ import annotations

import json
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from nestream.model.formats import SUFFIXES, Format
from nestream.model.kafka import (
    KafkaPlace,
    TopicIds,
    admin_of,
    check_same_topics,
    check_topics,
    read_kafka,
    topics_of,
)
from nestream.model.schema import EventError
from nestream.runtime.spark.collecting import collected
from nestream.runtime.spark.stream_columns import LookedAt, common_columns
from nestream.runtime.spark.stream_commit import identity_of
from nestream.runtime.spark.stream_pack import Batches
from nestream.runtime.spark.stream_place import Place
from nestream.runtime.spark.stream_sink import BatchFiles, Names
from nestream.runtime.spark.stream_source import Files
from nestream.sink import SinkError
from nestream.sink.kafka import Transactions, lines_of
from nestream.source import DeadLetter, SourceError, read_events
from nestream.source.avro_messages import AvroDecoder, with_added
from nestream.source.json_values import not_json
from nestream.source.kafka_attributes import ATTRIBUTES, Beside, added_to, attributes_of
from nestream.source.place import is_avro

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
"""The version of Spark's connector that is tested."""
TOPICS_FILE = "nestream-topics.json"
"""The file of the checkpoint with the ids of the topics."""
SOURCE_OPTIONS = (*ATTRIBUTES, "headers", "start", "config")
SINK_OPTIONS = ("config",)
MOST = 1_000_000
"""The maximum number of messages in a micro-batch."""
SAMPLE = 10_000
"""The number of messages that decide the columns."""
_NUMBER = re.compile(r"-(\d{8})(?:-\d{5})?\.json$")


@dataclass(frozen=True)
class Topics(Files):
    """The messages of topics, each a JSON object or an Avro record; it is sent to the workers."""

    kafka: KafkaPlace
    decoder: AvroDecoder | None

    @classmethod
    def at(
        cls, address: str, time: str, type: str, format: str | None = None, schemas: Sequence[str] = ()
    ) -> Topics:
        """The topics of an address; messages are JSON, or Avro with these schemas."""
        try:
            place = read_kafka(address, SOURCE_OPTIONS)
            attributes_of(place)
            stored = None if format is None else SUFFIXES[f".{format}"]
            decoder = AvroDecoder.of(schemas) if is_avro(address, stored, schemas) else None
        except (ValueError, SourceError) as problem:
            raise EventError(str(problem)) from None
        if place.options.get("start", "beginning") not in ("beginning", "end"):
            raise EventError(f"cannot use {place.where}: write start=beginning or start=end")
        read_as: Format = "jsonl" if decoder is None else "parquet"
        return cls(read_as, time, type, suffixes=False, is_local=True, kafka=place, decoder=decoder)

    def listed(self, spark: SparkSession, source: str, most: int | None) -> DataFrame:
        """The messages as they arrive."""
        start = {"end": "latest"}.get(self.kafka.options.get("start", ""), "earliest")
        reader = self._reading_by(spark.readStream).option("startingOffsets", start)
        return _loaded(reader.option("maxOffsetsPerTrigger", MOST))

    def _reading_by(self, reader: Any) -> Any:
        """A Spark reader, for a stream or a batch, with the options that say where messages come from."""
        reader = reader.format("kafka").option("kafka.bootstrap.servers", self.kafka.brokers)
        reader = reader.option("subscribe", ",".join(self.kafka.topics)).option("includeHeaders", "true")
        reader = reader.option("kafka.isolation.level", "read_committed")
        reader = reader.option("kafka.allow.auto.create.topics", "false")
        for name, value in self.kafka.configured().items():
            reader = reader.option(f"kafka.{name}", value)
        return reader

    def columns(self, spark: SparkSession, source: str) -> StructType:
        """The columns of the first messages."""
        messages = _loaded(self._reading_by(spark.read))
        self._check()
        rows = collected(messages.limit(SAMPLE)).combine_chunks()
        if not rows.num_rows:
            raise EventError(
                f"there are no events in {self.kafka.where} yet, so the types of their columns are unknown\n"
                "  hint: send a first event"
            )
        for messages, place in self._opened(rows.to_batches()):
            try:
                reader = read_events(place, self.time, self.type, format=self.format)
            except SourceError as problem:
                raise EventError(str(problem).replace(place, self.kafka.where)) from None
            found = LookedAt(
                self.kafka.where,
                dict(zip(reader.schema.names, reader.schema.types, strict=True)),
                reader.undecided,
                self._first_problem(reader.examples, messages),
            )
            schema = common_columns([found], self.kafka.where, self.format, self.time)
            return from_arrow_schema(schema, prefer_timestamp_ntz=True)
        raise AssertionError("there are rows")

    def _first_problem(self, letters: Sequence[DeadLetter], messages: Any) -> str | None:
        """What is wrong with the first message that is not an event."""
        told = (self.told(letter, messages) for letter in letters)
        return next((one[0] for one in told if one is not None), None)

    def check_same(self, checkpoint: Place) -> None:
        """Raise if a topic was recreated since the checkpoint began, which Spark's offsets do not show.

        The ids are kept, so this comes last before the stream starts to read.
        """
        if not self._has_client():
            return
        kept = checkpoint.read(TOPICS_FILE)
        known: dict[str, str] = {} if kept is None else json.loads(kept)  # earlier versions kept none
        try:
            now = TopicIds(self.kafka).now()
            same = check_same_topics(known, now)
        except ValueError as problem:
            raise EventError(str(problem)) from None
        if same != known:
            checkpoint.make()
            checkpoint.write(TOPICS_FILE, json.dumps(same).encode())

    def _has_client(self) -> bool:
        """Whether the driver can ask the brokers itself: `config` has settings of the Java client."""
        return "config" not in self.kafka.options and find_spec("confluent_kafka") is not None

    def _check(self) -> None:
        """Check that the topics exist, if possible: Spark takes minutes to give up."""
        if not self._has_client():
            return
        try:
            check_topics(self.kafka, topics_of(admin_of(self.kafka), self.kafka))
        except ValueError as problem:
            raise EventError(str(problem)) from None

    def _opened(self, batches: Batches) -> Iterator[tuple[Any, str]]:
        """The messages of each batch, with a file that has a line or row for each of them."""
        for batch in batches:
            rows, (names, headers) = batch.to_pylist(), attributes_of(self.kafka)
            with tempfile.NamedTemporaryFile() as file:
                if self.decoder is None:
                    messages: _Messages = _Lines(rows, names, headers)
                else:
                    messages = _Records(rows, names, headers, self.decoder)
                messages.write(file)
                file.flush()
                yield messages, file.name

    def told(self, letter: DeadLetter, path: Any) -> tuple[str, str] | None:
        """Why a message is not an event, and its text."""
        assert isinstance(path, _Messages)
        return path.told(letter)


class _Messages(ABC):
    """The messages of a batch, written to a file that can be read as events."""

    first: int
    """The number of the first message in that file."""

    def __init__(self, rows: list[dict[str, Any]], names: dict[str, str], headers: tuple[str, ...]) -> None:
        self._rows, self._names, self._headers = rows, names, headers
        self._problems: dict[int, str] = {}

    @abstractmethod
    def write(self, file: IO[bytes]) -> None:
        """Write all messages."""

    def _added(self, at: int, row: dict[str, Any]) -> dict[str, str | None]:
        """What a message adds to its value: key, headers, timestamp."""
        if not self._names and not self._headers:
            return {}
        moment = row["timestamp"]
        headers = [(one["key"], one["value"]) for one in row["headers"] or ()]
        beside = Beside(
            row["key"], None if moment is None else round(moment.timestamp() * 1000), row["topic"], headers
        )
        added, problem = added_to(beside, self._names, self._headers)
        if problem is not None:
            self._problems[at] = problem
        return added

    def told(self, letter: DeadLetter) -> tuple[str, str] | None:
        """Why a message is not an event, and its text; None for a line that is not a message."""
        at = letter.line - self.first
        if at < 0:
            return None
        row = self._rows[at]
        where = f"topic {row['topic']}, partition {row['partition']}, offset {row['offset']:,}"
        raw = (row["value"] or b"").decode(errors="backslashreplace")
        return f"{where}: {self._problems.get(at, letter.reason)}", raw


class _Lines(_Messages):
    """JSON messages as lines, after a first line that is not a message.

    The first line of a file decides its format, and a message may contain anything.
    """

    first = 2

    def write(self, file: IO[bytes]) -> None:
        """Write a line for each message."""
        lines = [b"{}", *(self._line(at, row) for at, row in enumerate(self._rows))]
        file.write(b"\n".join(lines) + b"\n")

    def _line(self, at: int, row: dict[str, Any]) -> bytes:
        value: bytes = (row["value"] or b"").replace(b"\n", b" ").replace(b"\r", b" ")
        if (problem := not_json(value)) is not None:
            self._problems[at] = problem
            return b"null"
        added = self._added(at, row)
        if at in self._problems:
            return b"null"
        if not added:
            return value
        try:
            event = json.loads(value)
        except ValueError:
            return value  # refused by the reader
        if not isinstance(event, dict):
            return value
        return json.dumps({**event, **added}).encode()


class _Records(_Messages):
    """Avro messages as rows of Parquet; one that cannot be read is NULL, and so has no time."""

    first = 1

    def __init__(
        self,
        rows: list[dict[str, Any]],
        names: dict[str, str],
        headers: tuple[str, ...],
        decoder: AvroDecoder,
    ) -> None:
        super().__init__(rows, names, headers)
        self._decoder = decoder

    def write(self, file: IO[bytes]) -> None:
        """Write a row for each message."""
        added = [self._added(at, row) for at, row in enumerate(self._rows)]
        is_wrong = set(self._problems)
        values = [None if at in is_wrong else row["value"] for at, row in enumerate(self._rows)]
        instants = [self._names["timestamp"]] if "timestamp" in self._names else []
        table, problems = self._decoder.table(values)
        table = with_added(table, [{} if at in problems else more for at, more in enumerate(added)], instants)
        self._problems = problems | self._problems
        pq.write_table(table, file, compression="none")


def _loaded(reader: Any) -> DataFrame:
    try:
        found: DataFrame = reader.load()
        return found
    except AnalysisException as problem:
        if "kafka" not in str(problem).lower() or "data source" not in str(problem).lower():
            raise
        raise EventError(
            "this Spark has no connector to Kafka\n"
            f"  hint: let Spark fetch it, --packages {CONNECTOR}, "
            "or name its jars, --jars PATH,PATH"
        ) from None


@dataclass(frozen=True)
class BatchTopic(BatchFiles):
    """A topic: the files of a micro-batch stay in the checkpoint until they are sent.

    The transactional identifier is that of the checkpoint, so that no other stream has it.
    """

    address: str
    identifier: str

    @classmethod
    def at(cls, address: str, checkpoint: str, prefix: str, schema: pa.Schema) -> BatchTopic:
        """The topic of an address, created if it does not exist."""
        kept = Place(checkpoint)
        identifier = f"nestream-{identity_of(kept)}-{prefix}"
        _transactions(address, identifier)
        return cls(kept / f"nestream-{prefix}", prefix, "json", schema, address, identifier)

    def publish(self, names: Names, *, again: bool = False) -> None:
        """Send the rows of a committed micro-batch, unless that was done; then their files are gone."""
        there = set(self.place.names()) if names else set()
        waiting = [hidden for hidden, _ in names if hidden in there]
        if len(waiting) < len(names) and not again:
            self._check_sent(names, there)
        if not waiting:
            return
        lines = [line for one in waiting for line in lines_of((self.place.read(one) or b"").decode())]
        try:
            _transactions(self.address, self.identifier).publish(_number(names), lines)
        except SinkError as problem:
            raise EventError(str(problem)) from None
        for one in waiting:
            self.place.remove(one)

    def _check_sent(self, names: Names, there: set[str]) -> None:
        """Raise if rows are neither here nor in the topic."""
        try:
            if _transactions(self.address, self.identifier).has(_number(names)):
                return
        except SinkError as problem:
            raise EventError(str(problem)) from None
        missing = next(hidden for hidden, _ in names if hidden not in there)
        raise EventError(
            f"the file {self.place}/{missing} is missing, and its rows were not sent to {self.address}\n"
            "  hint: restore the checkpoint from a copy, or start over with a new checkpoint and a new topic"
        )


def _number(names: Names) -> int:
    """The number of the micro-batch of some files."""
    found = _NUMBER.search(names[0][1])
    assert found is not None
    return int(found[1])


@lru_cache(maxsize=8)
def _transactions(address: str, identifier: str) -> Transactions:
    """The client of the driver."""
    try:
        place = read_kafka(address, SINK_OPTIONS)
        if len(place.topics) > 1:
            raise ValueError(f"cannot use {place.where}: matches go to one topic. Name one")
        return Transactions(place, identifier)
    except (ValueError, SinkError) as problem:
        raise EventError(str(problem)) from None
