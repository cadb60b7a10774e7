"""Whom the console lets in: who has the token, by this machine's name, from its own pages, within limits."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from nestream.console import serve
from nestream.console.guard import MOST_BODY
from tests.console.served import Console, JobFolder, serving

FINE = {"text": "SEQ(A a, B b) WITHIN 5"}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    job = JobFolder(tmp_path_factory.mktemp("guard") / "job")
    with serving(job.path) as running:
        yield running


PATHS = ["/", "/ward", "/api/begin", "/api/stream", "/api/counters", "/static/app.js"]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_shown(console: Console, path: str) -> None:
    answer = httpx.get(console.base + path)
    assert answer.status_code == 403
    assert "token" in answer.text
    assert console.token not in answer.text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("wrong", ["", "wrong", "é", "x" * 3000])
def test_a_wrong_token_is_refused_in_the_address_and_in_the_cookie(
    console: Console, path: str, wrong: str
) -> None:
    assert httpx.get(console.base + path, params={"token": wrong}).status_code == 403
    name = f"nestream-{urlsplit(console.base).port}"
    cookie = f"{name}={wrong}".encode()
    assert httpx.get(console.base + path, headers={b"cookie": cookie}).status_code == 403


def test_the_printed_address_leads_to_a_cookie_and_an_address_without_token(console: Console) -> None:
    answer = httpx.get(f"{console.base}/ward?area=OR-1&token={console.token}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ward?area=OR-1"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


def test_the_token_cannot_be_used_to_lead_elsewhere(console: Console) -> None:
    port = urlsplit(console.base).port
    for path in ("//evil.example/x", "/\\evil.example"):
        line = http.client.HTTPConnection("127.0.0.1", port)
        line.request("GET", f"{path}?token={console.token}")
        answer = line.getresponse()
        assert answer.getheader("location", "/").startswith("/evil.example")
        line.close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", "127.0.0.1:1"])
def test_another_hosts_name_is_refused_though_the_token_is_right(console: Console, host: str) -> None:
    with console.client() as client:
        assert client.get("/ward", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "https://127.0.0.1"])
def test_only_pages_of_the_console_may_ask_for_runs(console: Console, origin: str | None) -> None:
    with console.client() as client:
        del client.headers["origin"]
        headers = {} if origin is None else {"origin": origin}
        assert client.post("/api/check", json=FINE, headers=headers).status_code == 403


def test_a_form_of_another_page_cannot_send_json(console: Console) -> None:
    with console.client() as client:
        answer = client.post("/api/check", content=b"{}", headers={"content-type": "text/plain"})
        assert answer.status_code == 415


def test_a_body_beyond_the_limit_is_refused_whether_or_not_it_says_its_length(console: Console) -> None:
    with console.client() as client:
        headers = {"content-type": "application/json"}
        large = b" " * (MOST_BODY + 1)
        assert client.post("/api/check", content=large, headers=headers).status_code == 413

        def pieces() -> Iterator[bytes]:
            for _ in range(MOST_BODY // 1024 + 2):
                yield b" " * 1024

        assert client.post("/api/check", content=pieces(), headers=headers).status_code == 413


@pytest.mark.parametrize("body", [b"", b"[", b"[]", b'"x"', b"null", b"[" * 50_000, b"\xff"])
def test_a_body_that_is_no_object_is_refused(console: Console, body: bytes) -> None:
    with console.client() as client:
        answer = client.post("/api/check", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["ok"] is False


def test_every_answer_forbids_to_load_from_elsewhere(console: Console) -> None:
    with console.client() as client:
        for path in ("/ward", "/static/app.js", "/api/begin", "/nothing"):
            headers = client.get(path).headers
            assert headers["content-security-policy"].startswith("default-src 'self'")
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_no_file_outside_of_the_pages_can_be_read(console: Console, path: str) -> None:
    port = urlsplit(console.base).port
    with console.client() as client:
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    line = http.client.HTTPConnection("127.0.0.1", port)
    line.request("GET", path, headers={"cookie": cookie})
    assert line.getresponse().status == 404
    line.close()


def test_nothing_of_the_pages_comes_from_elsewhere_or_is_written_as_html() -> None:
    static = Path(__file__).parents[2] / "src" / "nestream" / "console" / "static"
    for path in static.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text.replace("`http:", "")
        assert "https:" not in text
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert way not in text, (path.name, way)


def test_only_this_machine_is_listened_on() -> None:
    with pytest.raises(ValueError, match="only listens on this machine"):
        serve(None, host="0.0.0.0")


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="cannot listen on port"):
            serve(None, port=taken.getsockname()[1])
