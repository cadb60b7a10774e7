"""The strategies of the papers, each a planner from the logical plan to programs with their own operators.

Nested execution, rewriting with shared operators, views and SASE's plans run on the engine in this package,
with every technique behind a switch. It is a distribution of its own, `nestream-papers`. The core does not
import it: `nestream.strategies` finds strategies by name, and only those of its own version.
"""

__version__ = "0.2.0"
