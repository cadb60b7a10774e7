"""SASE's query plans (SIGMOD 2006) over whole arrays: sequence scan and construction, then the operators.

The engine's own way to run a sequence goes beyond them. They are here so that each of their techniques can be
switched off and measured.
"""
