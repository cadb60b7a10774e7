"""The language server: diagnostics, hover, completion, formatting and fixes.

It speaks the Language Server Protocol, and needs the package pygls, the extra `lsp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from nestream.editor.completion import complete
from nestream.editor.diagnostics import diagnose, fixes
from nestream.editor.formatting import layout, loses_comments
from nestream.editor.hover import hover
from nestream.editor.protocol import action_of, diagnostic_of, item_of, offset_at, range_of
from nestream.model.diagnostics import QueryError
from nestream.model.schema import Schema


@dataclass(frozen=True)
class EventFile:
    """A file of events whose types and attributes the server knows, with its columns of time and type."""

    path: str
    time: str = "ts"
    type: str = "type"


class KnownEvents:
    """The schema of the file of events, read again when the file has changed.

    `read` gives the schema of a file, and raises an `OSError` or a `ValueError` with a sentence.
    """

    def __init__(self, file: EventFile | None, read: Callable[[EventFile], Schema]) -> None:
        self.file, self._read = file, read
        self.schema: Schema | None = None
        self._seen: tuple[EventFile, float] | None = None
        self._lock = Lock()

    def refresh(self) -> str | None:
        """Read the file if it has changed; a sentence if that fails, once for each change."""
        with self._lock:
            if self.file is None:
                return None
            try:
                seen = self.file, Path(self.file.path).stat().st_mtime
                if seen == self._seen:
                    return None
                self._seen = seen
                self.schema = self._read(self.file)
            except (OSError, ValueError) as problem:
                missing = self.file, -1.0
                known = self._seen == missing
                if not Path(self.file.path).exists():
                    self._seen = missing
                self.schema = None
                return None if known else f"cannot read the events of {self.file.path}: {problem}"
        return None


class NeelServer(LanguageServer):
    """A server for queries, which knows the events of one file."""

    def __init__(self, version: str, events: KnownEvents) -> None:
        super().__init__("nestream", version, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental)
        self.events = events

    def configure(self, params: lsp.InitializeParams) -> None:
        """Take the file of events from the options of the client, unless the command line named one."""
        asked = params.initialization_options
        if self.events.file is not None or not isinstance(asked, dict) or not asked.get("events"):
            return
        folders = [folder.uri for folder in params.workspace_folders or ()]
        root = to_fs_path(folders[0] if folders else params.root_uri or "") or "."
        path = Path(root, str(asked["events"])).expanduser()
        time, type = str(asked.get("time") or "ts"), str(asked.get("type") or "type")
        self.events.file = EventFile(str(path), time, type)

    async def publish(self, uri: str) -> None:
        """Send the diagnostics of a document, as it is when they are known."""
        problem = await asyncio.to_thread(self.events.refresh)
        if problem is not None:
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, problem))
        document = self.workspace.get_text_document(uri)
        found = [diagnostic_of(document, each) for each in diagnose(document.source, self.events.schema)]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, found, version=document.version)
        )

    @property
    def takes_snippets(self) -> bool:
        """Whether the client can put the cursor between the parentheses of a function."""
        asked = self.client_capabilities.text_document
        item = asked.completion.completion_item if asked and asked.completion else None
        return bool(item and item.snippet_support)


def make_server(version: str, file: EventFile | None, read: Callable[[EventFile], Schema]) -> NeelServer:
    """The server, ready to start with `start_io`."""
    server = NeelServer(version, KnownEvents(file, read))

    @server.feature(lsp.INITIALIZE)
    def initialize(ls: NeelServer, params: lsp.InitializeParams) -> None:
        ls.configure(params)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: NeelServer, params: lsp.DidOpenTextDocumentParams) -> None:
        await ls.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: NeelServer, params: lsp.DidChangeTextDocumentParams) -> None:
        await ls.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: NeelServer, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(ls: NeelServer, params: lsp.HoverParams) -> lsp.Hover | None:
        document = ls.workspace.get_text_document(params.text_document.uri)
        found = hover(document.source, offset_at(document, params.position), ls.events.schema)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(content, range_of(document, found.span.start, found.span.end))

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "$"]))
    def completed(ls: NeelServer, params: lsp.CompletionParams) -> lsp.CompletionList:
        document = ls.workspace.get_text_document(params.text_document.uri)
        found = complete(document.source, offset_at(document, params.position), ls.events.schema)
        items = [
            item_of(document, each, place, snippets=ls.takes_snippets) for place, each in enumerate(found)
        ]
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatted(ls: NeelServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = ls.workspace.get_text_document(params.text_document.uri)
        text = document.source
        try:
            wanted = layout(text)
        except QueryError:
            return None  # the diagnostics say why
        if loses_comments(text):
            problem = "the query has comments inside, which formatting would lose, so it is left alone"
            ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, problem))
            return None
        return [lsp.TextEdit(range_of(document, 0, len(text)), wanted)] if wanted != text else []

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
    )
    def actions(ls: NeelServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = ls.workspace.get_text_document(params.text_document.uri)
        start, end = offset_at(document, params.range.start), offset_at(document, params.range.end)
        found = diagnose(document.source, ls.events.schema)
        touched = [each for each in found if each.span.start <= end and start <= each.span.end]
        return [
            action_of(document, each, fix)
            for each in touched
            for fix in fixes(document.source, each, ls.events.schema)
        ]

    return server
