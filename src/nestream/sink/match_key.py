"""The key of a match in Kafka: a hash of what it shows, the same whenever and wherever the match is found.

Missing values are not part of it, because another run may have seen other attributes, and a whole number is
the same as an integer and as a float.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

LENGTH = 32


def match_key(line: str) -> str:
    """The key of a match, given as a JSON object."""
    text = json.dumps(_plain(json.loads(line)), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
