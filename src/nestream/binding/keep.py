"""Binds KEEP: every match must show what matches agree on, and EVERY takes a duration."""

from __future__ import annotations

from difflib import get_close_matches

from nestream.binding.declare import Declarations
from nestream.binding.groups import GroupBinding
from nestream.language.ast import KeepClause
from nestream.model.diagnostics import Diagnostic, Reporting, Severity, Span
from nestream.model.expression import Expression, Literal, aggregates, attributes
from nestream.model.keep import Keep, Kept
from nestream.model.output import Output
from nestream.model.text import print_expression, print_name
from nestream.model.time import Duration


def bind_keep(
    clause: KeepClause | None, declared: Declarations, output: Output
) -> tuple[Keep | None, list[Diagnostic]]:
    """The bound KEEP clause, and its problems."""
    if clause is None:
        return None, []
    binding = _KeepBinding(clause, declared, output)
    return binding.run(), binding.diagnostics


class _KeepBinding(Reporting):
    def __init__(self, clause: KeepClause, declared: Declarations, output: Output) -> None:
        super().__init__()
        self.clause = clause
        self.declared = declared
        self.output = output

    def run(self) -> Keep:
        clause = self.clause
        for item in clause.per:
            if isinstance(item, str):
                self.check_variable(item, clause.span)
            elif any(aggregates(item)):
                message = f"`{print_expression(item)}` is a value of a group"
                hint = "PER takes single events and their attributes"
                self.report("cannot-keep", message, item.span, hint=hint)
            else:
                for part in attributes(item):
                    self.check_variable(part.variable or "", part.span)
        every = self.every()
        forgets = every is not None or not clause.per or bool(self.variables)
        if clause.kind is Kept.FIRST and not forgets and not self.diagnostics:
            self.report(
                "unbounded-keys",
                "a stream remembers every value of PER forever",
                clause.span,
                severity=Severity.WARNING,
                hint="add a variable to PER, or EVERY with a duration, if you can",
            )
        return Keep(clause.kind, tuple(map(self.bound, clause.per)), every, clause.span)

    def bound(self, item: str | Expression) -> str | Expression:
        """The expressions that matches agree on, with `p.order.id` as a field."""
        return item if isinstance(item, str) else GroupBinding(self.declared.scopes).bound(item) or item

    @property
    def variables(self) -> list[str]:
        return [item for item in self.clause.per if isinstance(item, str)]

    def check_variable(self, name: str, span: Span) -> None:
        """Report a variable that a match does not show."""
        if name in self.output.kept:
            return
        shown = ", ".join(f"`{other}`" for other in self.output.kept)
        hint = f"a match has {shown}"
        if name in self.declared.hidden:
            message = f"EXISTS drops `{name}`, so matches cannot agree on it"
        elif name in self.declared.scopes.groups or (
            name in self.declared.scopes.of and self.declared.scopes.group_of(name)
        ):
            message = f"`{name}` is a group, and matches agree on single events"
        elif name in self.declared.scopes.of and self.declared.scopes.negated(name):
            message = f"`{name}` is negated, so a match has no event for it"
        elif name in self.declared.scopes.of:
            message = f"RETURN drops `{name}`, so matches cannot agree on it"
            hint = f"return `{name}` too, or return expressions: `{name}.ts AS ...`"
        else:
            message = f"unknown variable `{name}` in PER"
            close = get_close_matches(name, self.output.kept, 1)
            first = print_name(next(iter(self.output.kept), "a"))
            hint += f"; write an attribute with its variable: `{first}.{print_name(name)}`"
            hint = f"did you mean `{close[0]}`?" if close else hint
        self.report("cannot-keep", message, span, hint=hint)

    def every(self) -> Duration | int | None:
        every = self.clause.every
        if every is None:
            return None
        assert isinstance(every, Literal), "parameters have got their values"
        length = every.value
        if self.clause.kind is not Kept.FIRST:
            self.report(
                "bad-every",
                f"EVERY cannot be used with KEEP {self.clause.kind}",
                every.span,
                "write KEEP FIRST ... EVERY, which keeps another match after that time",
            )
        elif isinstance(length, bool) or not isinstance(length, Duration | int):
            text = print_expression(every)
            self.report("bad-every", f"`{text}` is not a duration", every.span, "write `EVERY 1 hour`")
        elif (length.microseconds if isinstance(length, Duration) else length) <= 0:
            self.report("bad-every", "EVERY takes a duration greater than 0", every.span, "leave EVERY out")
        else:
            return length
        return None
