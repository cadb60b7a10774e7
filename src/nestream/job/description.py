"""job.json: the name of a job, the places of its parts, and what of its matches is worth showing.

Whoever runs a job writes the file, and a person may edit it. Every key is optional. A place is a path,
relative to the folder of job.json, or an address with `://`.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nestream.job.checkpoint import replace_file
from nestream.model.lengths import seconds_of
from nestream.model.wording import reason

FILE = "job.json"
PROGRESS = "progress.json"
SEVERITIES = ("high", "medium", "low")
LARGEST = 1 << 20
"""The maximum size of a file that describes something, in bytes."""
PLACES = ("rules", "events", "matches", "late", "progress", "plan")
TEXTS = ("title", "runtime", "time", "type", "format", "metrics", "spark", "entity", "place")
MAPPINGS = ("titles", "severities")
LISTS = ("facets", "schemas")
OTHERS = ("watermark", "trigger", "simulation", "live_rules", "webhooks")
_WEBHOOK = '{"url": "https://HOST/PATH", "severities": ["high"]}'
KEYS = (*TEXTS, *PLACES, *LISTS, *MAPPINGS, *OTHERS)


@dataclass(frozen=True)
class Webhook:
    """An address that is sent new matches, of some severities."""

    address: str
    severities: tuple[str, ...] = SEVERITIES


class JobError(ValueError):
    """A folder that is not a job, or a job.json that cannot be used: what is wrong, and what to write."""


@dataclass(frozen=True)
class Description:
    """The contents of job.json. Places are absolute paths or addresses."""

    folder: Path
    title: str
    runtime: str | None = None
    """`spark` or `embedded`, if known."""
    time: str = "ts"
    type: str = "type"
    format: str | None = None
    """The format of the events, if there is no suffix."""
    schemas: tuple[str, ...] = ()
    """The schemas of Avro events, as `open_source` takes them."""
    watermark: str = "0 seconds"
    lateness: float = 0.0
    """The watermark in seconds."""
    trigger: float | None = None
    """The seconds between two micro-batches; None if one begins when the previous one has ended."""
    rules: str | None = None
    events: str | None = None
    matches: str | None = None
    late: str | None = None
    progress: str | None = None
    plan: str | None = None
    live_rules: bool = False
    """Whether the job takes changes of its rules while it runs."""
    webhooks: tuple[Webhook, ...] = ()
    metrics: str | None = None
    """The address of the job's page for Prometheus."""
    spark: str | None = None
    """The address of Spark's own page."""
    entity: str | None = None
    """The attribute that names whom or what a match is about."""
    place: str | None = None
    """The attribute that names where it happened."""
    facets: tuple[str, ...] = ()
    """The attributes to count matches by."""
    titles: Mapping[str, str] = field(default_factory=dict)
    severities: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Notes about the file for a person: keys that are not read."""


def read_description(place: str | os.PathLike[str]) -> Description:
    """The description in a folder, or in a job.json; raises `JobError`."""
    given = Path(place)
    folder = given.parent if given.name == FILE else given
    read = read_object(folder / FILE)
    if "name" in read and "title" not in read:  # as earlier versions wrote it
        read["title"] = read["name"]
    texts = {key: _text(read, key) for key in TEXTS}
    places = {key: _placed(folder, _text(read, key)) for key in PLACES}
    watermark = read.get("watermark", "0 seconds")
    trigger = read.get("trigger")
    severities = _mapping(read, "severities", '{"too-large": "high"}')
    for rule, severity in severities.items():
        if severity not in SEVERITIES:
            raise JobError(
                f"{FILE}: the severity of {rule!r} is {severity!r}\n  hint: write {', '.join(SEVERITIES)}"
            )
    for key in ("metrics", "spark"):
        if texts[key] is not None and not str(texts[key]).startswith(("http://", "https://")):
            raise JobError(f'{FILE}: {key} is {texts[key]!r}\n  hint: write an address, "http://HOST:PORT/"')
    return Description(
        folder,
        texts.pop("title") or folder.resolve().name,
        time=texts.pop("time") or "ts",
        type=texts.pop("type") or "type",
        **texts,
        **places,
        watermark=str(watermark),
        lateness=_seconds(watermark, "watermark", "`10 seconds`", numbers=False),
        trigger=None if trigger is None else _seconds(trigger, "trigger", "1.0, or `500 ms`") or None,
        facets=_list(read, "facets", '["user", "city"]'),
        schemas=_list(read, "schemas", '["payment.avsc"]'),
        titles=_mapping(read, "titles", '{"too-large": "Payment too large"}'),
        severities=severities,
        live_rules=read.get("live_rules") is True,
        webhooks=tuple(_webhook(one) for one in _webhooks(read)),
        notes=tuple(_unknown(key) for key in read if key not in (*KEYS, "name")),
    )


def update_description(folder: str | os.PathLike[str], decided: Mapping[str, Any]) -> Path:
    """Write the keys that a run decides; None removes one. All other keys stay as they are."""
    path = Path(folder) / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = read_object(path) if path.exists() else {}
        new = {key: value for key, value in {**there, **decided}.items() if value is not None}
        if new != there:
            replace_file(path, json.dumps(new, indent=1, ensure_ascii=False).encode() + b"\n", durable=False)
        read_description(path)
    except OSError as error:
        raise JobError(f"cannot write {path}: {reason(error)}\n  hint: name another folder") from None
    return path


def placed(place: str, folder: Path) -> str:
    """A place as job.json writes it: relative if it is below the folder, so that the folder can be moved."""
    if "://" in place:
        return place
    path, root = Path(place).absolute(), folder.absolute()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of a small file; raises `JobError`."""
    try:
        with path.open("rb") as file:
            read = file.read(LARGEST + 1)
        if len(read) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MB")
        found = json.loads(read)
    except FileNotFoundError:
        if path.name != FILE:
            raise JobError(f"there is no file {path}, which {FILE} names as its plan") from None
        raise JobError(
            f"there is no {FILE} in {path.parent}\n  hint: name the folder of a job: "
            f"`nestream stream ... --job {path.parent}` and `nestream demo hospital` make one"
        ) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise JobError(f"{path} cannot be read: {problem}") from None
    if not isinstance(found, dict):
        raise JobError(f"{path} is not a JSON object\n  hint: begin it with {{ and end it with }}")
    return found


