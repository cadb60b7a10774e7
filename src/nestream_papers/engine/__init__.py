"""The operators that all strategies of the papers share: stacks, staircases, chains and joins over blocks."""
