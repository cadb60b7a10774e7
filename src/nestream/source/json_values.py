"""Parses JSON text to Python values: many lines at once, or one line with its problem."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

from nestream.source.errors import SourceError

MOST_ATTRIBUTES = 4_096
"""The maximum number of different attributes of the events of a source."""


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose member names are all different: of two with one name, one would be lost."""
    found = dict(members)
    if len(found) != len(members):
        name = next(name for name, count in Counter(name for name, _ in members).items() if count > 1)
        raise ValueError(f"an object has several members named `{name[:60]}`; rename all but one")
    return found


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, object_pairs_hook=_object)
_PLAIN = json.JSONDecoder(parse_constant=_reject_constant)
_FAR_COLON = re.compile(rb'"[ \t\r\n]+:')


def parse_together(lines: list[bytes]) -> list[Any] | None:
    """Parse all lines at once, which is faster; None if one of them is not JSON.

    An unpredictable number separates the lines, so that no two lines can be read as one.
    """
    mark = random.getrandbits(62)
    between = f",{mark},".encode()
    data = b"[" + between.join(lines) + b"]"
    try:
        text = data.decode()
        values = _PLAIN.decode(text)
        if not _no_name_twice(data, values):
            values = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    if len(values) != 2 * len(lines) - 1 or any(value != mark for value in values[1::2]):
        return None
    items: list[Any] = values[::2]
    return items


def _no_name_twice(data: bytes, values: Any) -> bool:
    """Whether no object has two members of one name, judged by the number of names; False if unclear.

    Without a backslash, each member name ends in `":`, so there are at least as many of these as members.
    """
    if b"\\" in data or _FAR_COLON.search(data) is not None:
        return False
    return data.count(b'":') == sum(len(value) for value in values if type(value) is dict)


def parse_line(raw: bytes) -> tuple[Any, tuple[str, str] | None]:
    """The value of one line, or the kind of its problem and what is wrong."""
    try:
        return _DECODER.decode(raw.decode()), None
    except UnicodeDecodeError as error:
        return None, ("encoding", f"not valid UTF-8 at byte {error.start + 1} of the line")
    except json.JSONDecodeError as error:
        return None, ("json", f"invalid JSON at column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}")
    except RecursionError:
        return None, ("json", "invalid JSON: nested too deeply")
    except ValueError as error:
        return None, ("json", f"invalid JSON: {str(error)[:100]}")


def json_kind(value: Any) -> str:
    """The JSON type of a value, in words."""
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "text",
        list: "an array",
        dict: "an object",
    }
    return names[type(value)]


def surrogates(text: str) -> bool:
    """Whether a text contains surrogates, which are not valid Unicode."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def beginning(where: str, line: bytes) -> bytes:
    """The first line without a byte order mark; a file that is not JSON lines is refused at once."""
    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError(f"{where} is UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8 FILE")
    line = line.removeprefix(b"\xef\xbb\xbf")
    if line.lstrip().startswith(b"["):
        raise SourceError(
            f"{where} is a JSON array, not JSON lines. Write one object per line: jq -c '.[]' FILE"
        )
    return line


def not_json(value: bytes) -> str | None:
    """What is wrong with the value of a message that is not text."""
    if not value or value.isspace():
        return "the message has no value"
    if value[0] == 0:  # the first byte of schema registry messages
        return (
            "its value begins with a zero byte, as that of a schema registry does. "
            "If it is Avro, read it with --input-format avro --schema ID=FILE.avsc"
        )
    return None
