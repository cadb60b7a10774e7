"""Starts the console: a server on this machine with a token in its address, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from nestream.console.app import application
from nestream.console.guard import Guard
from nestream.console.job import Job
from nestream.console.patience import PatientProtocol
from nestream.console.requests import Asked
from nestream.console.watch import Watch

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    job: Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    data: dict[str, Path] | None = None,
    time: str = "ts",
    type: str = "type",
    ready: Callable[[str], None] = print,
    stop: threading.Event | None = None,
    token: str | None = None,
) -> None:
    """Serve the console for a job's folder until `stop` is set, or forever.

    `ready` is called with the address, including the token, once the server listens. Port 0 picks a free one.
    `data` names files of events to run queries on, besides the bundled data sets; `time` and `type` are their
    columns. The server listens only on the addresses of this machine.
    """
    if host not in LOOPBACK:
        raise ValueError(f"the console only listens on this machine ({', '.join(LOOPBACK)}), not on {host}")
    watch = Watch(Job.read(Path(job)) if job is not None else None)
    with _listening(host, port) as listener:
        asyncio.run(_serve(Asked(watch, data, time, type), listener, host, ready, stop, token))


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise OSError(f"cannot listen on port {port}: {error.strerror}; choose another port") from None
        yield listener


async def _serve(
    asked: Asked,
    listener: socket.socket,
    host: str,
    ready: Callable[[str], None],
    stop: threading.Event | None,
    token: str | None,
) -> None:
    port = int(listener.getsockname()[1])
    secret = token or secrets.token_urlsafe(24)
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    guarded = Guard(application(asked.watch, asked), secret, hosts, f"nestream-{port}")
    config = uvicorn.Config(
        guarded,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=32 << 10,
        limit_concurrency=1000,
        http=PatientProtocol,
        ws="none",
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not running.done():
        await asyncio.sleep(0.01)
    if server.started:
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{port}/?token={secret}")
    while not (running.done() or server.should_exit or (stop is not None and stop.is_set())):
        await asyncio.sleep(0.1)
    asked.watch.hub.close()
    server.should_exit = True
    await running
