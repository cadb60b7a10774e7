"""Reports attributes that the events do not have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from nestream.binding.kinds import a_kind
from nestream.model.diagnostics import Diagnostic
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import PATH_MARK, Attribute, column_name
from nestream.model.lazy import pa
from nestream.model.schema import Kind, Schema, kind_of
from nestream.model.text import print_name
from nestream.model.wording import listed


def unknown_attribute(
    attribute: Attribute, schema: Schema, types: Sequence[str], written: Sequence[str]
) -> Diagnostic:
    """Report an attribute that no type of its variable has; `written` are the types in the query."""
    variable = attribute.variable or ""
    if PATH_MARK in attribute.name:
        found = _unknown_field(attribute, schema)
        if found is not None:
            return found
        dotted = attribute.name.replace(PATH_MARK, ".")
        if dotted in schema.columns:
            hint = f"quote a name with a dot: `{print_name(variable)}.{print_name(dotted)}`"
            message = f"the events have no attribute `{column_name(attribute.name)}`"
            return Diagnostic("unknown-field", message, attribute.span, hint=hint)
        attribute = replace(attribute, name=column_name(attribute.name))
    known = sorted({name for name in schema.columns if any(schema.has(t, name) for t in types)})
    close = get_close_matches(attribute.name, known, 1)
    base, hyphen, rest = attribute.name.partition("-")
    if hyphen and base in known:
        hint = f"names may contain `-`: for a subtraction write `{variable}.{base} - {rest}`"
    elif close:
        hint = f"did you mean `{variable}.{close[0]}`?"
    else:
        hint = f"the attributes are {', '.join(f'`{name}`' for name in known)}"
    owner = "the" if ANY_TYPE in written else " or ".join(written)
    return Diagnostic(
        "unknown-attribute",
        f"{owner} events have no attribute `{attribute.name}`",
        attribute.span,
        hint=hint,
    )


def _unknown_field(attribute: Attribute, schema: Schema) -> Diagnostic | None:
    """What is wrong with a field of a struct; None if the column itself is missing."""
    path = attribute.name.split(PATH_MARK)
    for length in range(1, len(path)):
        owner = schema.datatype(PATH_MARK.join(path[:length]))
        if owner is None or pa.types.is_null(owner):  # of a stream, a column that may still come
            return None
        shown = f"{print_name(attribute.variable or '')}.{print_name(PATH_MARK.join(path[:length]))}"
        if not pa.types.is_struct(owner):
            message = f"`{shown}` has no fields: it is {a_kind(kind_of(owner))}"
            hint = f"write `{shown}`"
            if kind_of(owner) is Kind.STRING:
                hint = (
                    "an object in JSON lines is read as text: write its fields as columns, or read the file "
                    "with Polars or DuckDB"
                )
            hint = f"{hint}; quote a column with a dot in its name with backticks"
            return Diagnostic("unknown-field", message, attribute.span, hint=hint)
        fields = [owner.field(place).name for place in range(owner.num_fields)]
        if path[length] not in fields:
            close = get_close_matches(path[length], fields, 1)
            hint = f"the fields are {', '.join(f'`{name}`' for name in fields)}"
            hint = f"did you mean `{shown}.{close[0]}`?" if close else hint
            message = f"`{shown}` has no field `{path[length]}`"
            return Diagnostic("unknown-field", message, attribute.span, hint=hint)
    return None


def once_for_each_place(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, with one for an attribute in brackets that several types lack: `[usr]`."""
    unknown = [one for one in diagnostics if one.code == "unknown-attribute"]
    result = []
    for one in diagnostics:
        same = [other for other in unknown if other.span == one.span] if one in unknown else [one]
        if one is same[0]:
            result.append(one if len(same) == 1 else _joined(same))
    return result


def _joined(diagnostics: Sequence[Diagnostic]) -> Diagnostic:
    owners, (_, lacks, attribute) = [], diagnostics[0].message.partition(" events have no attribute ")
    for one in diagnostics:
        owner = one.message.partition(lacks)[0]
        owners += [owner] if owner not in owners else []
    hint = re.sub(r"^did you mean `[^`]*\.(\w+)`\?$", r"did you mean `\1`?", diagnostics[0].hint or "")
    return replace(diagnostics[0], message=f"{listed(owners, 'or')}{lacks}{attribute}", hint=hint or None)
