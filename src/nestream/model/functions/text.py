"""Functions of strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from nestream.model.functions.define import Function, integer, text, word
from nestream.model.lazy import Lazy, pa, pc
from nestream.model.schema import Kind
from nestream.model.vector import text_type


def _alone(kernel: Callable[..., Any]) -> Callable[[str], Any]:
    """The value of an Arrow kernel for one string: Arrow's tables decide about Unicode."""
    return lambda value: kernel(pa.scalar(value, text_type())).as_py()


def _constant(value: Any) -> bool:
    return isinstance(value, pa.Scalar)


def _searching(kernel: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A kernel that takes its pattern as a constant; other patterns are searched row by row."""

    def search(values: Any, pattern: Any) -> Any:
        return kernel(values, pattern.as_py()) if _constant(pattern) else NotImplemented

    return search


def _substr(value: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(value) + start if start < 0 else 0
    end = len(value) if length is None else begin + max(length, 0)
    return value[max(begin, 0) : max(end, 0)]


def _substr_column(values: Any, start: Any, length: Any = None) -> Any:
    plain = not getattr(start, "ndim", 0) and not getattr(length, "ndim", 0)
    if not plain or start < 1 or (length is not None and length < 0) or start > 2**31:
        return NotImplemented
    stop = None if length is None else int(start) - 1 + min(int(length), 2**31)
    return pc.utf8_slice_codeunits(values, int(start) - 1, stop)


def _replace(value: str, search: str, replacement: str) -> str:
    return value.replace(search, replacement) if search else value


def _replace_column(values: Any, search: Any, replacement: Any) -> Any:
    if not (_constant(search) and _constant(replacement)):
        return NotImplemented
    if not search.as_py():  # Arrow never returns from replacing an empty string
        return values
    return pc.replace_substring(values, pattern=search.as_py(), replacement=replacement.as_py())


def _concat(*values: Any) -> Any:
    return pc.binary_join_element_wise(*values, pa.scalar("", text_type()))


def _like(value: str, pattern: str) -> bool:
    parts = {"%": ".*", "_": "."}
    signs = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    return (
        re.fullmatch("".join(parts.get(s) or re.escape(s[-1]) for s in signs), value, re.DOTALL) is not None
    )


def _like_column(values: Any, pattern: str) -> Any:
    """Arrow's LIKE misreads an escaped sign next to a leading or trailing `%`, so those use RE2."""
    if "\\" not in pattern:
        return pc.match_like(values, pattern)
    signs = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    parts = (".*" if s == "%" else "." if s == "_" else f"\\x{{{ord(s[-1]):x}}}" for s in signs)
    return pc.match_substring_regex(values, rf"(?s)\A{''.join(parts)}\z")


def _like_problem(pattern: str) -> str | None:
    if re.fullmatch(r"(?:\\[%_\\]|[^\\])*", pattern, re.DOTALL):
        return None
    return r"a `\` in the pattern of LIKE stands before `%`, `_` or another `\`"


def _regular_problem(pattern: str) -> str | None:
    try:
        pc.match_substring_regex(pa.array([""], text_type()), pattern)
    except pa.ArrowInvalid as problem:
        reason = str(problem).removeprefix("Invalid regular expression: ")
        return f"this is not a regular expression of RE2: {reason}"
    return None


def _matches(value: str, pattern: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(value, text_type()), pattern).as_py())


def _negated(test: Callable[..., Any]) -> Callable[..., Any]:
    return lambda value, pattern: not test(value, pattern)


