"""What a worker process of the console does with a query: check, complete, plan, run, explain, stream."""

from __future__ import annotations

import time as clock
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import nestream
from nestream.console.comparison import Comparison
from nestream.console.composites import makers_of, with_composites
from nestream.console.numbers import searched, with_numbers, with_places
from nestream.console.tables import NO_EVENT, Events, match_of, numbered, plain, sound
from nestream.data import sample, sample_names
from nestream.editor.catalog import schema_of
from nestream.editor.completion import complete
from nestream.editor.diagnostics import diagnose, fixes
from nestream.editor.formatting import layout, loses_comments
from nestream.model.counting import counted_matches
from nestream.model.python_rows import python_rows
from nestream.queries import check_rules
from nestream.show import plan_graph, timeline_of_rows
from nestream.source import SourceError, read_events

MOST_ROWS = 500
MOST_COMPLETIONS = 100
UNSEEN = "unseen-type"
"""The code of the warning for a type that no event has."""
COUNTED = 3.0
"""For how many seconds matches are counted beyond those that are shown."""
KEPT_TABLES = 3
DRAFT, DEPLOYED = "(draft)", "(deployed)"
"""The names of the queries of a trial."""
PARTLY = 1.0
"""The seconds between two partial results of a run."""


class Operations:
    """The operations by name; each takes a request and returns plain data."""

    def __init__(self, files: dict[str, str], time: str = "ts", type: str = "type") -> None:
        self.time, self.type = time, type
        """The columns of the files; the data sets have their own."""
        self.files = {name: Path(path) for name, path in files.items()}
        self.tables: OrderedDict[str, pa.Table] = OrderedDict()
        self.schemas: dict[str, nestream.Schema] = {}
        """The schemas of data sets and files, by name."""
        self.stream: Any = None
        self.events = Events("ts", "type")
        self.comparison = Comparison()
        self.name = ""
        self.partly: Callable[[dict[str, Any]], None] = lambda _: None
        """Called from time to time with what a run has found so far."""
        self.by_name: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "check": self.check,
            "complete": self.complete,
            "plan": self.plan,
            "run": self.run,
            "why": self.why,
            "timeline": self.timeline,
            "measure": self.measure,
            "rules": self.rules,
            "data": self.data,
            "start": self.start,
            "push": self.push,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what is requested; an error in the query or the events is an answer too."""
        try:
            return self.by_name[request["operation"]](request)
        except nestream.QueryError as error:
            return {"ok": False, "diagnostics": error.as_dicts(), "error": str(error)}
        except nestream.TooManyMatchesError as error:
            return {"ok": False, "error": str(error)}
        except MemoryError:
            return {"ok": False, "error": "It needed more memory than a run may use."}
        except (nestream.EventError, ValueError, TypeError, OSError, pa.ArrowException) as error:
            return {"ok": False, "error": str(error)[:4000]}

    # -- queries ---------------------------------------------------------------------------------------------

    def check(self, request: dict[str, Any]) -> dict[str, Any]:
        """What is wrong with a query, for the events of a source if one is named, and how to fix it."""
        text = str(request.get("text"))
        schema = self._schema(request)
        answer: dict[str, Any] = {"ok": True}
        try:
            query = nestream.query(request["text"])
            found = [*query.warnings]
            if _has_source(request):
                table, time, type = self._read_by(query, request)
                query.check(table.schema, time, type)
                found += query.infer_types(table, type)[1]
            found += [each for each in diagnose(text, schema) if each.code == UNSEEN]
            formatted = None if loses_comments(text) else layout(text)
            answer |= {"dialect": query.dialect.value, "formatted": formatted}
        except nestream.QueryError as error:
            found = list(error.diagnostics)
            answer = {"ok": False, "error": str(error)}
        told = nestream.QueryError(found, text).as_dicts()
        for each, one in zip(found, told, strict=True):
            one["fixes"] = [asdict(fix) for fix in fixes(text, each, schema)]
        return {**answer, "diagnostics": told}

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """What could be written at an offset of a text, which need not be a query yet."""
        found = complete(request["text"], int(request["offset"]), self._schema(request))
        return {"ok": True, "completions": [asdict(each) for each in found[:MOST_COMPLETIONS]]}

    def _schema(self, request: dict[str, Any]) -> nestream.Schema | None:
        """The types and attributes of the source of a request, with the composite types of the job."""
        if not _has_source(request):
            return None
        name = "" if "events" in request else str(request["data"])
        if name not in self.schemas:
            table, time, type = self._source(request)
            self.schemas[name] = schema_of(table, time, type)
        schema = self.schemas[name] if name else self.schemas.pop(name)
        made = [nestream.query(text).plan.output.into for text in (request.get("makers") or {}).values()]
        return replace(schema, types={**schema.types, **{str(into): frozenset[str]() for into in made}})

    def plan(self, request: dict[str, Any]) -> dict[str, Any]:
        """The plan as a graph, nested and rewritten; measured if there are events."""
        query = nestream.query(request["text"])
        settings: dict[str, Any] = {}
        if _has_source(request):
            table, time, type = self._read_by(query, request)
            settings = {"analyze": table, "time": time, "type": type}
        answer: dict[str, Any] = {"ok": True, "explain": query.explain(**settings)}
        for name, rewritten in (("nested", False), ("rewritten", True)):
            try:
                answer[name] = plain(plan_graph(query, rewritten=rewritten, **settings).json())
            except ValueError as error:  # there may be no normal form
                answer[name] = {"nodes": [], "edges": [], "error": str(error)}
        return answer

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """The first matches over a source, and the number of matches."""
        query = nestream.query(request["text"])
        table, time, type = self._read_by(query, request, places=True)
        query, _ = query.infer_types(table, type)  # `check` reports what is inferred
        begin = clock.perf_counter()
        found: list[dict[str, Any]] = []

        def answer(total: int | None) -> dict[str, Any]:
            """What was found so far, out of a total or of more than that."""
            known = f"more than {counted_matches(len(found))}" if total is None else counted_matches(total)
            return {
                "ok": True,
                "rows": found,
                "total": len(found) if total is None else total,
                "more": total is None,
                "events": table.num_rows,
                "left_out": len(request["events"]) - table.num_rows if "events" in request else 0,
                "seconds": clock.perf_counter() - begin,
                "notes": query.unseen(table, type),
                "told": known,
                "timeline": self._timeline(query, found, request, total),
                "time": time,
                "type": type,
            }

        told = 0.0
        for batch in query.batches(table, time=time, type=type):
            rows = python_rows(batch.slice(0, MOST_ROWS - len(found)))
            found += with_numbers([match_of(match, str(request.get("name", "query"))) for match in rows])
            if found and clock.perf_counter() >= told + PARTLY:
                self.partly(answer(None))
                told = clock.perf_counter()
            if len(found) >= MOST_ROWS:
                break
        total: int | None = len(found)
        if total == MOST_ROWS:
            total = query.count_within(COUNTED, table, time=time, type=type)
        return answer(total)

    def timeline(self, request: dict[str, Any]) -> dict[str, Any]:
        """The timeline of rows that were found before."""
        query, rows = nestream.query(request["text"]), request["rows"][:MOST_ROWS]
        return {"ok": True, "timeline": self._timeline(query, rows, request, len(rows))}

    def _timeline(
        self, query: nestream.Query, rows: list[dict[str, Any]], request: dict[str, Any], total: int | None
    ) -> Any:
        """The timeline of matches, with what their negations examined among the events of the source."""
        table = None
        time, type = _columns(request)
        if _has_source(request):
            table, time, type = self._source(request, whole=True)
            table = with_composites(table, makers_of(request, query), time, type)
            query, _ = query.infer_types(table, type)
        first, more = int(request.get("first", 0)), total is None
        drawn = timeline_of_rows(
            query, rows, table, first=first, time=time, type=type, total=total, more=more
        )
        return plain(drawn.json())

    def why(self, request: dict[str, Any]) -> dict[str, Any]:
        """Why the picked events are not a match; sentences use the page's numbers of events."""
        query = nestream.query(request["text"])
        table, time, type = self._source(request, whole=True)
        picked = [int(place) for place in request["picked"]]
        if not picked or not all(0 <= place < table.num_rows for place in picked):
            raise ValueError("Some of the picked events are gone; pick later ones.")
        if NO_EVENT in table[type].take(picked).to_pylist():
            raise ValueError("One of the picked events has no time or type, so no query can match it.")
        table = with_composites(table, makers_of(request, query), time, type)
        first = int(request.get("first", 0))
        query, _ = query.infer_types(table, type)
        told = query.why(table, picked, time=time, type=type, first=first)
        return {"ok": True, "why": plain(told.json())}

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """How long each rule takes over the events of a source."""
        table, time, type = self._source(request)
        measured = []
        for name, text in request["rules"].items():
            try:
                query = nestream.query(text)
                events = with_composites(table, makers_of({**request, "name": name}, query), time, type)
                query, _ = query.infer_types(events, type)
                begin = clock.perf_counter()
                found = query.count(events, time=time, type=type)
                measured.append({"name": name, "seconds": clock.perf_counter() - begin, "matches": found})
            except (nestream.QueryError, nestream.EventError, ValueError) as error:
                measured.append({"name": name, "error": str(error)[:500]})
        return {"ok": True, "events": table.num_rows, "rules": measured}

    def rules(self, request: dict[str, Any]) -> dict[str, Any]:
        """Whether rules may change like this: each must be a query, and all must fit together on a stream."""
        check_rules(request["texts"], request["changes"])
        return {"ok": True}

    def data(self, request: dict[str, Any]) -> dict[str, Any]:
        """The events of a source that contain a text, from an offset on."""
        table, time, type = self._source(request)
        wanted = str(request.get("text", ""))
        kind = request.get("kind") or None
        most = int(request.get("limit", 100))
        rows = searched(lambda: _of_kind(table, kind, type), wanted, time, type, most)
        kinds = sorted(str(name) for name in table.column(type).unique().to_pylist() if name is not None)
        columns = {"time": time, "type": type, "columns": table.column_names, "types": kinds[:200]}
        return {"ok": True, "total": table.num_rows, "rows": rows, **columns}

    # -- a stream --------------------------------------------------------------------------------------------

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start matching events as they arrive, with the deployed rule beside the query if there is one."""
        query = nestream.query(request["text"])
        time, type = _columns(request)
        self.events = Events(time, type)
        self.comparison, self.name = Comparison(), str(request["name"])
        members: dict[str, nestream.Query] = {DRAFT: query}
        if request.get("deployed"):
            with suppress(nestream.QueryError):  # a rule that is not a query finds nothing
                members[DEPLOYED] = nestream.query(request["deployed"])
        seconds = float(request.get("lateness", 0))
        lateness: Any = timedelta(seconds=seconds) if seconds else 0  # 0 is for integer times as well
        counted: dict[str, Any] = {"late": lambda _: None, "dead_letter": lambda *_: None}
        chosen = nestream.queries({**makers_of(request, query), **members})
        self.stream = chosen.stream(time=time, type=type, lateness=lateness, **counted)
        return {"ok": True}

    def push(self, request: dict[str, Any]) -> dict[str, Any]:
        """Take more events of the stream; return what their matches add to the comparison."""
        begin = clock.perf_counter()
        events = with_places(self.events.table(request["events"]), int(request.get("first", 0)))
        found = self.stream.push_batch(events)
        number = compared = 0
        for match in python_rows(found.filter(pc.is_in(found["query"], pa.array([DRAFT, DEPLOYED])))):
            deployed = match["query"] == DEPLOYED
            number, compared = number + (not deployed), compared + 1
            (row,) = with_numbers([match_of({**match, "query": self.name}, self.name)])
            self.comparison.add(row, deployed=deployed)
        answer = {"ok": True, "found": number, "compared": compared, "held": plain(self.stream.describe())}
        answer["counts"] = self.comparison.counts()
        answer["rows"] = self.comparison.rows() if found.num_rows else None
        return {**answer, "busy": clock.perf_counter() - begin}

    # -- sources ---------------------------------------------------------------------------------------------

    def _read_by(
        self, query: nestream.Query, request: dict[str, Any], places: bool = False
    ) -> tuple[pa.Table, str, str]:
        """The events that a query reads, with the composite events of the job's queries."""
        table, time, type = self._source(request, places=places)
        return with_composites(table, makers_of(request, query), time, type), time, type

    def _source(
        self, request: dict[str, Any], whole: bool = False, places: bool = False
    ) -> tuple[pa.Table, str, str]:
        """The events that a request names, or carries, and their columns of time and type.

        Carried events may have neither time nor type. Together they keep their numbers; `places` adds these
        as a column.
        """
        if "events" in request:
            time, type = _columns(request)
            table = Events(time, type).table(request["events"])
            table = with_places(table, int(request.get("first", 0))) if places else table
            return (numbered if whole else sound)(table, time, type), time, type
        name = str(request["data"])
        columns = (self.time, self.type) if name in self.files else ("ts", "type")
        table = self._named(name)
        return with_places(table) if places else table, *columns

    def _named(self, name: str) -> pa.Table:
        if name in self.tables:
            self.tables.move_to_end(name)
            return self.tables[name]
        if name in self.files:
            self.tables[name] = self._read(name)
        elif name in sample_names():
            self.tables[name] = sample(name)
        else:
            raise ValueError(f"There is no data set {name[:80]!r}.")
        while len(self.tables) > KEPT_TABLES:
            self.tables.popitem(last=False)
        return self.tables[name]

    def _read(self, name: str) -> pa.Table:
        path = self.files[name]
        try:
            return read_events(path, self.time, self.type).read_all()
        except (SourceError, OSError) as error:  # pages know the name, and not where the file is
            raise ValueError(str(error).replace(str(path), name)) from None


def _has_source(request: dict[str, Any]) -> bool:
    return bool(request.get("data")) or "events" in request


def _columns(request: dict[str, Any]) -> tuple[str, str]:
    return str(request.get("time", "ts")), str(request.get("type", "type"))


def _of_kind(table: pa.Table, kind: str | None, type: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a type, or all, with their places."""
    place = 0
    for batch in table.to_batches(max_chunksize=4096):
        for event in python_rows(batch):
            shown = plain(event)
            if kind is None or shown.get(type) == kind:
                yield place, shown
            place += 1
