"""Writers of matches and events: JSON lines, CSV and Parquet."""

from nestream.sink.json_text import json_lines
from nestream.sink.writer import SinkError, write_events, write_matches

__all__ = ["SinkError", "json_lines", "write_events", "write_matches"]
