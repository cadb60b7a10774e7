"""What a query and its matches look like: timelines and graphs of plans, as data and as drawings."""

from nestream.show.graph import Graph, plan_graph
from nestream.show.timeline import Timeline, timeline, timeline_of_rows

__all__ = ["Graph", "Timeline", "plan_graph", "timeline", "timeline_of_rows"]
