"""One event at a time: the matches that a single new event decides, found in plain Python."""
