"""Explains syntax errors: what is wrong where the parser stopped, and what to write.

Each explanation is a function that knows one mistake; the first that recognises it is used. Habits from other
languages and misspelt words come first, because they look like many other mistakes.
"""

from nestream.language.diagnose.clauses import CLAUSE_ERRORS, TRAILING_ERRORS
from nestream.language.diagnose.expected import ENDING_ERRORS, SIGN_ERRORS, unexpected
from nestream.language.diagnose.habits import HABITS
from nestream.language.diagnose.lists import LIST_ERRORS
from nestream.language.diagnose.situation import Explanation, Situation
from nestream.language.diagnose.sql import SQL_HABITS
from nestream.language.diagnose.words import WORD_ERRORS

__all__ = ["explain"]

_ALL = (
    *SQL_HABITS,
    *HABITS,
    *WORD_ERRORS,
    *CLAUSE_ERRORS,
    *SIGN_ERRORS,
    *LIST_ERRORS,
    *TRAILING_ERRORS,
    *ENDING_ERRORS,
)


def explain(situation: Situation) -> Explanation:
    """Explain the token that no rule accepts."""
    for explanation in _ALL:
        found = explanation(situation)
        if found is not None:
            return found
    return unexpected(situation)
