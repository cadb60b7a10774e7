"""The strategies of the papers, each a planner from the logical plan to programs of operators of its own.

Nested execution, rewriting with shared operators, views and SASE's plans run on the engine in this package,
with every technique behind a switch. The core does not import it: strategies are found by name.
"""
