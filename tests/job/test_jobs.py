"""Jobs in this process: checkpoints that are refused, what is pending at the end, faults, sockets."""

from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import nestream
from nestream.job import Checkpoint, CheckpointError, Job, Progress, State
from nestream.job import job as job_module
from nestream.job.progress import state_of
from nestream.sink import SinkError, first_column, open_sink
from nestream.source import open_source

PAIRS = "SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id"
MISSING = "SEQ(A a, !(B b, a.id = b.id)) WITHIN 10 RETURN a.id AS id"


def write(path: Path, *events: tuple[Any, str, Any]) -> None:
    with path.open("a") as file:
        for ts, type, id in events:
            file.write(json.dumps({"ts": ts, "type": type, "id": id}) + "\n")


def run(
    folder: Path, text: str = PAIRS, source: str = "in.jsonl", sink: str = "out.jsonl", **options: Any
) -> Progress:
    """Run a job over what is there, from the checkpoint of the folder."""
    query = nestream.query(text)
    lateness = options.pop("lateness", 0)
    job = Job(
        lambda **handlers: query.stream(lateness=lateness, **handlers),
        open_source(str(folder / source), once=True, whole=bool(options.get("flush"))),
        open_sink(str(folder / sink)),
        aside=open_sink(str(folder / "aside.jsonl"), encode=first_column),
        checkpoint=Checkpoint(folder / "checkpoint"),
        lateness=lateness,
        **options,
    )
    return job.run(Event())


def rows(path: Path) -> list[Any]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def test_a_job_goes_on_from_its_checkpoint_and_counts_on(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "A", 8))
    assert run(tmp_path).matches == 0
    write(tmp_path / "in.jsonl", (3, "B", 7))
    progress = run(tmp_path)
    assert (progress.events, progress.matches) == (3, 1)
    assert [row["id"] for row in rows(tmp_path / "out.jsonl")] == [7]
    assert run(tmp_path).matches == 1
    assert len(rows(tmp_path / "out.jsonl")) == 1


@pytest.mark.parametrize("first", [10, "2026-01-05T08:00:10", "2026-01-05T08:00:10Z"])
def test_a_job_that_continues_without_new_events_knows_its_watermark_and_lag(
    tmp_path: Path, first: int | str
) -> None:
    write(tmp_path / "in.jsonl", (first, "A", 7))
    text, lateness = (PAIRS, 4) if first == 10 else (PAIRS.replace("10", "10 s"), "4 s")
    before = run(tmp_path, text, lateness=lateness)
    after = run(tmp_path, text, lateness=lateness)
    assert before.watermark is not None
    assert after.watermark == before.watermark
    assert json.loads((tmp_path / "checkpoint" / "progress.json").read_bytes())["watermark"] is not None
    assert (after.lag is None) == (before.lag is None) == (first == 10)


def test_the_watermark_that_a_job_shows_does_not_go_back_when_it_continues(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (10, "A", 7))
    assert run(tmp_path, lateness=4).watermark == 6
    write(tmp_path / "in.jsonl", (7, "B", 7))
    assert run(tmp_path, lateness=4).watermark == 6


def test_what_was_written_after_the_checkpoint_is_undone(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path)
    for name in ("out.jsonl", "aside.jsonl"):
        (tmp_path / name).open("a").write('{"half a li')
    write(tmp_path / "in.jsonl", (2, "B", 7))
    run(tmp_path)
    assert [row["id"] for row in rows(tmp_path / "out.jsonl")] == [7]
    assert rows(tmp_path / "aside.jsonl") == []


