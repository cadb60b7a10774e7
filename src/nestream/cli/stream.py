"""`nestream stream`: the matches of queries over events that keep coming, in this process or on Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from nestream import Queries, Query, QueryError
from nestream.cli.arguments import (
    DialectOption,
    InputFormatOption,
    RulesArgument,
    SetOption,
    StrategyOption,
    TimeOption,
    TypeOption,
    queries_of,
    query_text,
)
from nestream.cli.live_rules import Binder
from nestream.cli.progress import ProgressFile, progress_path
from nestream.cli.stream_job import StreamJob
from nestream.cli.stream_local import LocalStream, stream_here
from nestream.cli.stream_options import (
    CheckpointOption,
    FilesOption,
    FlushOption,
    FromOption,
    FutureOption,
    JarsOption,
    JobOption,
    LateOption,
    LocalOption,
    MasterOption,
    MetricsOption,
    OnceOption,
    PackagesOption,
    PartitionsOption,
    ProgressOption,
    SchemaOption,
    StreamFormat,
    StreamFormatOption,
    ToOption,
    WatermarkOption,
)
from nestream.cli.stream_spark import goes_on, stream_on_spark
from nestream.cli.types import TypesOption, warn_of_undeclared, with_types
from nestream.job import is_rules, open_rules
from nestream.model.lengths import length_of_time
from nestream.query import Dialect
from nestream.sink.place import is_topic, share_a_topic
from nestream.source import is_named_by
from nestream.source.place import is_avro


def stream(
    query: RulesArgument,
    source: FromOption = None,
    sink: ToOption = None,
    local: LocalOption = False,
    checkpoint: CheckpointOption = None,
    late: LateOption = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    watermark: WatermarkOption = None,
    once: OnceOption = False,
    flush: FlushOption = False,
    future: FutureOption = None,
    files: FilesOption = None,
    partitions: PartitionsOption = None,
    progress: ProgressOption = None,
    metrics: MetricsOption = None,
    job: JobOption = None,
    format: StreamFormatOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    jars: JarsOption = None,
    strategy: StrategyOption = "auto",
    types: TypesOption = None,
    dialect: DialectOption = None,
    set: SetOption = None,
    input_format: InputFormatOption = None,
    schema: SchemaOption = None,
) -> None:
    """Match events as they arrive: in this process with --local, or on Spark.

    Stop with Ctrl-C; the same command continues from the checkpoint.
    Every match is written exactly once, if events and matches are in files or in Kafka.
    Rules in a folder or a topic may change while the stream runs: see nestream rules.
    """
    if strategy == "reference":
        raise typer.BadParameter("the reference evaluator does not run on streams.", param_hint="--strategy")
    read_as = None if input_format is None else input_format.stored
    described = StreamJob.of(
        job,
        query,
        runtime="embedded" if local else "spark",
        live_rules=is_rules(query) or None,
        events=source,
        time=time,
        type=type,
        format=read_as,
        schemas=[_absolute(one) for one in schema] if schema else None,
    )
    sink, late = described.place(sink, "matches"), described.place(late, "late")
    _apart(source or "-", query, {"--to": sink, "--late": late, "--checkpoint": checkpoint})
    if sink is not None and is_topic(sink):
        _check_topic(format, checkpoint)
    if source is not None and is_topic(source):
        is_avro(source, read_as, schema or ())  # a wrong format is refused before Spark starts
        if files is not None:
            raise typer.BadParameter("it applies to files, not to topics.", param_hint="--files")
    log = None if progress is None else ProgressFile(progress_path(progress))
    if local:
        for_spark = {"--master": master, "--files": files, "--partitions": partitions}
        for_spark |= {"--packages": packages, "--jars": jars}
        for option, given in for_spark.items():
            if given is not None:
                raise typer.BadParameter("it applies to Spark; leave it out with --local.", param_hint=option)
        wanted = LocalStream(
            source=source or _piped(),
            sink=sink or "-",
            checkpoint=checkpoint,
            late=late,
            time=time,
            type=type,
            lateness=watermark or 0,
            once=once,
            flush=flush,
            future=future,
            format=format,
            input_format=read_as,
            schemas=tuple(schema or ()),
            log=log,
            metrics=metrics,
            strategy=strategy,
            job=described,
        )
        noted = wanted.kept() is not None
        stream_here(_chosen(query, dialect, set, types, wanted.goes_on, noted=noted), query, wanted)
        return
    if watermark == "0":  # it needs no unit
        watermark = "0 seconds"
    for option, length in (("--watermark", watermark), ("--future", future)):
        _check_duration(option, length)
    if format is StreamFormat.TEXT:
        raise typer.BadParameter("text needs --local.", param_hint="--format")
    source, sink = _folder(source, "--from"), _folder(sink, "--to")
    stream_on_spark(
        _chosen(query, dialect, set, types, goes_on(checkpoint, sink)),
        source,
        sink,
        checkpoint=checkpoint,
        late=None if late is None else _folder(late, "--late"),
        time=time,
        type=type,
        watermark=watermark or "10 seconds",
        once=once,
        flush=flush,
        future=future,
        files=files,
        partitions=partitions,
        log=log,
        metrics=metrics,
        job=described,
        strategy=strategy,
        output=(format or StreamFormat.PARQUET).value,
        master=master or "local[*]",
        jars={
            name: given
            for name, given in (("spark.jars.packages", packages), ("spark.jars", jars))
            if given is not None
        },
        format=None if input_format is None else input_format.value,
        schemas=tuple(schema or ()),
    )


def _chosen(
    query: str,
    dialect: Dialect | None,
    given: list[str] | None,
    types: str | None,
    is_begun: bool,
    *,
    noted: bool = True,
) -> Query | Binder:
    """The query, ready for a stream, or the binder of rules.

    At the first start, wrong rules are an error; a stream that continues refuses them and runs. With `noted`,
    the rules that it begins with are recorded.
    """
    if not is_rules(query):
        parsed = with_types(query_text(query).parse(dialect, given), types)
        _check(parsed)
        return parsed
    binder = Binder(open_rules(query, noted=noted), dialect, given, types)
    if not is_begun:
        first = (
            binder(binder.rules.read(None).texts)
            if is_topic(query)
            else with_types(queries_of(query, dialect, given), types)
        )
        _check(first)
        binder.first = first
    return binder


def _check(parsed: Query | Queries) -> None:
    """Refuse what cannot run on a stream."""
    warn_of_undeclared(parsed)
    try:
        parsed.stream()
    except QueryError:
        raise
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint="QUERY") from None


def _check_duration(option: str, length: str | None) -> None:
    """Refuse an invalid duration before Spark is started."""
    if length is None:
        return
    try:
        length_of_time(length, option.removeprefix("--"))
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint=option) from None


def _absolute(schema: str) -> str:
    """A schema, `FILE` or `ID=FILE`, with an absolute path."""
    number, equals, path = schema.rpartition("=")
    return f"{number}{equals}{Path(path).absolute()}"


def _check_topic(format: StreamFormat | None, checkpoint: str | None) -> None:
    """Refuse options that cannot be combined with matches in Kafka."""
    if checkpoint is None:
        raise typer.BadParameter(
            "a stream to Kafka needs a folder for its checkpoint; add --checkpoint DIR.",
            param_hint="--checkpoint",
        )
    if format not in (None, StreamFormat.JSON):
        raise typer.BadParameter("messages to Kafka are json.", param_hint="--format")


def _apart(source: str, rules: str, written: dict[str, str | None]) -> None:
    """Refuse to write where events or rules are read: what is written would be read as events or rules."""
    for option, place in written.items():
        problem = None
        if place is None:
            continue
        if share_a_topic(source, place):
            problem = "is a topic of the events, where messages are read as events"
        elif share_a_topic(rules, place):
            problem = "is the topic of the rules, where messages are read as rules"
        elif "://" in place:
            continue
        elif Path(source).is_dir() and Path(place).resolve().is_relative_to(Path(source).resolve()):
            problem = "is in the folder of the events, where files are read as events"
        elif is_named_by(source, place):
            problem = "is named by the pattern of the events, where files are read as events"
        if problem is not None:
            raise typer.BadParameter(f"{place!r} {problem}.", param_hint=option)


def _piped() -> str:
    """Standard input, if a program and not a person writes to it."""
    if sys.stdin.isatty():
        raise typer.BadParameter(
            "name a file, a folder or an address, or pipe events in: tail -f events.jsonl | nestream ...",
            param_hint="--from",
        )
    return "-"


def _folder(place: str | None, option: str) -> str:
    """A place on Spark: a folder or topics."""
    if place is None:
        raise typer.BadParameter(
            "name a folder, or add --local to use standard input and output.", param_hint=option
        )
    if is_topic(place):
        return place
    is_other = place == "-" or "://" in place or (Path(place).exists() and not Path(place).is_dir())
    if is_other:
        raise typer.BadParameter(
            f"{place!r} is not a folder or a topic; add --local to read and write files, pipes and sockets.",
            param_hint=option,
        )
    return place
