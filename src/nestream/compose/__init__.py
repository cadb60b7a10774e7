"""What `query` and `queries` share: plans typed for their events, explaining, and running on Spark."""
