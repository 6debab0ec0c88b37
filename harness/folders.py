"""Where a run goes, and `reports/latest`, which names the newest."""

from __future__ import annotations

import os
import secrets
from datetime import datetime, timezone
from pathlib import Path

from harness.errors import UsageError

REPORTS = Path("reports")


def run_folder(output: Path | None, *, resume: bool) -> Path:
    """Return the folder for a run: the one asked for, the latest one to resume, or a new one named by the time."""
    if output is not None:
        if output.exists() and not output.is_dir():
            raise UsageError(f"{output}: is a file; -o names a folder")
        return output
    if resume:
        latest = REPORTS / "latest"
        if not latest.exists():
            raise UsageError(f"{latest}: there is no run to resume; name its folder with -o")
        return latest.resolve()
    return REPORTS / f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def point_latest(folder: Path) -> None:
    """Let `latest` beside a run's folder name it: a symbolic link, or a file with its path where links are not allowed."""
    if folder.resolve().parent != REPORTS.resolve():
        return
    latest = folder.parent / "latest"
    fresh = folder.parent / f".latest-{os.getpid()}"
    try:
        fresh.symlink_to(folder.name, target_is_directory=True)
        os.replace(fresh, latest)
    except OSError:
        (folder.parent / "latest.txt").write_text(f"{folder.name}\n", encoding="utf-8")


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
