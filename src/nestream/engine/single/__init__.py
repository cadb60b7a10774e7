"""One event at a time: finds the matches that a single new event decides, in plain Python."""
