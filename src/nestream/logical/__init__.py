"""The logical plan: WinSeq, WinAnd and WinOr nodes with placed predicates; its invariants and its text."""
