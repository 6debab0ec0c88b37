"""Folders of runs: where a run goes, what the folder already holds, and `reports/latest`, which names the run
begun last."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import UsageError
from harness.model.file_lock import claim
from harness.results.runfile import RunReader, busy, lines, run_file
from harness.targets.registry import starts_what_it_names

REPORTS = Path("reports")
_TENSORS = re.compile(r"[0-9a-f]{24}\.npz")
_REPORTS = ("report.md", "report.html")
_END = b'{"type":"end"'


def run_folder(output: Path | None, run_id: str, *, resume: bool) -> Path:
    """Return the folder for a run: the given one, the latest one to resume, or a new one named by the run
    id."""
    if output is not None:
        if output.exists() and not output.is_dir():
            raise UsageError(f"{output}: is a file; -o names a folder")
        return output
    return _latest() if resume else REPORTS / run_id


def _latest() -> Path:
    """Return the folder of the run that was begun last, by its own name."""
    latest = REPORTS / "latest"
    if not latest.exists():
        with contextlib.suppress(OSError, ValueError):
            named = REPORTS / (REPORTS / "latest.txt").read_text(encoding="utf-8").strip()
            if named.is_dir() and named.parent == REPORTS:
                return named
        raise UsageError(f"{latest}: there is no run to resume; name its folder with -o")
    folder = latest.resolve()
    return REPORTS / folder.name if folder.parent == REPORTS.resolve() else folder


def to_continue(folder: Path, targets: Sequence[str]) -> str:
    """Return the command that continues the run in a folder; it repeats `-t` for targets that start a
    program."""
    repeated = targets if any(map(starts_what_it_names, targets)) else ()
    again = [word for target in repeated for word in ("-t", target)]
    return shlex.join(["harness", "run", "--resume", *again, "-o", str(folder)])


def holds_run(folder: Path, run_id: str) -> bool:
    """Say whether a folder's run file is there as that run began it."""
    try:
        return RunReader(folder).header.run_id == run_id
    except UsageError:
        return False


def check_vacant(folder: Path, *, force: bool) -> None:
    """Raise UsageError where a folder holds a run that another would replace, unless by `force`."""
    path = run_file(folder)
    if force or not path.is_file():
        return
    with open(path, "rb") as file:
        if not claim(file.fileno()):
            raise busy(path)
    number, last = 0, b""
    for line in lines(path):
        number, last = number + 1, line
    if last.startswith(_END) and last.endswith(b"\n"):
        raise UsageError(
            f"{path}: holds a complete run: choose another folder with -o, or replace the run with --force"
        )
    if number > 1:
        raise UsageError(
            f"{path}: holds an unfinished run: continue it with `{to_continue(folder, _targets(path))}`, or replace it with --force"
        )


def _targets(path: Path) -> Sequence[str]:
    try:
        return tuple(RunReader(path).header.targets)
    except UsageError:  # a damaged file, which cannot be continued
        return ()


def make(folder: Path) -> None:
    """Make the folder of a run. Errors: UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be made: {error.strerror}; choose another folder with -o"
        ) from error


def check_own(folder: Path) -> None:
    """Raise UsageError if an output file of a run is a link that leads out of its folder."""
    names = ("run.jsonl", ".run.jsonl.part", "artifacts", *_REPORTS, *(f"{name}.part" for name in _REPORTS))
    for path in (*(folder / name for name in names), *(folder / "artifacts").glob("*.npz")):
        if path.is_symlink():
            raise UsageError(f"{path}: is a link; choose another folder with -o, or remove it")


def clear(folder: Path) -> None:
    """Remove tensors and reports of an earlier run, which would be taken for those of the new run."""
    with contextlib.suppress(OSError):
        for path in (folder / "artifacts").iterdir():
            if _TENSORS.fullmatch(path.name):
                path.unlink()
    for name in _REPORTS:
        with contextlib.suppress(OSError):
            (folder / name).unlink()


def point_latest(folder: Path) -> None:
    """Let `latest` beside a run's folder name it: a symbolic link, or a file with its path where links are
    not allowed."""
    whole = folder.resolve()
    if whole.parent != REPORTS.resolve() or whole == (folder.parent / "latest").resolve():
        return
    latest = folder.parent / "latest"
    fresh = folder.parent / f".latest-{os.getpid()}"
    try:
        fresh.symlink_to(whole.name, target_is_directory=True)
        os.replace(fresh, latest)
    except OSError:
        (folder.parent / "latest.txt").write_text(f"{whole.name}\n", encoding="utf-8")


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
