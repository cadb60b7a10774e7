"""Exports the matches of a job as CSV or Parquet: one row per match, with its annotations.

The columns are those of the match (its identity, rule, severity and times), its returned values, and the
attributes of its events as `variable.attribute`. A group has lists, as JSON text. The sink is read once and
kept in a file meanwhile, so memory does not depend on the number of matches.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.console.follow import Follower, match_row
from nestream.console.live import identity
from nestream.source import SourceError

FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
MOST_COLUMNS = 500
REST = "more"
"""The column with the values beyond these columns, as one JSON object."""
CHUNK = 5_000
OWN = ("id", "rule", "title", "severity", "match_start", "match_end", "version", "status", "comments")
MOMENT = pa.timestamp("us", "UTC")


class ExportError(Exception):
    """An export that cannot be made, and why."""


class Export:
    """The matches of a sink as rows of one table. `about` maps a rule's name to its title and severity."""

    def __init__(
        self,
        place: str,
        only: str | None,
        about: Callable[[str], tuple[str, str] | None],
        said: dict[str, dict[str, Any]],
        wanted: frozenset[str] | None = None,
    ) -> None:
        self._place, self._only, self._about, self._said, self._wanted = place, only, about, said, wanted
        self._columns: dict[str, set[str]] = {name: set() for name in OWN}
        """The columns in the order of their first values, each with the kinds of its values."""

    def write(self, path: Path, format: str) -> int:
        """Write the file; return the number of matches in it."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
            number = 0
            for row in self._rows():
                spool.write(json.dumps(row, ensure_ascii=True) + "\n")
                number += 1
            spool.seek(0)
            with path.open("wb") as file:
                (self._csv if format == "csv" else self._parquet)(spool, file)
        return number

    # -- reading -------------------------------------------------------------------------------------------

    def _rows(self) -> Iterator[dict[str, Any]]:
        sink = Follower(self._place, "match_end", None)
        try:
            for rows in sink.everything():
                for given in rows:
                    row = match_row(given, self._only)
                    name = identity(row)
                    if self._wanted is None or name in self._wanted:
                        about = self._about(str(row.get("query", "")))
                        if about is not None:
                            yield self._flat(row, name, *about)
        except (SourceError, OSError) as error:
            raise ExportError(f"The matches cannot be read: {error}") from None
        finally:
            sink.close()

    def _flat(self, row: dict[str, Any], name: str, title: str, severity: str) -> dict[str, Any]:
        said = self._said.get(name, {})
        comments = [comment["text"] for comment in said.get("comments", ())]
        values: dict[str, Any] = {
            "id": name,
            "rule": row.get("query"),
            "title": title,
            "severity": severity,
            "match_start": row.get("match_start"),
            "match_end": row.get("match_end"),
            "version": row.get("version"),
            "status": said.get("status"),
            "comments": "\n".join(comments) or None,
        }
        given = row.get("values")
        for key, value in (given if isinstance(given, dict) else {}).items():
            values.setdefault(f"values.{key}" if key in (*OWN, REST) else key, value)
        members: dict[str, list[Any]] = {}
        events = row.get("events")
        for part in events if isinstance(events, list) else ():
            for key, value in (part.get("event") or {}).items():
                members.setdefault(f"{part.get('variable', '')}.{key}", []).append(value)
        values |= {key: held[0] if len(held) == 1 else held for key, held in members.items()}
        rest = {}
        for key in list(values):
            if key not in self._columns and len(self._columns) >= MOST_COLUMNS:
                rest[key] = values.pop(key)
            else:
                values[key] = self._noted(key, values[key])
        return {**values, REST: self._noted(REST, rest)} if rest else values

    def _noted(self, key: str, value: Any) -> Any:
        if isinstance(value, list | dict):
            value = json.dumps(value, ensure_ascii=False, default=str)
        elif not isinstance(value, str | int | float | bool | None):
            value = str(value)
        kinds = self._columns.setdefault(key, set())
        if value is not None:
            kinds.add(_kind(value))
        return value

    # -- writing -------------------------------------------------------------------------------------------

    def _csv(self, spool: IO[str], file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
        rows = csv.DictWriter(text, list(self._columns))
        rows.writeheader()
        for line in spool:
            rows.writerow({name: _harmless(value) for name, value in json.loads(line).items()})
        text.flush()
        text.detach()

    def _parquet(self, spool: IO[str], file: IO[bytes]) -> None:
        schema = pa.schema([(name, _type(kinds)) for name, kinds in self._columns.items()])
        with pq.ParquetWriter(file, schema) as writer:
            for rows in _chunks(spool):
                columns = [
                    pa.array([_fitted(row.get(field.name), field.type) for row in rows], field.type)
                    for field in schema
                ]
                writer.write_table(pa.table(columns, schema=schema))


def _chunks(spool: IO[str]) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for line in spool:
        rows.append(json.loads(line))
        if len(rows) == CHUNK:
            yield rows
            rows = []
    yield rows


def _harmless(value: Any) -> Any:
    """A value for CSV: text that a spreadsheet would compute as a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else "text"
    if isinstance(value, float):
        return "float"
    return "time" if _moment(value) is not None else "text"


def _type(kinds: set[str]) -> pa.DataType:
    if kinds == {"time"}:
        return MOMENT
    for wanted, kind in (({"bool"}, pa.bool_()), ({"int"}, pa.int64()), ({"int", "float"}, pa.float64())):
        if kinds and kinds <= wanted:
            return kind
    return pa.string()


def _fitted(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kind == MOMENT:
        return _moment(value)
    if pa.types.is_floating(kind):
        return float(value)
    return str(value) if pa.types.is_string(kind) else value


def _moment(value: str) -> datetime | None:
    """The time in a text; a date alone, or a time of day alone, stays text."""
    if len(value) < 16 or value[4:5] != "-":
        return None
    try:
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
