"""The routes of the console: its pages, the stream of live messages, and the requests of the pages."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from nestream.console.changes import Changes
from nestream.console.export import FORMATS, Export, ExportError
from nestream.console.guard import TooLargeError
from nestream.console.hub import Hub, dumps
from nestream.console.pool import RunError
from nestream.console.requests import Asked, AskedError
from nestream.console.watch import Watch

STATIC = Path(__file__).parent / "static"
PAGES = ("/", "/overview", "/matches", "/queries", "/health")


Answer = Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


class Plain(JSONResponse):
    """JSON as the pages read it."""

    def render(self, content: Any) -> bytes:
        """The bytes."""
        return dumps(content).encode()


class Line(StreamingResponse):
    """The stream of live messages to a browser; when it ends, for whatever reason, the browser has left."""

    def __init__(self, hub: Hub, last: str | None) -> None:
        super().__init__(hub.follow(last), media_type="text/event-stream")
        self.hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until the browser is gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.hub.leave()


def application(watch: Watch, asked: Asked) -> Starlette:
    """The console as an ASGI application, without its guard."""
    changes = Changes(asked)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(watch.run())
        warming = asyncio.create_task(asked.pool.warm())
        try:
            yield
        finally:
            looking.cancel()
            warming.cancel()
            watch.hub.close()
            await asked.close()
            watch.close()

    async def page(_: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def stream(request: Request) -> Response:
        if not watch.hub.enter():
            return Plain({"ok": False, "error": "Too many pages are open."}, status_code=503)
        last = request.headers.get("last-event-id") or request.query_params.get("last")
        return Line(watch.hub, last)

    async def begin(_: Request) -> Response:
        return Plain({"job": watch.described(), "data": asked.sources()})

    async def snapshot(_: Request) -> Response:
        return Plain(watch.hub.snapshot())

    async def counters(_: Request) -> Response:
        return Plain(watch.counters())

    async def export(request: Request) -> Response:
        format, ids = request.query_params.get("format"), None
        if request.method == "POST":
            try:
                body = json.loads(await request.body())
                format, ids = body.get("format"), body.get("ids")
            except (ValueError, TypeError, AttributeError, RecursionError):
                return Plain({"ok": False, "error": "The body is not JSON."}, status_code=400)
        try:
            return await exported(watch, format, ids)
        except AskedError as error:
            return Plain({"ok": False, "error": str(error)}, status_code=400)
        except RunError as error:
            return Plain({"ok": False, "error": str(error)}, status_code=503)
        except (ExportError, OSError) as error:
            return Plain({"ok": False, "error": str(error)}, status_code=500)

    def post(answer: Answer) -> Any:
        async def route(request: Request) -> Response:
            try:
                body = json.loads(await request.body())
                if not isinstance(body, dict):
                    raise AskedError("The body must be a JSON object.")
                found = await _unless_gone(request, answer(body))
                return Plain(found) if found is not None else Response(status_code=499)
            except TooLargeError:
                return Plain({"ok": False, "error": "The request is too large."}, status_code=413)
            except (ValueError, RecursionError) as error:
                said = str(error) if isinstance(error, AskedError) else "The body is not JSON."
                return Plain({"ok": False, "error": said}, status_code=400)
            except RunError as error:
                return Plain({"ok": False, "error": str(error)})

        return route

    asks = {
        "check": asked.check,
        "complete": asked.complete,
        "first-query": asked.first_query,
        "plan": asked.plan,
        "run": asked.run,
        "run/stop": asked.stop_run,
        "why": asked.why,
        "timeline": asked.timeline,
        "events": asked.events,
        "match": asked.match,
        "measure": asked.measure,
        "trial": asked.start_trial,
        "trial/stop": asked.stop_trial,
        "trial/matches": asked.trial_matches,
        "draft/save": changes.save_draft,
        "draft/discard": changes.discard_draft,
        "deploy": changes.deploy,
        "rollback": changes.roll_back,
        "version": changes.version,
        "annotate": changes.annotate,
    }
    return Starlette(
        routes=[
            *(Route(path, page) for path in PAGES),
            Route("/api/stream", stream),
            Route("/api/begin", begin),
            Route("/api/snapshot", snapshot),
            Route("/api/counters", counters),
            Route("/api/export", export, methods=["GET", "POST"]),
            *(Route(f"/api/{name}", post(answer), methods=["POST"]) for name, answer in asks.items()),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        lifespan=life,
    )


async def exported(watch: Watch, format: Any, ids: Any) -> Response:
    """The matches of the job as a file: all of them, or those with some identities."""
    if not isinstance(format, str) or format not in FORMATS:
        raise AskedError(f"The format must be {' or '.join(FORMATS)}.")
    if ids is not None and not (isinstance(ids, list) and all(isinstance(one, str) for one in ids)):
        raise AskedError("The matches must be a list of their identities.")
    if watch.job is None or watch.job.about.matches is None:
        raise AskedError("job.json does not say where the matches are.")
    wanted = None if ids is None else frozenset(ids)
    made = Export(watch.job.about.matches, watch.only, watch.about_rule, watch.annotations.of, wanted)
    handle, name = tempfile.mkstemp(prefix="nestream-export-", suffix=f".{format}")
    os.close(handle)
    path = Path(name)
    try:
        await watch.readers.run(made.write, path, format)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    remove = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(path, media_type=FORMATS[format], filename=f"matches.{format}", background=remove)


async def _unless_gone(request: Request, answering: Coroutine[Any, Any, dict[str, Any]]) -> Any:
    """The answer; None if the page is gone before, which cancels the request."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.create_task(answering), asyncio.create_task(gone())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return await tasks[0] if tasks[0].done() else None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
