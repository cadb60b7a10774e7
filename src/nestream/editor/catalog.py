"""The event types and attributes that completion and hover know: from a schema, and from the text itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lark import Token

from nestream.editor.declared import NAMES, Sort, Variable, name_of
from nestream.language.type_header import header_types
from nestream.model.lazy import pa
from nestream.model.schema import Kind, Schema, kind_of

_OWN = {"ts": "the time of the event", "type": "the type of the event"}


def schema_of(events: pa.Table, time: str = "ts", type: str = "type") -> Schema:
    """The schema of a table of events, with the types that occur and the attributes that each has.

    An attribute belongs to a type if some event of the type has a value.
    """
    columns = [name for name in events.column_names if name not in (time, type)]
    sums = events.group_by(type).aggregate([(name, "count") for name in columns])
    types = {
        row[type]: [name for name in columns if row[f"{name}_count"]]
        for row in sums.to_pylist()
        if row[type] is not None
    }
    return Schema.of(events.schema, time, type, types)


@dataclass(frozen=True)
class Catalog:
    """What is known of event types and attributes for one text."""

    schema: Schema | None
    variables: Mapping[str, Variable]
    used: Mapping[str, tuple[str, ...]]
    """The attributes that the text reads of each variable."""
    header: Mapping[str, tuple[str, ...]]
    """The attributes that the text declares in its `// types:` header."""

    @classmethod
    def of(
        cls, text: str, tokens: Sequence[Token], variables: Mapping[str, Variable], schema: Schema | None
    ) -> Catalog:
        """The catalog of a text, of the tokens that count, and of a schema."""
        used: dict[str, tuple[str, ...]] = {}
        for first, dot, second in zip(tokens, tokens[1:], tokens[2:], strict=False):
            if dot == "." and first.type in NAMES and second.type in NAMES:
                name = name_of(first)
                used[name] = tuple(dict.fromkeys((*used.get(name, ()), name_of(second))))
        return cls(schema, variables, used, header_types(text)[0])

    def event_types(self) -> list[str]:
        """The names of event types, those of the events first."""
        known = sorted(self.schema.types) if self.schema is not None else []
        named = (kind for variable in self.variables.values() for kind in variable.types)
        return list(dict.fromkeys((*known, *self.header, *named)))

    def attributes(self, path: Sequence[str]) -> dict[str, str]:
        """What may follow `a.`, or `a.order.`, with its kind; the path is what stands before the last dot."""
        variable = self.variables.get(path[0])
        if variable is not None and variable.members:
            return self._of_expression(variable, path[1:])
        types = variable.types if variable is not None else ()
        if len(path) > 1:
            return self._fields(path[1:])
        found = self._columns(types) or self._guessed(path[0], types)
        return {**found, **{name: text for name, text in _OWN.items() if name not in found}}

    def of_type(self, name: str) -> dict[str, str]:
        """The attributes of an event type, with their kinds."""
        return self._columns((name,))

    def shared(self) -> dict[str, str]:
        """The attributes that every positive event variable has: what an equivalence test may name."""
        each = [
            self._columns(variable.types) or self._guessed(name, variable.types)
            for name, variable in self.variables.items()
            if not variable.negated and not variable.members
        ]
        if not each:
            return {}
        return {name: kind for name, kind in each[0].items() if all(name in others for others in each)}

    def kind(self, path: Sequence[str]) -> str | None:
        """The kind of an attribute, in words; None where it is not known."""
        return self.attributes(path[:-1]).get(path[-1]) if len(path) > 1 else None

    def _of_expression(self, variable: Variable, rest: Sequence[str]) -> dict[str, str]:
        if rest:
            return self.attributes(rest)
        found = {name: self.variables[name].described for name in variable.members if name in self.variables}
        if variable.sort is Sort.EXPRESSION:
            found |= {"ts": "the time of its first event", "te": "the time of its last event"}
        return found

    def _columns(self, types: Iterable[str]) -> dict[str, str]:
        """The columns that some of the types have; all for a type that the schema does not know."""
        if self.schema is None:
            return {}
        kinds = tuple(types)
        return {
            name: str(kind_of(datatype))
            for name, datatype in self.schema.columns.items()
            if not kinds or any(self.schema.has(kind, name) for kind in kinds)
        }

    def _guessed(self, variable: str, types: Iterable[str]) -> dict[str, str]:
        """Without a schema: the attributes that the text declares or uses for events of the same types."""
        kinds = set(types)
        names = [name for kind in kinds for name in self.header.get(kind, ())]
        for other, attributes in self.used.items():
            known = self.variables.get(other)
            if other == variable or (known is not None and kinds & set(known.types)):
                names += attributes
        return dict.fromkeys(names, str(Kind.UNKNOWN))

    def _fields(self, path: Sequence[str]) -> dict[str, str]:
        """The fields of a struct column."""
        if self.schema is None:
            return {}
        datatype = self.schema.columns.get(self.schema.column(path[0]))
        for name in path[1:]:
            if datatype is None or not pa.types.is_struct(datatype) or datatype.get_field_index(name) < 0:
                return {}
            datatype = datatype.field(name).type
        if datatype is None or not pa.types.is_struct(datatype):
            return {}
        fields = (datatype.field(place) for place in range(datatype.num_fields))
        return {field.name: str(kind_of(field.type)) for field in fields}
