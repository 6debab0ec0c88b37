"""Components of the user's cache: folders that are whole or absent, with a stamp that reveals changes before
use.

    <cache>/<kind>/install.lock           one installation at a time
    <cache>/<kind>/<component>/           files and `stamp.json`
    <cache>/<kind>/<component>.partial/   under construction, or left by an installation that was interrupted

A component is built beside its place and renamed when it is complete, so an existing one is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from harness.model.cache_folder import CACHE_ENV
from harness.model.errors import TargetUnavailable
from harness.model.file_lock import lock
from harness.model.plain_file import read_bytes, sha256_of

PARTIAL = ".partial"
HASHED_BELOW = 24 << 20
"""Key files below this size are hashed before each use, larger ones compared by size and time."""
_STAMP = "stamp.json"
_LARGEST_STAMP = 16 << 20

Progress = Callable[[str], None]


class Stamp(msgspec.Struct, frozen=True):
    """The record of a complete component: size on disk in bytes, (size, time in ns, SHA-256) of its key
    files, and facts such as versions."""

    component: str
    bytes: int
    files: dict[str, tuple[int, int, str]]
    facts: dict[str, str] = {}


def digest(*parts: str) -> str:
    """Return twelve hexadecimal digits that identify a list of strings."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def seal(folder: Path, patterns: Iterable[str], facts: dict[str, str] | None = None) -> None:
    """Stamp a complete component whose key files are those that the patterns find."""
    total = sum(
        path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
    )
    files = {}
    for path in sorted(
        {
            path
            for pattern in patterns
            for path in folder.glob(pattern)
            if path.is_file() and not path.is_symlink()
        }
    ):
        status = path.stat()
        files[path.relative_to(folder).as_posix()] = (status.st_size, status.st_mtime_ns, sha256_of(path))
    (folder / _STAMP).write_bytes(
        msgspec.json.encode(Stamp(folder.name.removesuffix(PARTIAL), total, files, facts or {}))
    )


def stamp_of(folder: Path) -> Stamp | None:
    """Return the stamp of a component, None where it is not installed or its stamp cannot be read."""
    try:
        return msgspec.json.decode(read_bytes(folder / _STAMP, _LARGEST_STAMP), type=Stamp)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def stamps(base: Path) -> dict[str, Stamp]:
    """Return the stamp of each component in a folder by its name, sorted."""
    found = {
        path.parent.name: stamp_of(path.parent)
        for path in sorted(base.glob(f"*/{_STAMP}"))
        if path.parent.suffix != PARTIAL
    }
    return {name: stamp for name, stamp in found.items() if stamp is not None}


def problems(folder: Path, *, deep: bool = False) -> list[str]:
    """Return the defects of a component: missing or changed key files; `deep` hashes the large ones too."""
    stamp = stamp_of(folder)
    if stamp is None:
        return [f"{folder.name}: not installed"]
    wrong = [] if stamp.component == folder.name else [f"{folder.name}: its stamp is of {stamp.component}"]
    for name, (size, time, sha256) in stamp.files.items():
        path = folder / name
        try:
            status = path.stat()
            same = (status.st_size, status.st_mtime_ns) == (size, time)
            same = same and (not (deep or size < HASHED_BELOW) or sha256_of(path) == sha256)
        except (OSError, ValueError):  # ValueError: no file can have such a name
            wrong.append(f"{folder.name}/{name} is gone")
            continue
        if not same:
            wrong.append(f"{folder.name}/{name} has changed")
    return wrong


def remove_tree(path: Path) -> None:
    """Delete a tree, also folders without write permission."""

    def retry(function: Callable[[str], object], name: str, _: object) -> None:
        os.chmod(os.path.dirname(name), 0o700)
        with contextlib.suppress(FileNotFoundError):
            function(name)

    if not path.exists():
        return
    if sys.version_info >= (3, 12):
        shutil.rmtree(path, onexc=retry)
    else:
        shutil.rmtree(path, onerror=retry)


@contextlib.contextmanager
def exclusive(base: Path, progress: Progress) -> Iterator[None]:
    """Hold the installation lock of a folder; a second installation waits for the first and then finds its
    work done.

    Raises TargetUnavailable with the remedy where the folder cannot be written.
    """
    while True:
        handle = _open_lock(base)
        if not lock(handle):
            progress("another installation is under way, waiting for it")
            lock(handle, wait=True)
        if os.fstat(handle).st_nlink:  # else a removal took the file away meanwhile
            break
        os.close(handle)
    try:
        yield
    finally:
        os.close(handle)


def _open_lock(base: Path) -> int:
    try:
        base.mkdir(parents=True, exist_ok=True)
        return os.open(base / "install.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as exc:
        raise TargetUnavailable(
            f"cannot write to {base} ({exc.strerror}): set {CACHE_ENV} to a folder of your own"
        ) from exc
