"""The benchmarks themselves are tested: what they declare, measure, check and write."""
