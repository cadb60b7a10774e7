"""What editors need of the language: completion, hover and diagnostics, for text that may not parse yet.

The language server, the console's editor, the notebook magic and the Pygments lexer stand on these functions.
"""
