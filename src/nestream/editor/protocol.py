"""The functions of this package in the terms of the Language Server Protocol: ranges, items and edits.

Offsets count characters; the protocol counts lines and the code units that client and server have agreed on.
"""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.workspace import ServerTextPosition, TextDocument

from nestream.editor.completion import Completion, Kind
from nestream.editor.diagnostics import Fix
from nestream.model.diagnostics import Diagnostic, Severity

_KINDS = {
    Kind.KEYWORD: lsp.CompletionItemKind.Keyword,
    Kind.TYPE: lsp.CompletionItemKind.Class,
    Kind.VARIABLE: lsp.CompletionItemKind.Variable,
    Kind.ATTRIBUTE: lsp.CompletionItemKind.Field,
    Kind.FUNCTION: lsp.CompletionItemKind.Function,
    Kind.UNIT: lsp.CompletionItemKind.Unit,
    Kind.PARAMETER: lsp.CompletionItemKind.Constant,
}
_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
}


def offset_at(document: TextDocument, position: lsp.Position) -> int:
    """The offset of a position."""
    return min(document.offset_at_position(position), len(document.source))


def range_of(document: TextDocument, start: int, end: int) -> lsp.Range:
    """The range between two offsets."""
    return lsp.Range(_position(document, start), _position(document, end))


def _position(document: TextDocument, offset: int) -> lsp.Position:
    number, lines = 0, document.lines
    for number, line in enumerate(lines):
        ends = line.endswith(("\n", "\r"))
        if offset < len(line) or (offset == len(line) and not ends):
            return document.position_to_client_units(ServerTextPosition(number, offset))
        offset -= len(line)
    return lsp.Position(number + 1 if lines else 0, 0)


def diagnostic_of(document: TextDocument, diagnostic: Diagnostic) -> lsp.Diagnostic:
    """A diagnostic with what `nestream check` prints below its message."""
    start, end = diagnostic.span.start, diagnostic.span.end
    lines = [diagnostic.message]
    lines += [diagnostic.detail] if diagnostic.detail else []
    lines += [f"hint: {diagnostic.hint}"] if diagnostic.hint else []
    lines += [f"write: {diagnostic.suggestion}"] if diagnostic.suggestion else []
    return lsp.Diagnostic(
        range=range_of(document, start, max(start, min(end, len(document.source)))),
        message="\n".join(lines),
        severity=_SEVERITIES[diagnostic.severity],
        code=diagnostic.code,
        source="nestream",
    )


def item_of(document: TextDocument, each: Completion, place: int, *, snippets: bool) -> lsp.CompletionItem:
    """A completion, with its place in the order; with snippets the cursor goes where it belongs."""
    insert, format = each.insert, lsp.InsertTextFormat.PlainText
    if each.cursor < len(insert):
        if snippets:
            insert = f"{insert[: each.cursor]}$0{insert[each.cursor :]}"
            format = lsp.InsertTextFormat.Snippet
        else:
            insert = insert[: each.cursor]
    quoted = document.source[each.start : each.start + 1] == "`"
    return lsp.CompletionItem(
        label=each.label,
        kind=_KINDS[each.kind],
        detail=each.detail or None,
        documentation=each.text or None,
        sort_text=f"{place:05}",
        filter_text=f"`{each.label}" if quoted else each.label,
        insert_text_format=format,
        text_edit=lsp.TextEdit(range_of(document, each.start, each.end), insert),
    )


def action_of(document: TextDocument, diagnostic: Diagnostic, fix: Fix) -> lsp.CodeAction:
    """The fix of a diagnostic as an action."""
    edit = lsp.TextEdit(range_of(document, fix.start, fix.end), fix.insert)
    return lsp.CodeAction(
        title=fix.title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic_of(document, diagnostic)],
        is_preferred=True,
        edit=lsp.WorkspaceEdit(changes={document.uri: [edit]}),
    )
