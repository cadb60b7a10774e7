"""`nestream stream --local` as people use it: in a pipe, on a terminal, stopped and started again."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from nestream import Query, QueryError, queries
from nestream.cli import stream_columns
from nestream.job import Checkpoint
from nestream.source import SourceError, declared_columns, refuse_missing
from tests.cli.commands import PROGRAM, call, environment, on_terminal, program, without_colours

QUERY = "SEQ(Recycle r, !(Washing w, w.id = r.id), Operating o, r.id = o.id) WITHIN 1 hour"


def line(minute: int, type: str, id: object) -> str:
    return json.dumps({"ts": f"2026-01-05T08:{minute:02}:00Z", "type": type, "id": id}) + "\n"


EVENTS = line(0, "Recycle", 7) + line(1, "Recycle", 8) + line(2, "Washing", 8) + line(3, "Operating", 7)


def test_a_match_is_printed_while_the_pipe_is_still_open() -> None:
    process = subprocess.Popen(
        [str(PROGRAM), "stream", QUERY, "--local"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(EVENTS)
    process.stdin.flush()
    match = json.loads(process.stdout.readline())
    assert match["o"]["id"] == 7
    out, said = process.communicate(line(4, "Recycle", 9), timeout=120)
    assert out == ""
    assert process.returncode == 0
    assert said.startswith("5 events, 1 match, 0 late, 0 dead letters")


def test_on_a_terminal_matches_are_readable_and_ctrl_c_ends_with_a_summary(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    told: list[bool] = []

    def interrupt(process: subprocess.Popen[bytes], screen: str) -> None:
        if "1 match," in screen and not told:
            told.append(True)
            process.send_signal(signal.SIGINT)

    arguments: list[str | Path] = ["stream", QUERY, "--local", "--from", tmp_path / "events.jsonl"]
    code, _, screen = on_terminal(arguments, meanwhile=interrupt)
    shown = without_colours(screen)
    assert code == 0
    assert "query  2026-01-05 08:00:00Z to 08:03:00Z\n  r Recycle    08:00:00Z id=7\n" in shown
    assert "4 events, 1 match, 0 late, 0 dead letters" in shown
    assert "0 matches" not in shown.partition("r Recycle")[2]
    assert "stopped" in shown
    assert "Traceback" not in shown


def test_sigterm_saves_so_that_nothing_is_lost_or_repeated(tmp_path: Path) -> None:
    events, matches = tmp_path / "events.jsonl", tmp_path / "matches.jsonl"
    events.write_text(line(0, "Recycle", 7))
    arguments = ["stream", QUERY, "--local", "--from", str(events), "--to", str(matches)]
    process = subprocess.Popen(
        [str(PROGRAM), *arguments], stderr=subprocess.PIPE, env=environment(), text=True
    )
    told = tmp_path / "matches.jsonl.checkpoint" / "progress.json"
    end = time.monotonic() + 120
    while not told.exists() or json.loads(told.read_text())["events"] < 1:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    assert json.loads(told.read_text())["state"] == "running"
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "run the same command to continue" in said
    assert json.loads(told.read_text())["state"] == "stopped"
    with events.open("a") as file:
        file.write(line(3, "Operating", 7))
    again = call(*arguments, "--once")
    assert again.exit_code == 0, again.output
    assert [json.loads(text)["o"]["id"] for text in matches.read_text().splitlines()] == [7]
    assert json.loads(told.read_text())["state"] == "finished"


def test_pending_matches_are_reported_and_flush_emits_them(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    missing = "SEQ(Recycle r, !(Operating o, r.id = o.id)) WITHIN 1 hour RETURN r.id AS id"
    arguments: list[str | Path] = ["stream", missing, "--local", "--from", tmp_path / "events.jsonl"]
    said = call(*arguments, "--once")
    assert said.stdout == ""
    assert "1 match pending" in said.stderr
    assert "--flush" in said.stderr
    flushed = call(*arguments, "--flush")
    assert json.loads(flushed.stdout)["id"] == 8
    assert "pending" not in flushed.stderr


def test_a_pattern_without_files_is_reported(tmp_path: Path) -> None:
    nowhere, empty = tmp_path / "nosuch" / "*.jsonl", tmp_path / "empty"
    empty.mkdir()
    for how in ("--once", "--flush"):
        said = call("stream", QUERY, "--local", how, "--from", nowhere)
        assert said.exit_code == 0
        assert said.stderr.startswith(f"warning: the pattern {nowhere} names no files of events")
    assert call("stream", QUERY, "--local", "--once", "--from", empty).stderr.startswith("0 events")


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_once_says_that_an_unfinished_last_line_is_left_for_the_next_run(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / f"events.{suffix}"
    path.write_text(EVENTS)
    if suffix == "csv":
        as_csv(path)
    path.write_text(path.read_text().removesuffix("\n"))
    left = "ends in an unfinished line, which is left for the next run; --flush reads it"
    for place in (path, folder):
        arguments: list[str | Path] = ["stream", QUERY, "--local", "--once", "--from", place]
        arguments += ["--to", tmp_path / f"{place.name}-out.jsonl"]
        for _ in range(2):  # also if nothing has changed since
            said = call(*arguments)
            assert (said.exit_code, said.stderr.count(f"warning: {path} {left}")) == (0, 1), said.stderr
            assert "3 events, 0 matches" in said.stderr
        flushed = call(*arguments, "--flush").stderr
        assert "unfinished" not in flushed
        assert "4 events, 1 match" in flushed
    with path.open("a") as file:
        file.write("\n")
    assert "unfinished" not in call("stream", QUERY, "--local", "--once", "--from", path).stderr
    path.write_text(path.read_text().removesuffix("\n"))
    (folder / f"more.{suffix}").write_text(path.read_text())
    assert f"{path} and 1 more end in" in call("stream", QUERY, "--local", "--once", "--from", folder).stderr


def test_once_makes_a_dead_letter_of_a_damaged_file_that_is_new(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(EVENTS)
    packed = gzip.compress(EVENTS.encode() * 100)
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    late = tmp_path / "late.jsonl"
    said = call("stream", QUERY, "--local", "--once", "--from", tmp_path / "in", "--late", late)
    assert said.exit_code == 0
    assert said.stderr.startswith("5 events, 1 match, 0 late, 1 dead letter")
    assert "b.jsonl.gz: the file is damaged" in json.loads(late.read_text())["reason"]


@pytest.mark.parametrize("place", ["nosuch/*.jsonl", "empty"])
def test_a_stream_without_files_says_that_it_waits_for_them(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    what = "folder" if place == "empty" else "pattern"
    process = subprocess.Popen(
        [str(PROGRAM), "stream", QUERY, "--local", "--from", place],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
        cwd=tmp_path,
    )
    assert process.stderr is not None
    watchdog = Timer(120, process.kill)
    watchdog.start()
    line = process.stderr.readline()
    watchdog.cancel()
    process.terminate()
    process.communicate(timeout=120)
    assert line == f"the {what} {place} names no files of events yet; the stream waits for them\n"


def test_each_kind_of_event_that_is_left_out_is_reported_once_with_the_first_reason(tmp_path: Path) -> None:
    early = line(1, "Operating", 8)
    ahead = early.replace("2026", "2999")
    (tmp_path / "events.jsonl").write_text(EVENTS + "nonsense\n" * 2 + early * 3 + ahead)
    arguments: list[str | Path] = ["stream", QUERY, "--local", "--once", "--from", tmp_path / "events.jsonl"]
    arguments += ["--future", "1 hour"]
    said = call(*arguments).stderr
    assert said.count("left out so far") == 3
    of = "left out so far (the first of this run: "
    event = '"type": "Operating", "id": 8}'
    assert f'3 late events {of}{{"ts": "2026-01-05T08:01:00Z", {event}: behind the watermark);' in said
    assert f'1 event in the future {of}{{"ts": "2999-01-05T08:01:00Z", {event}: after 20' in said
    assert f"2 dead letters {of}{tmp_path}/events.jsonl, line 5: invalid JSON" in said
    assert "10 events, 1 match, 3 late, 2 dead letters, 1 in the future, " in said
    kept = call(*arguments, "--late", tmp_path / "late.jsonl").stderr
    assert "left out" not in kept
    reasons = [json.loads(text)["reason"] for text in (tmp_path / "late.jsonl").read_text().splitlines()]
    assert sorted(reason.split(":")[0] for reason in reasons)[2:] == ["in the future", *["late"] * 3]


def test_a_later_run_reports_what_it_leaves_out_itself(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    (events / "one.jsonl").write_text(EVENTS + "nonsense\n")
    arguments: list[str | Path] = ["stream", QUERY, "--local", "--once", "--from", events]
    arguments += ["--to", tmp_path / "matches.jsonl"]
    first = call(*arguments).stderr
    assert "1 dead letter left out so far (the first of this run: " in first
    assert "5 events, 1 match, 0 late, 1 dead letter, 1 micro-batch in this run, " in first
    assert (
        "5 events, 1 match, 0 late, 1 dead letter, 0 micro-batches in this run, " in call(*arguments).stderr
    )
    assert "left out so far" not in call(*arguments).stderr
    (events / "two.jsonl").write_text("more nonsense\n")
    said = call(*arguments).stderr
    assert "2 dead letters left out so far (the first of this run: " in said
    assert "two.jsonl, line 1: invalid JSON" in said


def test_the_log_of_the_progress_counts_since_the_first_start(tmp_path: Path) -> None:
    events, log = tmp_path / "events.jsonl", tmp_path / "log.jsonl"
    arguments: list[str | Path] = ["stream", QUERY, "--local", "--once", "--from", events, "--progress", log]
    for kept in (["--to", str(tmp_path / "matches.jsonl")], []):
        events.write_text(EVENTS)
        log.unlink(missing_ok=True)
        for expected in (4, 5) if kept else (4, 9):
            assert call(*arguments, *kept).exit_code == 0
            assert json.loads(log.read_text().splitlines()[-1])["events"] == expected
            with events.open("a") as file:
                file.write(line(9, "Recycle", 9))


def test_a_folder_of_rules_tells_the_rule_of_each_match(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "dirty.neel").write_text(QUERY)
    (rules / "used.neel").write_text("SEQ(Recycle r, Operating o, r.id = o.id) WITHIN 1 hour")
    (tmp_path / "events.jsonl").write_text(EVENTS)
    arguments: list[str | Path] = ["stream", rules, "--local", "--once", "--from", tmp_path / "events.jsonl"]
    found = [json.loads(text)["query"] for text in call(*arguments).stdout.splitlines()]
    assert sorted(found) == ["dirty", "used"]
    log = tmp_path / "log.jsonl"
    assert "dirty  2026-01-05 08:00:00Z" in call(*arguments, "--format", "text", "--progress", log).stdout
    assert json.loads(log.read_text().splitlines()[-1])["matches"] == 2


def test_each_time_that_a_file_of_a_folder_is_written_anew_is_reported(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    path = tmp_path / "events" / "one.jsonl"
    path.write_text(line(0, "Recycle", 0))
    process = subprocess.Popen(
        [str(PROGRAM), "stream", "SEQ(Recycle r) WITHIN 1 hour", "--local", "--from", str(path.parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stdout is not None
    for number in range(1, 4):
        assert json.loads(process.stdout.readline())["r"]["id"] == number - 1
        if number < 3:
            path.write_text(line(number, "Recycle", number))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert said.count(f"warning: {path} was written anew or cut back; it is read from its beginning") == 2


MISSPELT = "SEQ(Recycle r, Operating o, r.id = o.idd) WITHIN 1 hour"


def as_csv(path: Path, text: str = EVENTS) -> Path:
    rows = [json.loads(one) for one in text.splitlines()]
    path.write_text("ts,type,id\n" + "".join(f"{row['ts']},{row['type']},{row['id']}\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "avro"])
def test_a_misspelt_attribute_of_declared_columns_is_refused_and_nothing_is_written(
    tmp_path: Path, suffix: str
) -> None:
    events = as_csv(tmp_path / "made.csv")
    if suffix == "csv.gz":
        (tmp_path / "made.csv.gz").write_bytes(gzip.compress(events.read_bytes()))
    elif suffix == "parquet":
        pq.write_table(pyarrow.csv.read_csv(events), tmp_path / "made.parquet")
    elif suffix == "avro":
        fields = [{"name": name, "type": "string"} for name in ("ts", "type", "id")]
        with (tmp_path / "made.avro").open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "Event", "fields": fields}, [])
    (tmp_path / "in").mkdir()
    (tmp_path / f"made.{suffix}").rename(tmp_path / "in" / f"events.{suffix}")
    for place in (tmp_path / "in", tmp_path / "in" / f"events.{suffix}"):
        said = call("stream", MISSPELT, "--local", "--once", "--from", place, "--to", tmp_path / "out.jsonl")
        assert said.exit_code == 1
        assert "error: Operating events have no attribute `idd`" in said.stderr
        assert "did you mean `o.id`?" in said.stderr
        assert not list(tmp_path.glob("out.jsonl*"))
        fine = call("stream", QUERY, "--local", "--once", "--from", place)
        assert fine.exit_code == 0, fine.stderr
        assert "warning" not in fine.stderr


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "csv", "parquet"])
@pytest.mark.parametrize(("option", "meant"), [("--time", "ts"), ("--type", "type")])
def test_a_wrong_time_or_type_column_is_refused_at_the_first_start(
    tmp_path: Path, suffix: str, option: str, meant: str
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out.jsonl"
    folder.mkdir()
    path = folder / f"events.{suffix}"
    as_csv(tmp_path / "made.csv")
    if suffix == "parquet":
        pq.write_table(pyarrow.csv.read_csv(tmp_path / "made.csv"), path)
    else:
        text = (tmp_path / "made.csv").read_text() if suffix == "csv" else EVENTS
        path.write_bytes(gzip.compress(text.encode()) if suffix == "jsonl.gz" else text.encode())
    for place in (path, folder, folder / "*"):
        arguments: list[str | Path] = ["stream", QUERY, "--local", "--once", "--from", place, "--to", out]
        said = call(*arguments, option, "when")
        assert said.exit_code == 1
        assert f"{path} has no {option[2:]} column 'when'; its columns are: ts, type, id. Did" in said.stderr
        assert f"Did you mean {meant!r}?" in said.stderr or option == "--type"
        assert not list(tmp_path.glob("out.jsonl*"))
    (folder / "other.csv").write_text(
        "ts,type,when,id\n" + "2026-01-05T08:00:00Z," * 3 + "1\n"
    )  # some files may be fine
    assert call("stream", QUERY, "--local", "--once", "--from", folder, option, "when").exit_code == 0


def test_a_file_that_grows_is_refused_after_ten_events_without_a_time(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"level": "info"}\n' * 9)
    refuse_missing(str(path), "ts", "type", grows=True)
    for grows in (False, True):
        with pytest.raises(SourceError, match="no time column 'ts'; its columns are: level"):
            refuse_missing(str(path), "ts", "type", grows=grows)
        path.write_text('{"level": "info"}\n' * 10)
    path.write_text('{"level": "info"}\n' * 10 + EVENTS)
    refuse_missing(str(path), "ts", "type", grows=True)


def test_a_port_in_use_is_named_unless_another_job_uses_the_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    (tmp_path / "events.jsonl").write_text(EVENTS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments: list[str | Path] = ["stream", QUERY, "--local", "--once", "--metrics", port]
        arguments += ["--from", tmp_path / "events.jsonl", "--to", tmp_path / "out.jsonl"]
        said = call(*arguments)
        assert said.exit_code == 1
        assert said.stderr == (
            f"error: cannot serve metrics on port {port}: address already in use\n"
            "  hint: name another port with --metrics\n"
        )
        other = Checkpoint(tmp_path / "out.jsonl.checkpoint")
        other.lock()
        try:
            assert call(*arguments).stderr.startswith("error: another job uses the checkpoint")
        finally:
            other.close()


def test_an_output_that_cannot_be_reached_is_told_apart_from_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    cases = {
        address: "connection refused. Start the program that reads it, or choose another place\n",
        "http://127.0.0.1/x": "is not an address. Write kafka://HOST:PORT/TOPIC, tcp://HOST:PORT or "
        "unix:///PATH, or name a file or a folder\n",
        str(tmp_path / "no" / "out.jsonl"): "no such file or directory. Choose another place\n",
    }
    for place, words in cases.items():
        arguments: list[str | Path] = ["--local", "--from", tmp_path / "events.jsonl", "--to", place]
        said = call("stream", QUERY, *arguments, "--checkpoint", tmp_path / "kept")
        assert (said.exit_code, words in said.stderr) == (1, True), said.stderr


def test_a_checkpoint_that_is_a_file_is_refused(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text(EVENTS)
    cases = {events: "it is a file\n", events / "kept": "a part of its path is a file\n"}
    for kept, words in cases.items():
        said = call("stream", QUERY, "--local", "--once", "--from", events, "--checkpoint", kept)
        assert said.exit_code == 1
        assert f"cannot use the checkpoint {kept}: {words}  hint: name a folder" in said.stderr


def test_a_stream_whose_events_are_all_malformed_ends_with_3() -> None:
    for how in ("--once", "--flush"):
        said = program("stream", QUERY, "--local", how, "--time", "when", input=EVENTS)
        assert said.returncode == 3
        assert "4 events, 0 matches, 0 late, 4 dead letters" in said.stderr
        assert "error: every row is malformed" in said.stderr
    for events in ("nonsense\n" + EVENTS, ""):
        assert program("stream", QUERY, "--local", input=events).returncode == 0


def test_a_column_with_a_dot_in_its_name_is_told_from_a_field(tmp_path: Path) -> None:
    (tmp_path / "dotted.csv").write_text("ts,type,a.b\n1,P,1\n")
    arguments: list[str | Path] = ["--local", "--once", "--from", tmp_path / "dotted.csv"]
    said = call("stream", "SEQ(P p, p.a.b > 3) WITHIN 10", *arguments)
    assert said.exit_code == 1
    assert "hint: quote a name with a dot: `p.`a.b``" in said.stderr
    assert call("stream", "SEQ(P p, p.`a.b` > 3) WITHIN 10", *arguments).exit_code == 0


def test_an_attribute_may_be_in_any_file_of_a_folder_and_json_lines_may_still_bring_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    as_csv(tmp_path / "in" / "one.csv")
    (tmp_path / "in" / "two.csv").write_text("ts,type,id,idd\n2026-01-05T08:09:00Z,Operating,9,7\n")
    found = call("stream", MISSPELT, "--local", "--once", "--from", tmp_path / "in")
    assert (found.exit_code, len(found.stdout.splitlines())) == (0, 1), found.stderr
    assert "warning" not in found.stderr
    (tmp_path / "in" / "two.csv").unlink()
    (tmp_path / "in" / "two.jsonl").write_text(line(9, "Recycle", 9))
    assert call("stream", MISSPELT, "--local", "--once", "--from", tmp_path / "in").exit_code == 0


def test_a_misspelt_attribute_or_type_of_json_lines_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    arguments: list[str | Path] = ["--local", "--once", "--from", tmp_path / "events.jsonl"]
    idd = "no Operating event so far has `idd`; did you mean `o.id`?"
    cases = {
        MISSPELT: idd,
        "EVENT SEQ(Recycle r, Operating o) WHERE r.id = o.idd WITHIN 1 hour": idd,
        "SEQ(Recycel r, Operating o, r.id = o.id) WITHIN 1 hour": "no event so far has the type `Recycel`; "
        "did you mean `Recycle`?",
        "SEQ(ANY x, x.colour = 1) WITHIN 1 hour": "no event so far has `colour`; "
        "the attributes are `id`, `ts`, `type`",
    }
    for query, message in cases.items():
        said = call("stream", query, *arguments)
        assert said.exit_code == 0
        assert said.stderr.count("warning:") == 1, said.stderr
        assert f"warning: {message}\n" in said.stderr
    absent = "SEQ(Recycle r, Broken b, b.colour = 1) WITHIN 1 hour"  # such an event may still come, with it
    for query in (QUERY, absent):
        assert "warning" not in call("stream", query, *arguments).stderr


def test_what_no_event_has_had_is_in_the_progress_until_it_comes_also_after_a_restart(tmp_path: Path) -> None:
    rules, events, matches = tmp_path / "rules", tmp_path / "events.jsonl", tmp_path / "matches.jsonl"
    rules.mkdir()
    (rules / "misspelt.neel").write_text(MISSPELT)
    (rules / "made.neel").write_text("SEQ(Recycle r) WITHIN 1 hour RETURN r.id AS tool INTO Used")
    (rules / "reads.neel").write_text("SEQ(Used u, Recycle r, u.tool = r.id) WITHIN 1 hour")
    events.write_text(EVENTS)
    arguments: list[str | Path] = ["stream", rules, "--local", "--once", "--from", events, "--to", matches]
    sentence = "no Operating event so far has `idd`; did you mean `o.id`?"

    def unseen() -> dict[str, list[str]]:
        told = json.loads((tmp_path / "matches.jsonl.checkpoint" / "progress.json").read_text())
        return dict(told["unseen"])

    assert f"warning: rule misspelt: {sentence}\n" in call(*arguments).stderr
    assert unseen() == {"misspelt": [sentence]}
    assert call(*arguments).stderr.count("warning:") == 1
    with events.open("a") as file:
        file.write('{"ts": "2026-01-05T08:09:00Z", "type": "Operating", "id": 1, "idd": 8}\n')
    call(*arguments)
    assert unseen() == {}
    assert "warning" not in call(*arguments).stderr


def test_a_refused_rule_opens_each_file_once_and_is_looked_at_only_for_new_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        as_csv(tmp_path / f"{number}.csv")
    opened: list[dict[str, pa.DataType] | None] = []
    looked: list[str] = []
    unknown = Query.unknown_attributes

    def declared(*place: Any) -> Iterator[dict[str, pa.DataType] | None]:
        for columns in declared_columns(*place):
            opened.append(columns)
            yield columns

    def counted(query: Query, *columns: Any) -> Any:
        looked.append(query.text)
        return unknown(query, *columns)

    monkeypatch.setattr(stream_columns, "declared_columns", declared)
    monkeypatch.setattr(Query, "unknown_attributes", counted)
    rules = queries({"fine": QUERY, "misspelt": MISSPELT})
    known: dict[str, pa.DataType] = {}

    def check(name: str) -> None:
        opened.clear()
        looked.clear()
        stream_columns.refuse_unknown(rules, str(tmp_path), "ts", "type", None, known=known, names=[name])

    with pytest.raises(QueryError, match="have no attribute `idd`"):
        check("misspelt")
    assert (len(opened), looked) == (9, [MISSPELT])
    check("fine")
    assert (len(opened), looked) == (0, [QUERY])
    with pytest.raises(QueryError):
        check("misspelt")
    assert (len(opened), looked) == (9, [MISSPELT])


def test_a_changed_rule_that_reads_no_declared_column_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    rules, matches = tmp_path / "rules", tmp_path / "matches.jsonl"
    events = as_csv(tmp_path / "events.csv")
    call("rules", rules, "add", "dirty", QUERY)
    arguments: list[str | Path] = ["stream", rules, "--local", "--once", "--from", events, "--to", matches]
    assert call(*arguments).exit_code == 0
    call("rules", rules, "add", "misspelt", MISSPELT)
    call("rules", rules, "add", "reused", QUERY.replace("Operating", "Recycle"))
    said = call(*arguments)
    assert said.exit_code == 0
    assert "misspelt refused\n  error: Operating events have no attribute `idd`" in said.stderr
    told = json.loads((tmp_path / "matches.jsonl.checkpoint" / "progress.json").read_text())
    assert list(told["refused"]) == ["misspelt"]
    assert sorted(told["rules"]) == ["dirty", "reused"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "events.jsonl"], "add --local"),
        (["--from", "-", "--to", "out"], "add --local"),
        (["--local", "--master", "local[1]", "--from", "events.jsonl"], "leave it out with --local"),
        (["--local", "--from", "events.jsonl", "--to", "out.csv"], "cannot hold csv that grows"),
        (["--local", "--from", "events.jsonl", "--watermark", "soon"], "--watermark"),
        (
            ["--local", "--from", "numbered.jsonl", "--watermark", "10 s"],
            "as a number in the unit of the column",
        ),
        (["--local", "--from", "events.jsonl", "--future", "7"], "--future"),
        (["--local", "--from", "missing.jsonl"], "no such file"),
        (["--from", "rules", "--to", "out", "--future", "7"], "--future"),
        (["--from", "rules", "--to", "out", "--watermark", "soon"], "--watermark"),
        (["--local", "--from", "events.jsonl", "--partitions", "1"], "leave it out with --local"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.jsonl").write_text(EVENTS)
    Path("numbered.jsonl").write_text('{"ts": 1, "type": "Recycle", "id": 1}\n')
    os.mkdir("rules")
    query = QUERY.replace("1 hour", "60") if "numbered.jsonl" in arguments else QUERY
    result = call("stream", query, *arguments, *(["--once"] if "--local" in arguments else []))
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.output.replace("│", " ").split())
