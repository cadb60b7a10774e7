"""Why events are no match."""
