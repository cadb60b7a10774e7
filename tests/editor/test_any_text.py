"""Whatever the text is, an editor gets an answer: completion, hover, diagnostics and colours never fail."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.editor.completion import complete
from nestream.editor.diagnostics import diagnose, fixes
from nestream.editor.hover import hover
from nestream.editor.pygments_lexer import NeelLexer
from tests.corpus.cases import read_all
from tests.editor.test_completion import SCHEMA

QUERIES = [case.query for case in read_all()[::7]]
PIECES = [
    "(",
    ")",
    "[",
    "{2,",
    "'",
    "`",
    ".",
    ",",
    "!",
    "$",
    "/*",
    "--",
    " KEEP ",
    " NEXT ",
    " CASE ",
    " é🚑",
    "\x00",
    "9",
]


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, int]:
    """A query of the corpus with a part taken out and a piece put in, and a place in it."""
    text = draw(st.sampled_from(QUERIES))
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(0, 12)))
    changed = text[:start] + draw(st.sampled_from(["", *PIECES])) + text[end:]
    return changed, draw(st.integers(0, len(changed)))


@settings(max_examples=40)
@given(texts())
def test_every_text_gets_an_answer(drawn: tuple[str, int]) -> None:
    text, offset = drawn
    for found in complete(text, offset, SCHEMA):
        assert found.start <= offset <= found.end
        assert 0 <= found.cursor <= len(found.insert)
    shown = hover(text, offset, SCHEMA)
    assert shown is None or shown.span.start <= offset <= shown.span.end
    for problem in diagnose(text, SCHEMA)[:2]:
        assert 0 <= problem.span.start <= problem.span.end <= len(text)
        for fix in fixes(text, problem, SCHEMA):
            assert text[: fix.start] + fix.insert + text[fix.end :] != text
    assert "".join(piece for _, _, piece in NeelLexer().get_tokens_unprocessed(text)) == text
