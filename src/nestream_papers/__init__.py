"""The strategies of the papers, each a planner from the logical plan to programs with their own operators.

Nested execution, rewriting with shared operators, views and SASE's plans run on the engine in this package,
with every technique behind a switch. The core does not import it: strategies are found by name.
"""
