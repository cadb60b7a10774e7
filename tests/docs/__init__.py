"""The documentation pages keep what they say."""
