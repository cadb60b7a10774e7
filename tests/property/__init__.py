"""Properties that hold of random queries over random histories."""
