"""The most memory that a process takes for something, told by the system."""

from __future__ import annotations

import gc
from pathlib import Path

import psutil
import pyarrow as pa


class Memory:
    """The most memory that this process holds beyond what it held before."""

    def __enter__(self) -> Memory:
        gc.collect()
        pa.default_memory_pool().release_unused()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
        self.before = psutil.Process().memory_info().rss
        return self

    def __exit__(self, *_: object) -> None:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        self.beyond = max(peak * 1024 - self.before, 0)
