"""`nestream stream --local`: runs the stream in this process, from a source to a sink."""

from __future__ import annotations

import gc
import signal
import warnings
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from nestream import Queries, Query
from nestream.cli.failures import fail_if_all_malformed
from nestream.cli.live_rules import Binder, RulesProblem, change_lines
from nestream.cli.match_text import MatchText
from nestream.cli.progress import ProgressFile
from nestream.cli.stream_columns import UnseenNotes, refuse_unknown
from nestream.cli.stream_job import StreamJob
from nestream.cli.stream_metrics import served
from nestream.cli.stream_options import StreamFormat
from nestream.cli.stream_status import (
    StatusLine,
    events_left_out,
    interruption,
    live,
    note_pending,
    summary,
)
from nestream.cli.terminal import is_terminal, note
from nestream.job import Change, Checkpoint, Job, LiveRules, Progress, State, Unseen
from nestream.model.formats import SUFFIXES
from nestream.model.lengths import LengthError, length_of_time
from nestream.sink import Sink, SinkError, first_column, open_sink
from nestream.sink.place import is_folder
from nestream.source import RewrittenWarning, names_no_files, open_source, refuse_missing


@dataclass(frozen=True)
class LocalStream:
    """Where events come from, where matches go, and how."""

    source: str
    sink: str
    checkpoint: str | None
    late: str | None
    time: str
    type: str
    lateness: str | int
    once: bool
    flush: bool
    future: str | None
    format: StreamFormat | None
    input_format: str | None
    schemas: tuple[str, ...]
    log: ProgressFile | None
    metrics: str | None
    strategy: str = "auto"
    job: StreamJob = field(default_factory=StreamJob)

    def kept(self) -> str | None:
        """The folder of the checkpoint; None if none is named and nothing can be undone."""
        if self.checkpoint is not None or self.sink == "-" or "://" in self.sink:
            return self.checkpoint
        return str(Path(self.sink) / "_checkpoint") if is_folder(self.sink) else f"{self.sink}.checkpoint"

    @property
    def goes_on(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        kept = self.kept()
        return kept is not None and Checkpoint(kept).path.exists()


def stream_here(query: Query | Binder, name: str, wanted: LocalStream) -> None:
    """Run a query, or rules, as a stream until its source ends or somebody stops it.

    The binder binds rules; `name` is the name of the query, or the place of the rules.
    """
    allowed = wanted.lateness if isinstance(wanted.lateness, str) and not wanted.lateness.isdigit() else None
    with wanted.job.running(matches=wanted.sink, late=wanted.late, watermark=allowed, spark=None):
        _stream_here(query, name, wanted)


def _stream_here(query: Query | Binder, name: str, wanted: LocalStream) -> None:
    warnings.simplefilter("always", RewrittenWarning)  # Python would show only the first
    status = StatusLine()
    told = _Told(wanted, status, names=not isinstance(query, Query))
    lateness: Any = int(wanted.lateness) if str(wanted.lateness).isdigit() else wanted.lateness
    try:
        length_of_time(lateness, "lateness")
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint="--watermark") from None

    def start(parsed: Query | Queries, **handlers: Any) -> Any:
        return parsed.stream(
            time=wanted.time, type=wanted.type, lateness=lateness, strategy=wanted.strategy, **handlers
        )

    kept = wanted.kept()
    checkpoint = None if kept is None else Checkpoint(kept)
    place = (wanted.source, wanted.time, wanted.type, wanted.input_format)
    declared: dict[str, pa.DataType] = {}
    if not wanted.goes_on:
        ends = wanted.once or wanted.flush
        if ends or Path(wanted.source).is_file():
            refuse_missing(*place, grows=not ends)
        first = query if isinstance(query, Query) else query.first
        refuse_unknown(first, *place, known=declared)

    def fits(parsed: Queries, names: Collection[str]) -> None:
        refuse_unknown(parsed, *place, known=unseen.columns, names=names)

    rules: LiveRules | None = None
    if isinstance(query, Query):
        begin, moments, limit = partial(start, query), {*query.attributes_read}, query.plan.limit
        unseen = Unseen(lambda: query, wanted.time, wanted.type)
    else:
        rules = running = LiveRules(query.rules, query, start, fits)
        begin, moments, limit = partial(rules.start), query.attributes, None
        unseen = Unseen(lambda: running.parsed, wanted.time, wanted.type)
    unseen.columns |= declared
    try:
        job = Job(
            begin,
            open_source(
                wanted.source,
                wanted.time,
                wanted.type,
                format=wanted.input_format,
                schemas=wanted.schemas,
                once=wanted.once or wanted.flush,
                whole=wanted.flush,
                moments=moments,
            ),
            _Above(_sink(wanted, Path(name).stem if Path(name).exists() else "query"), status),
            aside=None if wanted.late is None else open_sink(wanted.late, "jsonl", encode=first_column),
            checkpoint=checkpoint,
            time=wanted.time,
            lateness=lateness,
            flush=wanted.flush,
            future=wanted.future,
            limit=limit,
            on_tick=told,
            on_batch=told.of_batch,
            rules=rules,
            on_change=told.of_change,
            unseen=unseen,
        )
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint="--future") from None
    told.job = job
    _say_if_empty(wanted)
    if wanted.log is not None:
        wanted.log.counts_on = kept is not None
    with ExitStack() as opened:
        if checkpoint is not None:
            opened.callback(checkpoint.close)
            checkpoint.lock()  # first, because another job on it has the port of --metrics too
        opened.enter_context(served(wanted.metrics, lambda: job.progress, wanted.job))
        stop = opened.enter_context(interruption(signal.SIGTERM))
        try:
            progress = job.run(stop)
        except LengthError as problem:
            status.clear()
            raise typer.BadParameter(f"{problem}.", param_hint="--watermark") from None
    status.clear()
    _say(progress, kept)


