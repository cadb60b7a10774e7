"""Hover: what the word at a place is."""

from __future__ import annotations

import pytest

import nestream
from nestream.editor.hover import hover
from nestream.editor.words import KEYWORDS
from nestream.language.expectation import tokens_of
from tests.corpus.cases import read_all
from tests.editor.test_completion import SCHEMA


def said(marked: str, schema: nestream.Schema | None = SCHEMA) -> str | None:
    """What is shown at the mark `|`."""
    before, _, after = marked.partition("|")
    found = hover(before + after, len(before), schema)
    return found.text if found else None


@pytest.mark.parametrize(
    ("marked", "begin"),
    [
        ("S|EQ(A a, B b)", "**SEQ**: All components, one after the other"),
        ("SEQ(A a, !B b, |C c)", "`C`: an event type that no event has"),
        (
            "SEQ(Recycle| r, B b)",
            "`Recycle`: an event type\n\n- `ts`: integer\n- `type`: string\n- `id`: integer",
        ),
        ("A a WHERE |lower(a.x) = 'b'", "`lower(text)`: in lower case\n\n```neel\nlower('Über') = 'über'"),
        ("A+ a WHERE |count(a) > 1", "`COUNT(group | [DISTINCT] group.attribute)`: how many members"),
        ("Recycle r WHERE |r.id = 1", "`r`: an event of type Recycle\n\n- `ts`"),
        ("Recycle+ r WHERE COUNT(r|) = 1", "`r`: a group of Recycle events"),
        ("SEQ(A a, !B b, C c) WHERE b|.x = 1", "`b`: an event of type B, negated"),
        ("ANY(Recycle, Washing) x WHERE x|.id = 1", "`x`: an event of type Recycle or Washing"),
        ("SEQ(A a, B b) s WHERE s|.ts > 1", "`s`: an expression with a, b"),
        ("Recycle r WHERE r.|id = 1", "`r.id`: integer"),
        ("Recycle r WHERE r.order.to.|city = ''", "`r.order.to.city`: string"),
        ("Recycle r WHERE r.|nothing = 1", "`r.nothing`: no such attribute"),
        ("A a WITHIN 5 mi|n", "**min**: a unit of time, 1 minute"),
        ("A a WITHIN |unbounded", "**UNBOUNDED**: No window."),
        ("A a WHERE a.x > |$floor", "`$floor`: a parameter."),
        ("A a KEEP FI|RST", "**FIRST**: Keeps the match that ends first."),
        ("SEQ(A a, |!!( B", None),
        ("SEQ(Recycle r, r|.id = ??? ", "`r`: an event of type Recycle"),
    ],
)
def test_hover_says_what_a_word_is(marked: str, begin: str | None) -> None:
    text = said(marked)
    assert text is None if begin is None else text is not None and text.startswith(begin)


def test_a_soft_word_that_is_a_name_is_shown_as_a_name() -> None:
    assert (said("SEQ(Next n, B b) WHERE n.first| = 1", None) or "").startswith("`n.first`: an attribute")
    assert (said("SEQ(|Next n, B b)", None) or "").startswith("`Next`: an event type")


def test_nothing_is_shown_between_words_and_in_comments() -> None:
    assert said("A a | WITHIN 5") is None
    assert said("A a // SE|Q\n WITHIN 5") is None
    assert said("|") is None


def test_every_keyword_of_the_corpus_has_a_hover() -> None:
    for case in read_all()[::10]:
        for token in tokens_of(case.query):
            word = KEYWORDS.get(token.upper())
            if word is not None and word.accepted_as == token.type and word.terminal != "NAME":
                found = hover(case.query, token.start_pos or 0)
                assert found is not None
                assert found.text.startswith(f"**{word.name}**")
