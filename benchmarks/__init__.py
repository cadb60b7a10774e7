"""The benchmarks of nestream: run `scripts/bench --help`. They use nestream by its public names alone."""
