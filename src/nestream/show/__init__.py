"""Shows a query and its matches: timelines and graphs of plans, as data and as drawings."""

from nestream.show.graph import Graph, plan_graph
from nestream.show.notebook import Shown, highlighted, query_html, show_matches
from nestream.show.timeline import Timeline, timeline, timeline_of_rows

__all__ = [
    "Graph",
    "Shown",
    "Timeline",
    "highlighted",
    "plan_graph",
    "query_html",
    "show_matches",
    "timeline",
    "timeline_of_rows",
]
