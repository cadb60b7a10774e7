"""The command line. Commands are thin: what they do is in the package."""
