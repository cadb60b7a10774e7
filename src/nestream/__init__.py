"""nestream: nested complex event processing for Python on Spark."""