def _text(read: dict[str, Any], key: str) -> str | None:
    value = read.get(key)
    if value is None or (isinstance(value, str) and value):
        return value
    raise JobError(
        f'{FILE}: {key} is {_shown(value)}\n  hint: write a text, such as "{key}": "{_example(key)}"'
    )


def _example(key: str) -> str:
    examples: dict[str, str] = {"title": "Payments", "entity": "user", "place": "city", "time": "ts"}
    return examples.get(key, key)


def _placed(folder: Path, place: str | None) -> str | None:
    return place if place is None or "://" in place else str(folder / place)


def _list(read: dict[str, Any], key: str, example: str) -> tuple[str, ...]:
    given = read.get(key, [])
    if not isinstance(given, list) or not all(isinstance(name, str) and name for name in given):
        raise JobError(f"{FILE}: {key} is {_shown(given)}\n  hint: write a list of texts: {example}")
    return tuple(dict.fromkeys(given))


def _mapping(read: dict[str, Any], key: str, example: str) -> dict[str, str]:
    given = read.get(key, {})
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise JobError(f"{FILE}: {key} is {_shown(given)}\n  hint: write texts by rule: {example}")
    return given


def _webhooks(read: dict[str, Any]) -> list[Any]:
    given = read.get("webhooks", [])
    if not isinstance(given, list):
        raise JobError(f"{FILE}: webhooks is {_shown(given)}\n  hint: write a list: [{_WEBHOOK}]")
    return given


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is not a number
        return False


def _webhook(given: Any) -> Webhook:
    severities = given.get("severities", list(SEVERITIES)) if isinstance(given, dict) else None
    address = given.get("url") if isinstance(given, dict) else None
    if not isinstance(address, str) or not _is_web_address(address):
        raise JobError(f"{FILE}: a webhook is {_shown(given)}\n  hint: write {_WEBHOOK}")
    if not isinstance(severities, list) or not severities or not all(one in SEVERITIES for one in severities):
        raise JobError(
            f"{FILE}: the severities of a webhook are {_shown(severities)}\n"
            f"  hint: write a list of {', '.join(SEVERITIES)}"
        )
    return Webhook(address, tuple(severities))


def _seconds(given: Any, name: str, example: str, *, numbers: bool = True) -> float:
    try:
        if not numbers and not isinstance(given, str):
            raise ValueError(f"the {name} is {_shown(given)}, without a unit")
        return seconds_of(given, name)
    except (TypeError, ValueError) as wrong:
        problem = str(wrong).partition("\n")[0]
        raise JobError(f"{FILE}: {problem}\n  hint: write {example}") from None


def _unknown(key: str) -> str:
    close = difflib.get_close_matches(key, KEYS, n=1)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    return f"{FILE} has a key `{key[:80]}` that the console does not read{hint}"


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:80]
