"""Runs other programs of this machine."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def captured(command: Sequence[Any], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a program without input and capture its output as text; `settings` are those of `subprocess.run`."""
    plain: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
    return subprocess.run(command, **{"stdin": subprocess.DEVNULL, **plain, **settings})


def how_ended(code: int) -> str:
    """Say how a program ended, by its exit code: `SIGSEGV`, `exit code 3`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a program wrote on stderr."""
    return (done.stderr.strip().splitlines() or ["no message"])[-1]
