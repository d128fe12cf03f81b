"""What a process uses: memory, threads, files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Self

_MORE_MEMORY = 60.0  # MB
_MORE_THREADS = 8  # which come as they are needed
_MORE_FILES = 40  # of shared memory with readers that were killed


class Usage(NamedTuple):
    """What a process uses."""

    memory: float
    """MB."""
    threads: int
    files: int

    @classmethod
    def of(cls, pid: int) -> Self:
        """What a process uses now."""
        status = Path(f"/proc/{pid}/status").read_text()
        values = dict(line.split(":", 1) for line in status.splitlines())
        memory = int(values["VmRSS"].split()[0]) / 1024
        return cls(memory, int(values["Threads"]), len(os.listdir(f"/proc/{pid}/fd")))

    def more_than(self, before: Self) -> str:
        """What it uses more of than before; empty: nothing."""
        if self.memory > before.memory + _MORE_MEMORY:
            return "memory"
        if self.threads > before.threads + _MORE_THREADS:
            return "threads"
        return "files" if self.files > before.files + _MORE_FILES else ""

    def __str__(self) -> str:
        return f"{self.memory:.0f} MB, {self.threads} threads, {self.files} files"