def _say_if_empty(wanted: LocalStream) -> None:
    """Report that there are no files: a pattern may be mistaken, and without --once the stream waits."""
    what = names_no_files(wanted.source, wanted.input_format)
    if what is None:
        return
    said = f"the {what} {wanted.source} names no files of events"
    if not (wanted.once or wanted.flush):
        note(f"{said} yet; the stream waits for them")
    elif what == "pattern":
        note(f"warning: {said}. Their suffixes are {', '.join(SUFFIXES)}")


def _sink(wanted: LocalStream, name: str) -> Sink:
    chosen = wanted.format
    if chosen is None and wanted.sink == "-":
        chosen = StreamFormat.TEXT if is_terminal() else StreamFormat.JSON
    if chosen is StreamFormat.TEXT:
        if wanted.sink != "-":
            raise SinkError(f"text goes to standard output, not to {wanted.sink}. Write json there")
        return open_sink("-", "jsonl", encode=MatchText(name, wanted.time, wanted.type))
    stored = {StreamFormat.JSON: "jsonl", StreamFormat.PARQUET: "parquet", None: None}[chosen]
    return open_sink(wanted.sink, stored)


class _Above:
    """A sink whose rows are printed above the status line, if both are on a terminal.

    The line comes back after the batch, when it is known how many events and matches there are.
    """

    def __init__(self, sink: Sink, status: StatusLine) -> None:
        self._sink, self._status = sink, status
        self.where, self.repeats = sink.where, sink.repeats
        self.prepare, self.sync, self.commit = sink.prepare, sink.sync, sink.commit
        self.restore, self.close = sink.restore, sink.close
        self._prints = sink.where == "standard output" and is_terminal()

    def write(self, rows: pa.Table) -> None:
        """Write the rows in place of the status."""
        if self._prints:
            self._status.clear()
            self._status.is_old = True
        self._sink.write(rows)


class _Told:
    """Shows and logs the progress of the job; for each kind of event that is left out, it reports the first.

    If they are saved, they are not reported.
    """

    def __init__(self, wanted: LocalStream, status: StatusLine, *, names: bool) -> None:
        self.job: Job | None = None
        self._unseen = UnseenNotes(names=names)
        self._wanted, self._status = wanted, status
        self._reported: set[str] = set()
        """The kinds of events that are left out."""
        self._frozen = False
        self._problem = RulesProblem()

    def of_batch(self, progress: Progress) -> None:
        """Show the progress again below the matches that a batch has printed."""
        if self._status.is_old:
            self._status.show(live(progress))

    def of_change(self, change: Change) -> None:
        """Report the outcome of a change of the rules."""
        self._status.clear()
        assert self.job is not None
        for line in change_lines(change, self.job.progress.rules):
            note(line)
        self._status.again()

    def __call__(self, progress: Progress) -> None:
        if progress.events and not self._frozen:
            gc.freeze()  # all is loaded; a full garbage collection would delay events by 0.1 s
            self._frozen = True
        if progress.state in (State.RUNNING, State.STALLED):
            waits = "" if progress.events else "; waiting for events"
            if progress.state is State.STALLED:
                waits = "; stalled: a disk or a broker does not answer"
            self._status.show(live(progress) + waits)
        self._unseen(progress.unseen, self._status.clear)
        if (problem := self._problem(progress)) is not None:
            self._status.clear()
            note(problem)
            self._status.again()
        self._wanted.job.tell(progress)
        if self._wanted.log is not None and progress.at is not None:
            self._wanted.log(progress)
        if self._wanted.late is None and self.job is not None:
            self._report(self.job.first_problems, progress)

    def _report(self, problems: Mapping[str, str], progress: Progress) -> None:
        left_out = events_left_out(progress)
        for kind in [kind for kind in problems if kind not in self._reported]:
            self._reported.add(kind)
            why = f"(the first of this run: {' '.join(problems[kind].split())})"
            hint = "--late FILE.jsonl saves them with the reason"
            if kind == "late":
                hint += ", --watermark DURATION allows for more lateness"
            self._status.clear()
            note(f"warning: {left_out[kind]} left out so far {why}; {hint}")
            self._status.again()


def _say(progress: Progress, kept: str | None) -> None:
    """Print how it ended."""
    note(summary(progress))
    if progress.state is State.STOPPED:
        more = "stopped; run the same command to continue" if kept is not None else "stopped"
        note(more)
    note_pending(progress)
    fail_if_all_malformed(progress.events - progress.malformed, progress.malformed)
