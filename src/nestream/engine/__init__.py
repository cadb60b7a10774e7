"""The columnar matcher: a program and ordered batches in, batches of matches out; it knows no plans.

For the matcher, an event is a *position*, its rank in the input: it decides matches by ranges of positions,
and saves positions. For an operator, an event is a *row* of the event buffer, which holds only the events of
some leaf. docs/how-it-works/engine.md explains the operators, and why they are correct.
"""
