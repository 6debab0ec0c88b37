"""Which processes exist: to see that none is left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path


def table() -> dict[int, int]:
    """Return the parent of every process that is not a zombie of somebody else's."""
    if sys.platform == "linux":
        found = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                found[int(path.parent.name)] = int(fields[1])
        return found
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in listed.splitlines()]
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


def descendants(of: int) -> set[int]:
    """Return all processes below one."""
    parents = table()
    found = {of}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {of}


def gone(pids: Iterable[int], seconds: float = 60.0) -> bool:
    """Wait until none of the processes exists."""
    wanted = set(pids)
    end = time.monotonic() + seconds
    while wanted & table().keys():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
