"""What editors show of a query."""
