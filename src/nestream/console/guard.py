"""Decides who may talk to the console, and how much they may send: a token, host names, and sizes.

The console listens only on this machine, but every program and every web page opened here can reach it. So a
request must carry the token of the printed address (later a cookie), must name the host as the address does
(a page whose own name points here does not), and, if it changes something, must come from a page of the
console itself. The answers forbid pages to load anything from elsewhere.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 256 << 10
"""The maximum size of a request's body in bytes."""
MOST_QUERY = 4 << 10
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
REFUSED = (
    "The console needs the token of its address.\n\n"
    "Open the address that the command printed, with ?token=... at its end.\n"
)


class TooLargeError(Exception):
    """A body that exceeds the limit."""


class Guard:
    """Passes a request to the application, or answers it itself."""

    def __init__(self, app: ASGIApp, token: str, hosts: set[str], cookie: str) -> None:
        self.app = app
        self.token = token
        self.hosts = hosts
        """The valid values of the Host header; filled in once the port is known."""
        self.cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = _with_headers(send)
        answer = self._refusal(scope)
        if answer is not None:
            await answer(scope, receive, guarded)
            return
        await self.app(scope, _limited(receive), guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if headers.get("host", "").lower() not in self.hosts:
            return _said(421, "This is not the address of the console.")
        if len(scope["query_string"]) > MOST_QUERY:
            return _said(414, "The address is too long.")
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and scope["method"] == "GET":
            return self._admit(scope, given, query)
        if not self._is_token(self._from_cookie(headers.get("cookie", ""))):
            return _said(403, REFUSED)
        if scope["method"] not in ("GET", "HEAD"):
            return self._refuse_change(headers)
        return None

    def _admit(self, scope: Scope, given: str, query: list[tuple[str, str]]) -> Response:
        """Remove the token from the address, and keep it as a cookie that scripts cannot read."""
        if not self._is_token(given):
            return _said(403, REFUSED)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # One slash in front: a second would make it the name of another host.
        path = "/" + str(scope["path"]).lstrip("/\\")
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="lax", path="/")
        return answer

    def _refuse_change(self, headers: dict[str, str]) -> Response | None:
        if headers.get("origin") != f"http://{headers['host']}":
            return _said(403, "Only pages of the console may request this.")
        if headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return _said(415, "The body must be JSON.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            return _said(413, "The request is too large.")
        return None

    def _from_cookie(self, header: str) -> str:
        try:
            found = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())


def _said(status: int, text: str) -> Response:
    return PlainTextResponse(text, status_code=status)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            added = [
                (name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own
            ]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sent


def _limited(receive: Receive) -> Receive:
    """The body; raises if it is larger than its header said or than is allowed."""
    taken = 0

    async def received() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > MOST_BODY:
                raise TooLargeError
        return message

    return received
