"""Compiles all kernels in advance, so that no query waits for them later."""

from __future__ import annotations

import sys
import time

from nestream.engine.kernels.warm import compile_in_processes

if __name__ == "__main__":
    begin = time.perf_counter()
    count = compile_in_processes()
    print(f"compiled {count} kernels in {time.perf_counter() - begin:.1f} s", file=sys.stderr)
