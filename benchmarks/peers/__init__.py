"""Other programs with the same queries: each loads the events, then runs its query once a line of input."""
