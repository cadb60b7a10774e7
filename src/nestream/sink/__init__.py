"""Sinks of matches and events: files of JSON lines, CSV and Parquet, and those of streams."""

from nestream.sink.json_text import json_lines, plain
from nestream.sink.place import open_sink
from nestream.sink.protocol import Position, Sink
from nestream.sink.stream_sinks import first_column
from nestream.sink.writer import SinkError, write_events, write_matches

__all__ = [
    "Position",
    "Sink",
    "SinkError",
    "first_column",
    "json_lines",
    "open_sink",
    "plain",
    "write_events",
    "write_matches",
]
