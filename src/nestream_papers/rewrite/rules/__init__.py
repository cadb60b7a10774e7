"""The rules, in the order of the paper's procedure: push negations down, distribute, flatten."""

from __future__ import annotations

from nestream_papers.rewrite.rule import Rule
from nestream_papers.rewrite.rules.distribute_over_conjunction import DISTRIBUTE_OVER_CONJUNCTION
from nestream_papers.rewrite.rules.distribute_over_sequence import DISTRIBUTE_OVER_SEQUENCE
from nestream_papers.rewrite.rules.flatten_conjunction import FLATTEN_CONJUNCTION
from nestream_papers.rewrite.rules.flatten_constraints import FLATTEN_CONSTRAINTS
from nestream_papers.rewrite.rules.flatten_disjunction import FLATTEN_DISJUNCTION
from nestream_papers.rewrite.rules.flatten_sequence import FLATTEN_SEQUENCE
from nestream_papers.rewrite.rules.negation_over_conjunction import NEGATION_OVER_CONJUNCTION
from nestream_papers.rewrite.rules.negation_over_disjunction import NEGATION_OVER_DISJUNCTION
from nestream_papers.rewrite.rules.negation_over_sequence import NEGATION_OVER_SEQUENCE
from nestream_papers.rewrite.rules.nested_negation import NESTED_NEGATION
from nestream_papers.rewrite.rules.predicates_of_disjunction import PREDICATES_OF_DISJUNCTION
from nestream_papers.rewrite.rules.unwrap_single import UNWRAP_SINGLE

PUSH_NEGATION = (
    NEGATION_OVER_SEQUENCE,
    NEGATION_OVER_CONJUNCTION,
    NESTED_NEGATION,
    NEGATION_OVER_DISJUNCTION,
)
DISTRIBUTE = (DISTRIBUTE_OVER_SEQUENCE, DISTRIBUTE_OVER_CONJUNCTION)
FLATTEN = (UNWRAP_SINGLE, FLATTEN_SEQUENCE, FLATTEN_CONJUNCTION, PREDICATES_OF_DISJUNCTION)
RULES: tuple[Rule, ...] = (*PUSH_NEGATION, FLATTEN_CONSTRAINTS, FLATTEN_DISJUNCTION, *DISTRIBUTE, *FLATTEN)