def test_files_that_a_folder_has_prepared_are_published_after_a_failure(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    run(tmp_path, sink="out")
    [published] = (tmp_path / "out").glob("part-*")
    published.rename(published.with_name(f".{published.name}"))  # as if it had died before the last step
    (tmp_path / "out" / ".part-00000009.parquet").write_text("begun and never saved")
    run(tmp_path, sink="out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [published.name]


def test_a_file_of_the_last_checkpoint_that_is_gone_is_refused_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    run(tmp_path, sink="out")
    [published] = (tmp_path / "out").glob("part-*")
    published.unlink()
    with pytest.raises(SinkError, match=f"{published} of the last checkpoint is missing"):
        run(tmp_path, sink="out")


def test_a_damaged_checkpoint_is_refused_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path)
    path = tmp_path / "checkpoint" / "checkpoint"
    whole = path.read_bytes()
    for damaged in (whole[:-3], whole[:40], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{path} is damaged"):
            run(tmp_path)


def test_a_checkpoint_of_another_query_or_source_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7))
    write(tmp_path / "other.jsonl", (1, "A", 7))
    run(tmp_path)
    with pytest.raises(nestream.StateError, match="another query"):
        run(tmp_path, MISSING)
    with pytest.raises(CheckpointError, match="reads events from"):
        run(tmp_path, source="other.jsonl")


def test_two_jobs_cannot_use_one_checkpoint(tmp_path: Path) -> None:
    held = Checkpoint(tmp_path / "checkpoint")
    held.open()
    write(tmp_path / "in.jsonl", (1, "A", 7))
    with pytest.raises(CheckpointError, match="another job uses"):
        run(tmp_path)
    held.close()
    run(tmp_path)


def test_matches_of_an_earlier_job_without_its_checkpoint_are_not_touched(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    run(tmp_path)
    (tmp_path / "checkpoint" / "checkpoint").unlink()
    with pytest.raises(SinkError, match="exists, and there is no checkpoint"):
        run(tmp_path)


def test_pending_matches_are_counted_and_flush_emits_them(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "A", 8), (3, "A", 9), (4, "B", 8), (12, "X", 0))
    progress = run(tmp_path, MISSING)
    assert (progress.matches, progress.pending) == (1, 1)
    progress = run(tmp_path, MISSING, flush=True)
    assert (progress.matches, progress.pending) == (2, None)
    assert [row["id"] for row in rows(tmp_path / "out.jsonl")] == [7, 9]
    assert run(tmp_path, MISSING, flush=True).matches == 2


def test_after_a_flush_no_more_events_are_taken(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path, MISSING, flush=True)
    write(tmp_path / "in.jsonl", (2, "A", 8))
    with pytest.raises(CheckpointError, match="which ended the input"):
        run(tmp_path, MISSING)


def test_late_events_and_events_of_the_future_are_put_aside_with_the_reason(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    far = now + timedelta(days=400)
    times = [now, now - timedelta(hours=1), far, now + timedelta(seconds=1)]
    write(tmp_path / "in.jsonl", *((time.isoformat(), "A", n) for n, time in enumerate(times)))
    progress = run(tmp_path, "SEQ(A a, B b) WITHIN 10 s", lateness="1 minute", future="1 day")
    assert (progress.late, progress.future, progress.malformed) == (1, 1, 0)
    aside = rows(tmp_path / "aside.jsonl")
    assert sorted((row["id"], row["reason"].split(":")[0]) for row in aside) == [
        (1, "late"),
        (2, "in the future"),
    ]


def test_an_event_that_the_query_cannot_compute_with_is_put_aside_and_the_job_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "A", "x"), (3, "B", 7))
    progress = run(tmp_path)
    assert (progress.matches, progress.malformed) == (1, 1)


