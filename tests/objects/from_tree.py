"""Builds the objects that a person would write for a syntax tree, with the public names alone."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from nestream import (
    Expr,
    Pattern,
    all_of,
    any_of,
    col,
    equal,
    event,
    exists,
    fn,
    lit,
    not_,
    param,
    same,
    seq,
    when,
)
from nestream.language import ast
from nestream.language.ast import Operator, Step
from nestream.model import expression as e
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import PATH_MARK

OPERATORS = {Operator.SEQ: seq, Operator.AND: all_of, Operator.OR: any_of}
AGGREGATES = {"avg": "mean", "stddev": "std", "every": "all"}


# ---- queries and patterns ----------------------------------------------------------------------------------


def query_of(tree: ast.Query) -> Pattern:
    """The objects of a whole query."""
    query = pattern_of(tree.pattern)
    if tree.where is not None:
        query = query.where(expr_of(tree.where))
    if tree.window is not None:
        query = query.within(str(tree.window))
    if tree.returns:
        query = query.returning(*map(_item, tree.returns))
    if tree.into is not None:
        query = query.into(tree.into.name)
    if tree.keep is not None:
        every: Any = None
        if isinstance(tree.keep.every, e.Parameter):
            every = param(tree.keep.every.name)
        elif tree.keep.every is not None:
            length = tree.keep.every.value
            every = length if isinstance(length, int) else str(length)
        per = [event(name=item) if isinstance(item, str) else expr_of(item) for item in tree.keep.per]
        query = query.keep(tree.keep.kind.lower(), per=per, every=every)  # type: ignore[arg-type]
    if tree.limit is not None:
        query = query.limit(param(tree.limit.name) if isinstance(tree.limit, e.Parameter) else tree.limit)
    return query.sase() if tree.sase else query


def _item(item: ast.ReturnVariable | ast.ReturnExpression) -> Pattern | Expr:
    if isinstance(item, ast.ReturnVariable):
        return event(name=item.variable)
    value = expr_of(item.expression)
    return value if item.name is None else value.alias(item.name)


@singledispatch
def pattern_of(tree: Any) -> Pattern:
    """The objects of a pattern."""
    raise NotImplementedError(f"no object for {type(tree).__name__}")


@pattern_of.register
def _(tree: ast.Primitive) -> Pattern:
    made = event(None if tree.types == (ANY_TYPE,) else list(tree.types), tree.variable)
    if tree.step is not Step.ANY:
        made = made.next() if tree.step is Step.NEXT else made.directly()
    return made.filter(*map(expr_of, tree.predicates))


@pattern_of.register
def _(tree: ast.Composite) -> Pattern:
    parts = [*map(pattern_of, tree.components), *map(expr_of, tree.predicates)]
    made: Pattern = OPERATORS[tree.operator](*parts)  # type: ignore[operator]
    if tree.variable is not None:
        made = made.named(tree.variable)
    for inner in tree.windows:
        made = made.within(str(inner.window), inner=True)
    return made


@pattern_of.register
def _(tree: ast.Repeated) -> Pattern:
    made = pattern_of(tree.body).repeat(tree.least, tree.most)
    return made if tree.variable is None else made.named(tree.variable)


@pattern_of.register
def _(tree: ast.Negation) -> Pattern:
    return not_(pattern_of(tree.body))


@pattern_of.register
def _(tree: ast.Exists) -> Pattern:
    return exists(list(tree.variables), pattern_of(tree.body))


# ---- expressions -------------------------------------------------------------------------------------------


@singledispatch
def expr_of(tree: Any) -> Expr:
    """The object of an expression."""
    raise NotImplementedError(f"no object for {type(tree).__name__}")


@expr_of.register
def _(tree: e.Literal) -> Expr:
    return lit(tree.value)


@expr_of.register
def _(tree: e.Parameter) -> Expr:
    return param(tree.name)


@expr_of.register
def _(tree: e.Attribute) -> Expr:
    if tree.variable is None:
        return col(tree.name)
    first, *rest = [*([] if tree.inner is None else [tree.inner]), *tree.name.split(PATH_MARK)]
    found = event(name=tree.variable)[first]
    for field in rest:
        found = found[field]
    return found


@expr_of.register
def _(tree: e.Negative) -> Expr:
    return -expr_of(tree.operand)


@expr_of.register
def _(tree: e.Arithmetic) -> Expr:
    left, right = expr_of(tree.left), expr_of(tree.right)
    match tree.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case _:
            return left % right


@expr_of.register
def _(tree: e.Comparison) -> Expr:
    if len(tree.operands) > 2:
        return equal(*map(expr_of, tree.operands))
    left, right = map(expr_of, tree.operands)
    match tree.operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


@expr_of.register
def _(tree: e.Not) -> Expr:
    return ~expr_of(tree.operand)


@expr_of.register
def _(tree: e.And) -> Expr:
    found = expr_of(tree.operands[0])
    for operand in tree.operands[1:]:
        found = found & expr_of(operand)
    return found


@expr_of.register
def _(tree: e.Or) -> Expr:
    found = expr_of(tree.operands[0])
    for operand in tree.operands[1:]:
        found = found | expr_of(operand)
    return found


@expr_of.register
def _(tree: e.In) -> Expr:
    values = list(map(expr_of, tree.values))
    operand = expr_of(tree.operand)
    return operand.is_not_in(values) if tree.negated else operand.is_in(values)


@expr_of.register
def _(tree: e.Between) -> Expr:
    operand, low, high = map(expr_of, (tree.operand, tree.low, tree.high))
    return operand.is_not_between(low, high) if tree.negated else operand.is_between(low, high)


@expr_of.register
def _(tree: e.IsNull) -> Expr:
    operand = expr_of(tree.operand)
    return operand.is_not_null() if tree.negated else operand.is_null()


@expr_of.register
def _(tree: e.Call) -> Expr:
    first, *rest = map(expr_of, tree.arguments)
    if tree.function != "case":
        if " " in tree.function or tree.function in ("like", "matches"):
            found: Expr = getattr(first, tree.function.replace(" ", "_"))(*rest)
            return found
        called: Expr = getattr(fn, tree.function)(first, *rest)
        return called
    case = when(first).then(rest.pop(0))
    while len(rest) > 1:
        case = case.when(rest.pop(0)).then(rest.pop(0))
    return case.otherwise(rest[0]) if rest else case


@expr_of.register
def _(tree: e.Aggregate) -> Expr:
    if tree.distinct:
        return expr_of(tree.operand).n_unique()
    if tree.function == "count" and isinstance(tree.operand, e.Attribute) and tree.operand.variable is None:
        return event(name=tree.operand.name).count()
    found: Expr = getattr(expr_of(tree.operand), AGGREGATES.get(tree.function, tree.function))()
    return found


@expr_of.register
def _(tree: e.Previous) -> Expr:
    return expr_of(tree.operands[0]).prev(*map(expr_of, tree.operands[1:]))


@expr_of.register
def _(tree: e.Equivalence) -> Expr:
    path = tuple(tree.attribute.split(PATH_MARK))
    return same(path) if tree.value is None else same({path: expr_of(tree.value)})
