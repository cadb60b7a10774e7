"""Sources of events: files of CSV, JSON lines, Parquet and Avro, those that grow, pipes and sockets."""

from nestream.source.dead_letter import DeadLetter
from nestream.source.declared import declared_columns, refuse_missing
from nestream.source.errors import SourceError
from nestream.source.event_files import EventFile, EventFiles, event_files
from nestream.source.file_reader import EventReader
from nestream.source.files import as_beginning
from nestream.source.listing import is_named_by, names_no_files
from nestream.source.place import open_source
from nestream.source.protocol import Batch, Position, Source
from nestream.source.reader import read_events, read_table
from nestream.source.text_file import RewrittenWarning
from nestream.source.whole_file import refused_rows

__all__ = [
    "Batch",
    "DeadLetter",
    "EventFile",
    "EventFiles",
    "EventReader",
    "Position",
    "RewrittenWarning",
    "Source",
    "SourceError",
    "as_beginning",
    "declared_columns",
    "event_files",
    "is_named_by",
    "names_no_files",
    "open_source",
    "read_events",
    "read_table",
    "refuse_missing",
    "refused_rows",
]
