"""The operators: each one way to find the matches of a block, as a plan and as what runs it."""
