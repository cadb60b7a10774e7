"""Rewriting: each rule, both sides executed, and whole plans to their normal forms."""
