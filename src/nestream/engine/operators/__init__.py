"""The operators: each is one way to find the matches of a block, as a plan and as the code that runs it."""
