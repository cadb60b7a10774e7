"""The real language server, as a program over pipes, with pygls' own client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from tests.cli.commands import call, environment
from tests.loops import in_a_loop

URI = "file:///queries/query.neel"
EVENTS = "ts,type,id,room\n1,Recycle,7,\n2,Washing,7,lab\n3,Operating,8,\n"
PATIENCE = 60
"""Seconds until an answer is taken to be lost."""


class Editor:
    """A client that keeps what the server sends on its own."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.messages: list[str] = []
        self.version = 0

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.put_nowait(params)

        @client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def message(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

    async def open(self, text: str) -> list[lsp.Diagnostic]:
        """Open the document, or give it another text; its diagnostics."""
        self.version += 1
        if self.version == 1:
            item = lsp.TextDocumentItem(URI, "neel", self.version, text)
            self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        else:
            whole = lsp.TextDocumentContentChangeWholeDocument(text)
            named = lsp.VersionedTextDocumentIdentifier(self.version, URI)
            self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(named, [whole]))
        while True:
            params = await self.published.get()
            if params.version == self.version:
                return list(params.diagnostics)

    async def labels(self, line: int, character: int) -> dict[str, Any]:
        """The completions at a place by their labels."""
        params = lsp.CompletionParams(lsp.TextDocumentIdentifier(URI), lsp.Position(line, character))
        found = await self.client.text_document_completion_async(params)
        assert isinstance(found, lsp.CompletionList)
        return {item.label: item for item in found.items}


def edit(
    tried: Callable[[Editor], Awaitable[None]], *arguments: str, options: dict[str, Any] | None = None
) -> None:
    """Start the server, do something with it, and stop it."""

    async def session() -> None:
        client = LanguageClient("tests", "1")
        editor = Editor(client)
        program = [sys.executable, "-c", "from nestream.cli.main import main; main()", "lsp", *arguments]
        await client.start_io(*program, env=environment())
        try:
            completion = lsp.CompletionClientCapabilities(
                completion_item=lsp.ClientCompletionItemOptions(snippet_support=True)
            )
            able = lsp.ClientCapabilities(
                text_document=lsp.TextDocumentClientCapabilities(completion=completion)
            )
            await client.initialize_async(
                lsp.InitializeParams(capabilities=able, initialization_options=options)
            )
            client.initialized(lsp.InitializedParams())
            await tried(editor)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    in_a_loop(asyncio.wait_for(session(), PATIENCE))


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A file of events."""
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return path


def test_an_editor_gets_diagnostics_fixes_hover_completion_and_formatting(events: Path) -> None:
    async def tried(editor: Editor) -> None:
        client, document = editor.client, lsp.TextDocumentIdentifier(URI)
        # A character outside the basic plane counts twice in the protocol's units.
        text = "// 🚑\nSEQ(Recycle r, Operating o)\nWHERE r.room = '🚑' AND r.idd = o.id WITHIN 10"
        [found] = await editor.open(text)
        assert (found.code, found.severity) == ("unknown-attribute", lsp.DiagnosticSeverity.Error)
        assert (found.range.start, found.range.end) == (lsp.Position(2, 24), lsp.Position(2, 29))
        assert found.message.endswith("hint: did you mean `r.id`?")

        context = lsp.CodeActionContext([found])
        actions: Any = await client.text_document_code_action_async(
            lsp.CodeActionParams(document, found.range, context)
        )
        [action] = actions
        assert action.title == "Write `r.id`"
        [change] = action.edit.changes[URI]
        assert (change.range, change.new_text) == (found.range, "r.id")

        assert await editor.open(text.replace("idd", "id")) == []
        hover: Any = await client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(1, 12)))
        assert hover.contents.value.startswith("`r`: an event of type Recycle")
        assert hover.range == lsp.Range(lsp.Position(1, 12), lsp.Position(1, 13))

        edits = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, lsp.FormattingOptions(4, True))
        )
        assert edits is not None
        assert edits[0].new_text.startswith("// 🚑\nPATTERN SEQ(Recycle r, Operating o)\nWHERE r.room = ")
        assert edits[0].range.end == lsp.Position(2, 45)

        await editor.open("SEQ(Re")
        item = (await editor.labels(0, 6))["Recycle"]
        assert item.text_edit.range == lsp.Range(lsp.Position(0, 4), lsp.Position(0, 6))
        await editor.open("SEQ(Recycle r, Washing w) WHERE w.")
        assert list(await editor.labels(0, 34)) == ["ts", "type", "id", "room"]
        await editor.open("SEQ(Recycle r) WHERE low")
        item = (await editor.labels(0, 24))["lower"]
        assert (item.text_edit.new_text, item.insert_text_format) == (
            "lower($0)",
            lsp.InsertTextFormat.Snippet,
        )

        await editor.open("SEQ(Recycle r, // here\n Operating o) WITHIN 10")
        edits = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, lsp.FormattingOptions(4, True))
        )
        assert edits is None
        assert editor.messages == [
            "the query has comments inside, which formatting would lose, so it is left alone"
        ]

        events.write_text(EVENTS.replace("room", "ward"))  # which the next change notices
        await editor.open("Washing w WHERE w.")
        assert "ward" in await editor.labels(0, 18)

    edit(tried, "--events", str(events))


@pytest.mark.slow
def test_the_file_of_events_comes_from_the_options_of_the_editor_and_a_missing_one_is_reported(
    events: Path,
) -> None:
    missing = events.with_name("missing.csv")

    async def tried(editor: Editor) -> None:
        await editor.open("SEQ(Re")
        assert "Recycle" not in await editor.labels(0, 6)
        await editor.open("SEQ(Rec")
        [message] = editor.messages
        assert message.startswith(f"cannot read the events of {missing}: ")
        missing.write_text(EVENTS)
        await editor.open("SEQ(Recy")
        assert "Recycle" in await editor.labels(0, 8)

    edit(tried, options={"events": str(missing)})


def test_without_pygls_the_command_that_installs_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nestream.editor.server", "nestream.editor.protocol", "pygls", "pygls.lsp.server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    result = call("lsp")
    assert result.exit_code == 1
    assert "the language server needs the package lsprotocol, which is not installed" in result.stderr
    assert "pip install" in result.stderr