def _negated_column(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def negated(values: Any, pattern: Any) -> Any:
        found = kernel(values, pattern)
        return found if found is NotImplemented else pc.invert(found)

    return negated


_LIKE = _searching(_like_column)
_MATCHES = _searching(Lazy("pyarrow.compute", "match_substring_regex"))
_LIKE_PATTERN = word("pattern", _like_problem)
_REGULAR = word("pattern", _regular_problem)


def _one(name: str, kernel: Callable[..., Any], said: str, example: str) -> Function:
    return Function(name, (text(),), Kind.STRING, _alone(kernel), kernel, said, example)


def _test(
    name: str, row: Callable[[str, str], bool], kernel: Any, said: str, example: str, spark: str
) -> Function:
    takes = (text(), text("part"))
    return Function(name, takes, Kind.BOOLEAN, row, _searching(kernel), said, example, spark=spark)


def _infix(word: str, pattern: Any, row: Any, kernel: Any, said: str, example: str, spark: str) -> Function:
    takes = (text(), pattern)
    return Function(
        word.lower(), takes, Kind.BOOLEAN, row, kernel, said, example, infix=word.upper(), spark=spark
    )


TEXTUAL = (
    _one("lower", Lazy("pyarrow.compute", "utf8_lower"), "in lower case", "lower('Über') = 'über'"),
    _one("upper", Lazy("pyarrow.compute", "utf8_upper"), "in upper case", "upper('Über') = 'ÜBER'"),
    _one(
        "trim",
        Lazy("pyarrow.compute", "utf8_trim_whitespace"),
        "without leading and trailing white space",
        "trim(' a b ') = 'a b'",
    ),
    Function(
        "length",
        (text(),),
        Kind.INTEGER,
        len,
        Lazy("pyarrow.compute", "utf8_length"),
        "the number of characters",
        "length('Über') = 4",
        spark="length",
    ),
    Function(
        "substr",
        (text(), integer("start"), integer("length")),
        Kind.STRING,
        _substr,
        _substr_column,
        "the part that starts at a position, counted from 1, or from the end if negative",
        "substr('nestream', 2, 3) = 'est'",
        optional=1,
    ),
    Function(
        "concat",
        (text(),),
        Kind.STRING,
        lambda *values: "".join(values),
        _concat,
        "the strings joined together",
        "concat('a', 'b', 'c') = 'abc'",
        repeats=True,
    ),
    Function(
        "replace",
        (text(), text("part"), text("replacement")),
        Kind.STRING,
        _replace,
        _replace_column,
        "with every occurrence of a part replaced",
        "replace('a-b-c', '-', '+') = 'a+b+c'",
    ),
    _test(
        "contains",
        lambda value, part: part in value,
        Lazy("pyarrow.compute", "match_substring"),
        "whether the text contains the part",
        "contains('nestream', 'str') = TRUE",
        "contains",
    ),
    _test(
        "starts_with",
        str.startswith,
        Lazy("pyarrow.compute", "starts_with"),
        "whether the text begins with the part",
        "starts_with('nestream', 'nest') = TRUE",
        "startswith",
    ),
    _test(
        "ends_with",
        str.endswith,
        Lazy("pyarrow.compute", "ends_with"),
        "whether the text ends with the part",
        "ends_with('nestream', 'team') = FALSE",
        "endswith",
    ),
    _infix(
        "like",
        _LIKE_PATTERN,
        _like,
        _LIKE,
        r"whether the whole text matches: `%` is any characters, `_` is one, `\%` is a percent sign",
        "'nestream' LIKE 'n_st%' = TRUE",
        "like",
    ),
    _infix(
        "not like",
        _LIKE_PATTERN,
        _negated(_like),
        _negated_column(_LIKE),
        "whether the text does not match",
        "'nestream' NOT LIKE 'a%' = TRUE",
        "",
    ),
    _infix(
        "matches",
        _REGULAR,
        _matches,
        _MATCHES,
        "whether the regular expression (in the syntax of RE2) is found in the text",
        "'tool-17' MATCHES '^[a-z]+-[0-9]+$' = TRUE",
        "",
    ),
    _infix(
        "not matches",
        _REGULAR,
        _negated(_matches),
        _negated_column(_MATCHES),
        "whether the regular expression is not found",
        "'tool-17' NOT MATCHES '[A-Z]' = TRUE",
        "",
    ),
)
