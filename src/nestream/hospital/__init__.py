"""The hospital case study: a simulator with planted violations, the rules that find them, its job folder."""
