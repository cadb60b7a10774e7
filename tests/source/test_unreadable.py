"""Files that cannot be read: one kind of error that says what, where and what to do. And nothing else."""

from __future__ import annotations

import errno
import io
import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nestream.model.wording import reason
from nestream.source import SourceError, read_events, read_table


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("missing.csv", None, ["cannot read", "missing.csv", "no such file", "Check the path"]),
        ("missing.xyz", None, ["no such file"]),
        ("empty.csv", b"", ["empty.csv is empty", "header"]),
        ("blank.csv", b"\n \n", ["is empty", "header"]),
        ("empty.parquet", b"", ["is empty"]),
        ("odd.xlsx", b"PK", ["cannot tell the format", "'.xlsx'", ".csv, .jsonl", "Rename it"]),
        ("plain", b"x", ["it has no suffix"]),
        ("fake.parquet", b"ts,type\n1,A\n", ["is not a Parquet file"]),
        ("binary.csv", b"\x80\x81,x\n", ["the header", "not valid UTF-8", "Convert it"]),
        ("utf16.csv", "ts,type\n1,A\n".encode("utf-16"), ["UTF-16", "iconv"]),
        ("utf16.jsonl", '{"ts": 1}'.encode("utf-16"), ["UTF-16", "iconv"]),
        ("twice.csv", b"ts,type,x,x\n", ["more than one column 'x'", "Rename"]),
        ("open.csv", b'ts,"type\n', ["header", "never closed", "Close it"]),
        ("times.csv", b"Timestamp,type\n", ["no time column 'ts'", "Did you mean 'Timestamp'", "--time"]),
        ("types.csv", b"ts,ticker\n", ["no type column 'type'", "Did you mean 'ticker'", "--type"]),
        ("semi.csv", b"ts;type\n1;A\n", ["separated by semicolons"]),
        ("wide.csv", b"ts,type\n9999-01-01,A\n2026-01-01T00:00:00.123456789,A\n", ["too far apart"]),
    ],
)  # fmt: skip
def test_an_unreadable_file_is_an_error_that_helps(
    tmp_path: Path, name: str, content: bytes | None, parts: list[str]
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        read_events(path)
    for part in parts:
        assert part in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    for name in ("folder.csv", "folder"):
        (tmp_path / name).mkdir()
        with pytest.raises(SourceError, match=r"is a directory\. Name one file in it"):
            read_events(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n")
    path.chmod(0)
    with pytest.raises(SourceError, match="permission denied"):
        read_events(path)


def test_dead_letters_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\nx,A\n")
    with pytest.raises(SourceError, match="cannot write the dead letters"):
        read_events(path, dead_letter=tmp_path / "nowhere" / "dead.jsonl")
    with pytest.raises(SourceError, match=r"cannot write the dead letters .*: file name too long"):
        read_events(path, dead_letter=tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "a long text of a library"), "no space left on device"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "name or service not known"),
        (OSError("Something else"), "something else"),
    ],
)
def test_what_the_system_said_goes_on_with_a_sentence(error: OSError, said: str) -> None:
    assert reason(error) == said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
def test_a_full_disk_for_dead_letters_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    for rows in (1, 10_000):
        path.write_text("ts,type\n1,A\n" + "x,A\n" * rows)
        with pytest.raises(SourceError, match=r"cannot write the dead letters .*: no space left on device"):
            list(read_events(path, dead_letter="/dev/full"))


def test_wrong_arguments_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("ts,type\n")
    with pytest.raises(SourceError, match="cannot both be"):
        read_events(path, time="ts", type="ts")
    with pytest.raises(SourceError, match=r"unknown format 'xml'\. The formats are csv, jsonl, parquet"):
        read_events(path, format="xml")
    with pytest.raises(SourceError, match="standard input has no suffix"):
        read_events("-")


@pytest.mark.parametrize(
    ("format", "text"), [("csv", "ts,type\n1,A\nx,B\n"), ("jsonl", '{"ts":1,"type":"A"}\nx\n')]
)
def test_standard_input_is_read_with_an_explicit_format(
    monkeypatch: pytest.MonkeyPatch, format: str, text: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    reader = read_events("-", format=format)
    assert reader.read_all().to_pylist() == reader.read_all().to_pylist() == [{"ts": 1, "type": "A"}]
    assert reader.malformed == 1
    assert reader.examples[0].file == "-"


def test_a_format_may_overrule_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "events.log"
    path.write_text("ts,type\n1,A\n")
    assert read_table(path, format="csv").num_rows == 1


def _read(content: bytes, format: str) -> None:
    """Any bytes give events, or a SourceError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.bin"
        path.write_bytes(content)
        try:
            reader = read_events(path, format=format, dead_letter=True)
        except SourceError:
            return
        table = reader.read_all()
        table.validate(full=True)
        assert table["ts"].null_count == table["type"].null_count == 0


CSV_ALPHABET = [
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"1",
    b"A",
    b" ",
    b"\xff",
    b"\0",
    b"-",
    b"0",
    b".",
    b"2026-01-01",
]


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=300) | st.lists(st.sampled_from(CSV_ALPHABET), max_size=60).map(b"".join))
@example(b'1,"\n"\n')
def test_any_bytes_as_csv_are_events_or_a_source_error(body: bytes) -> None:
    _read(body, "csv")
    _read(b"ts,type\n" + body, "csv")
    _read(b"ts,type,x\n1,A,2\n" + body, "csv")


JSON_ALPHABET = [
    b'{"ts":1,"type":"A"',
    b',"x":',
    b"}",
    b"{",
    b"[",
    b"]",
    b"\n",
    b"1",
    b"1e400",
    b"null",
    b'"',
]
JSON_ALPHABET += [b"\\ud800", b",", b"\xff"]


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=300) | st.lists(st.sampled_from(JSON_ALPHABET), max_size=40).map(b"".join))
def test_any_bytes_as_json_lines_are_events_or_a_source_error(body: bytes) -> None:
    _read(body, "jsonl")
    _read(b'{"ts":1,"type":"A"}\n' + body, "jsonl")


@settings(deadline=None, max_examples=50)
@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_as_parquet_are_a_source_error(body: bytes) -> None:
    _read(body, "parquet")
    _read(b"PAR1" + body + b"PAR1", "parquet")


VALUES = st.one_of(st.none(), st.text(alphabet='ab",\n\r 1', max_size=6))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5), VALUES, VALUES), max_size=20))
def test_the_slow_path_delivers_what_the_fast_path_would(
    rows: list[tuple[int, str | None, str | None]],
) -> None:
    def field(value: str | None) -> str:
        return "" if value is None else '"' + value.replace('"', '""') + '"'

    good = "ts,type,x,y\n" + "".join(f"{ts},A,{field(x)},{field(y)}\n" for ts, x, y in rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        path.write_bytes(good.encode())
        fast = read_events(path)
        first = fast.read_all()
        path.write_bytes((good + "oops\n").encode())
        slow = read_events(path)
        assert (fast.malformed, slow.malformed) == (0, 1)
        assert slow.read_all().equals(first)
        assert first.num_rows == len(rows)
