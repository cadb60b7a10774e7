"""`nestream console` as a command: it prints its address, serves, stops, and says what is missing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.console.pipeline import COMMAND
from tests.console.served import JobFolder


def started(*words: str, before: str = "") -> subprocess.Popen[str]:
    program = [sys.executable, "-c", f"{before}\n{COMMAND}", "console", "--no-browser", *words]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", said)
    assert found, said
    return found[0]


def test_it_serves_until_ctrl_c_and_stops_at_once_though_a_page_is_open(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job")
    process = started(str(job.path))
    try:
        with httpx.Client(follow_redirects=True, timeout=120) as client:
            printed = address(process)
            assert client.get(printed).status_code == 200
            with client.stream("GET", printed.split("?")[0] + "api/stream") as line:
                next(line.iter_lines())
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert set(said.splitlines()) <= {"press Ctrl-C to stop it", "stopped"}
    assert said.endswith("stopped\n")


def test_it_serves_queries_on_files_without_a_job(tmp_path: Path) -> None:
    data = tmp_path / "mine.csv"
    data.write_text("ts,type\n1,A\n2,B\n")
    process = started("--data", str(data))
    try:
        with httpx.Client(follow_redirects=True, timeout=120) as client:
            printed = address(process)
            base = printed.split("/?")[0]
            assert client.get(printed).status_code == 200
            body = {"text": "SEQ(A a, B b) WITHIN 5", "data": "mine.csv"}
            answer = client.post(f"{base}/api/run", json=body, headers={"origin": base})
            assert answer.json()["total"] == 1
            assert client.get(f"{base}/api/begin").json()["job"] is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_files_may_have_their_time_and_type_in_other_columns(tmp_path: Path) -> None:
    data = tmp_path / "mine.csv"
    data.write_text("when,what\n1,A\n2,B\n")
    for columns in ((), ("--time", "when", "--type", "what")):
        process = started("--data", str(data), *columns)
        try:
            with httpx.Client(follow_redirects=True, timeout=120) as client:
                printed = address(process)
                base = printed.split("/?")[0]
                client.get(printed)
                body = {"text": "SEQ(A a, B b) WITHIN 5", "data": "mine.csv"}
                headers = {"origin": base}
                answer = client.post(f"{base}/api/run", json=body, headers=headers).json()
                rows = {**body, "rows": answer.get("rows", [])}
                drawn = client.post(f"{base}/api/timeline", json=rows, headers=headers).json()
        finally:
            process.kill()
            process.communicate()
        if columns:
            assert (answer["total"], answer["time"], answer["type"]) == (1, "when", "what")
            assert drawn["timeline"]["lanes"] == ["A", "B"]
        else:
            assert "mine.csv has no time column 'ts'" in answer["error"]
            assert "Name the time column with --time" in answer["error"]
            assert str(tmp_path) not in answer["error"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere",), 1, "there is no job.json in nowhere"),
        (("--data", "nowhere.csv"), 2, "there is no file 'nowhere.csv'"),
        (("--port", "70000"), 2, "65535"),
    ],
)
def test_what_is_wrong_is_told(words: tuple[str, ...], code: int, said: str) -> None:
    process = started(*words)
    _, told = process.communicate(timeout=120)
    assert process.returncode == code
    assert said in told
    assert "Traceback" not in told


def test_without_its_packages_it_says_what_to_install() -> None:
    process = started(before="import sys; sys.modules['starlette'] = None; sys.modules['uvicorn'] = None")
    _, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "the console needs the package" in told
    assert "pip install" in told
