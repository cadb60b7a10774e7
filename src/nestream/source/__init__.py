"""Readers of events from CSV, JSON lines and Parquet files."""

from nestream.source.dead_letter import DeadLetter
from nestream.source.errors import SourceError
from nestream.source.reader import EventReader, read_events, read_table
from nestream.source.whole_file import refused_rows

__all__ = ["DeadLetter", "EventReader", "SourceError", "read_events", "read_table", "refused_rows"]