def test_a_query_that_does_not_fit_the_events_stops_the_job_at_once(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", "x"))
    with pytest.raises(nestream.QueryError):
        run(tmp_path, "SEQ(A a, B b, a.id + 1 = b.id) WITHIN 10")
    told = json.loads((tmp_path / "checkpoint" / "progress.json").read_text())
    assert told["state"] == "failed"
    assert told["error"]


def test_a_schema_that_gains_a_column_does_not_stop_a_job(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path, "SEQ(A a, B b, a.id = b.id) WITHIN 10", sink="out")
    (tmp_path / "in.jsonl").open("a").write('{"ts": 2, "type": "B", "id": 7, "note": "new"}\n')
    assert run(tmp_path, "SEQ(A a, B b, a.id = b.id) WITHIN 10", sink="out").matches == 1


def test_a_job_ends_when_the_limit_of_its_query_is_reached(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", *((n, "AB"[n % 2], 7) for n in range(20)))
    assert run(tmp_path, PAIRS + " LIMIT 3", limit=3).matches == 3


def test_the_state_of_a_job_that_says_nothing_any_more_is_stalled() -> None:
    progress = Progress(state=State.RUNNING)
    told = progress.json()
    assert state_of(told) is State.RUNNING
    assert state_of(told, datetime.now(UTC) + timedelta(minutes=5)) is State.STALLED
    assert (
        state_of(Progress(state=State.FINISHED).json(), datetime.now(UTC) + timedelta(days=1))
        is State.FINISHED
    )


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_events_come_and_matches_go_through_sockets(tmp_path: Path, kind: str) -> None:
    if kind == "unix":
        entry, leave = f"unix://{tmp_path}/in.sock", f"unix://{tmp_path}/out.sock"
        receiver = socket.socket(socket.AF_UNIX)
        receiver.bind(str(tmp_path / "out.sock"))
        receiver.listen()
    else:
        receiver = socket.create_server(("127.0.0.1", 0))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        entry, leave = f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{receiver.getsockname()[1]}"
    query = nestream.query(PAIRS)
    source, sink = open_source(entry, once=True), open_sink(leave)
    job = Job(lambda **handlers: query.stream(**handlers), source, sink)
    thread = Thread(target=job.run, args=[Event()])
    thread.start()
    received, _ = receiver.accept()
    sender = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
    sender.connect(str(tmp_path / "in.sock") if kind == "unix" else ("127.0.0.1", port))
    sender.sendall(b'{"ts": 1, "type": "A", "id": 7}\n{"ts": 2, "type":')
    sender.sendall(b' "B", "id": 7}\n')
    sender.close()
    thread.join()
    assert json.loads(received.makefile().readline())["id"] == 7
    received.close()
    receiver.close()


def test_events_that_are_left_out_go_to_a_socket_as_lines_of_json(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", (5, "A", 7), (1, "A", 8))
    query = nestream.query(PAIRS)
    with socket.create_server(("127.0.0.1", 0)) as receiver:
        aside = open_sink(f"tcp://127.0.0.1:{receiver.getsockname()[1]}", "jsonl", encode=first_column)
        source = open_source(str(tmp_path / "in.jsonl"), once=True)
        sink = open_sink(str(tmp_path / "out.jsonl"))
        Job(lambda **handlers: query.stream(**handlers), source, sink, aside=aside).run(Event())
        received, _ = receiver.accept()
        letter = json.loads(received.makefile().readline())
        received.close()
    assert (letter["id"], letter["reason"]) == (8, "late: behind the watermark")


class HangingSink:
    """A file whose disk hangs from its second checkpoint on, once that checkpoint is written."""

    def __init__(self, place: Path) -> None:
        self._sink = open_sink(str(place))
        self.where, self.repeats = self._sink.where, self._sink.repeats
        self.restore, self.write, self.close = self._sink.restore, self._sink.write, self._sink.close
        self.prepare, self.sync = self._sink.prepare, self._sink.sync
        self.released = Event()
        self._commits = 0

    def commit(self, position: Any) -> None:
        self._commits += 1
        if self._commits > 1:
            self.released.wait(60)
        self._sink.commit(position)


def hanging_job(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Job, HangingSink]:
    for name, seconds in (("LONGEST", 0.1), ("STALLED", 0.2), ("TICK", 0.05), ("LEAVING", 0.3)):
        patch.setattr(job_module, name, seconds)
    write(folder / "in.jsonl", (1, "A", 7), (2, "B", 7))
    query, sink = nestream.query(PAIRS), HangingSink(folder / "out.jsonl")
    source, checkpoint = open_source(str(folder / "in.jsonl")), Checkpoint(folder / "checkpoint")
    return Job(query.stream, source, sink, checkpoint=checkpoint, interval=0.01), sink


def wait_for_state(folder: Path, state: State) -> None:
    path = folder / "checkpoint" / "progress.json"
    while not path.exists() or json.loads(path.read_bytes())["state"] != state:
        time.sleep(0.005)


def test_a_job_whose_sink_does_not_answer_is_stalled_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job, sink), stop = hanging_job(tmp_path, monkeypatch), Event()
    running = Thread(target=job.run, args=[stop])
    running.start()
    wait_for_state(tmp_path, State.STALLED)
    assert job.progress.state_now() is State.STALLED
    assert job.progress.busy > 0.5
    sink.released.set()
    wait_for_state(tmp_path, State.RUNNING)
    stop.set()
    running.join(60)
    assert (job.progress.state, job.progress.matches) == (State.STOPPED, 1)


def test_a_job_whose_sink_does_not_answer_stops_in_time_and_can_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job, sink), stop = hanging_job(tmp_path, monkeypatch), Event()

    def stop_when_stalled() -> None:
        wait_for_state(tmp_path, State.STALLED)
        stop.set()

    Thread(target=stop_when_stalled).start()
    with pytest.raises(CheckpointError, match="run the same command to continue"):
        job.run(stop)
    assert job.progress.state is State.FAILED
    sink.released.set()
    assert job._saving is not None
    assert job._checkpoint is not None
    assert job._saving.ends_within(60)
    job._checkpoint.close()  # as the end of the process does
    assert run(tmp_path).matches == 1
    assert [row["id"] for row in rows(tmp_path / "out.jsonl")] == [7]


class HeldCheckpoint(Checkpoint):
    """A checkpoint on a disk that takes its time, from the second one on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.begun, self.released = Event(), Event()
        self.written = 0
        self.fails = False

    def write(self, body: bytes) -> None:
        if self.written:
            self.begun.set()
            assert self.released.wait(60)
        if self.fails:
            raise CheckpointError("the disk is gone")
        super().write(body)
        self.written += 1


def held_job(folder: Path) -> tuple[Job, HeldCheckpoint]:
    (folder / "in.jsonl").touch()
    query, checkpoint = nestream.query(PAIRS), HeldCheckpoint(folder / "checkpoint")
    source, sink = open_source(str(folder / "in.jsonl")), open_sink(str(folder / "out.jsonl"))
    return Job(query.stream, source, sink, checkpoint=checkpoint, interval=0.01), checkpoint


def wait_for_rows(path: Path, count: int) -> list[Any]:
    while len(found := rows(path) if path.exists() else []) < count:
        time.sleep(0.005)
    return found


def test_events_do_not_wait_for_a_checkpoint_that_is_being_written(tmp_path: Path) -> None:
    (job, checkpoint), stop = held_job(tmp_path), Event()
    running = Thread(target=job.run, args=[stop])
    running.start()
    assert checkpoint.begun.wait(60)
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    assert [row["id"] for row in wait_for_rows(tmp_path / "out.jsonl", 1)] == [7]
    assert checkpoint.written == 1
    stop.set()
    checkpoint.released.set()
    running.join(60)
    assert (job.progress.state, job.progress.matches) == (State.STOPPED, 1)
    assert run(tmp_path).matches == 1  # the last checkpoint has the match that came meanwhile


def test_a_checkpoint_that_cannot_be_written_ends_the_job(tmp_path: Path) -> None:
    job, checkpoint = held_job(tmp_path)
    failed: list[BaseException] = []

    def run_job() -> None:
        try:
            job.run(Event())
        except CheckpointError as problem:
            failed.append(problem)

    running = Thread(target=run_job)
    running.start()
    assert checkpoint.begun.wait(60)
    checkpoint.fails = True
    checkpoint.released.set()
    running.join(60)
    assert [str(problem) for problem in failed] == ["the disk is gone"]
    assert (job.progress.state, job.progress.error) == (State.FAILED, "the disk is gone")
