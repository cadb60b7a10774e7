"""HTTP with a time limit: a connection whose request does not arrive completely is closed.

Otherwise a client that opens connections and sends half a request holds them forever, until there are no
more.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0
"""How many seconds a request may take to arrive, after the connection or the previous answer."""


class PatientProtocol(H11Protocol):
    """A connection that waits for a whole request, but not forever."""

    _waits: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # uvicorn narrows what asyncio passes
        self, transport: asyncio.Transport
    ) -> None:
        """A client connects."""
        super().connection_made(transport)
        self._attend()

    def data_received(self, data: bytes) -> None:
        """A part of a request arrives; only the first part starts the wait."""
        super().data_received(data)
        self._attend()

    def on_response_complete(self) -> None:
        """An answer is sent; the next request may arrive."""
        super().on_response_complete()
        self._attend()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        super().connection_lost(exc)
        if self._waits is not None:
            self._waits.cancel()

    def _attend(self) -> None:
        waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if waiting and self._waits is None:
            self._waits = self.loop.call_later(PATIENCE, self.transport.abort)
        elif not waiting and self._waits is not None:
            self._waits.cancel()
            self._waits = None
