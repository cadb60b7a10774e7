"""What `query` and `queries` share: plans typed for their events, explaining, and the way to Spark."""
