"""An environment with one release of onnxruntime and a NumPy that it can use, made by uv in the user's cache.

    <cache>/runtimes/onnxruntime-1.22.1/     a virtual environment and its stamp

A worker needs onnxruntime and NumPy alone, so nothing else is installed. NumPy 2 works since ONNX Runtime 1.19
(https://github.com/microsoft/onnxruntime/issues/21063); a release that does not start is never kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness import components
from harness.components import Progress, Stamp
from harness.errors import TargetUnavailable, UsageError
from harness.runtimes import usage
from harness.runtimes.index import ask_ahead, configuration, published
from harness.runtimes.pythons import Python, pythons, run_uv

PROJECT = "onnxruntime"
_NUMPY_2 = Version("1.19")
_PREFIX = f"{PROJECT}-"
_KEY_FILES = (
    *(f"{PROJECT}/{name}" for name in ("__init__.py", "capi/*.py", "capi/*.so*", "capi/*.dylib", "capi/*.dll", "capi/*.pyd")),
    *(f"numpy/{name}" for name in ("version.py", "*/_multiarray_umath*.so", "*/_multiarray_umath*.pyd")),
)
_KEYS = ("pyvenv.cfg", *(f"{site}/{name}" for site in ("lib/python*/site-packages", "Lib/site-packages") for name in _KEY_FILES))
_ALL_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))
_SAY = (
    "import json, platform, numpy, onnxruntime\n"
    "print(json.dumps({'onnxruntime': onnxruntime.__version__, 'python': platform.python_version(), 'numpy': numpy.__version__}))\n"
)


def note(message: str) -> None:
    """Print one line of progress."""
    print(f"runtimes: {message}", file=sys.stderr, flush=True)


def cache_dir() -> Path:
    """Return the folder of all environments."""
    return components.cache_base("runtimes")


def parse_version(text: str) -> Version:
    """Parse a release such as `1.22.1`, or `1.22` for the newest 1.22.x; raise UsageError for anything else."""
    version = _version(text)
    if version is None or version.local or version.is_devrelease or not text[0].isdigit() or len(version.release) < 2:
        raise UsageError(f"{text!r} is no release of {PROJECT}; write for example 1.22.1")
    return version


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def prepare(text: str, progress: Progress = note) -> tuple[Path, Version]:
    """Return the interpreter of the environment for a release and the release; it is made where it is not there or damaged.

    Raises UsageError for a release that the package index does not have, TargetUnavailable where this machine cannot have it.
    """
    wanted = parse_version(text)
    if _is_exact(wanted) and _usable(wanted):
        return _executable(_folder(wanted)), wanted
    version, python = _choose(wanted)
    if not _usable(version):
        if python is None:
            raise TargetUnavailable(f"{PROJECT} {version} was removed meanwhile, and the package index does not answer; check the network")
        with components.exclusive(cache_dir(), progress):
            _faults.cache_clear()  # while this waited, another installation may have made it
            for stale in cache_dir().glob(f"*{components.PARTIAL}"):
                components.remove_tree(stale)
            wrong = faults(version)
            if wrong and _folder(version).exists():
                progress(f"{wrong[0]}: made anew")
            if wrong:
                _make(version, python, progress)
            _faults.cache_clear()
            usage.hold(_folder(version))
    return _executable(_folder(version)), version


def _usable(version: Version) -> bool:
    """Say whether an environment is whole, and hold it."""
    return not faults(version) and usage.hold(_folder(version))


def faults(version: Version) -> tuple[str, ...]:
    """Return what is wrong with the environment for a release; looked at once a process."""
    return _faults(_folder(version))


@cache
def _faults(folder: Path) -> tuple[str, ...]:
    wrong = components.problems(folder)
    if not wrong and not _executable(folder).exists():
        wrong = [f"{folder.name}: its Python is gone"]
    return tuple(wrong)


def installed() -> dict[Version, Stamp]:
    """Return the stamp of each environment, oldest release first; nothing is verified."""
    named = {name.removeprefix(_PREFIX): stamp for name, stamp in components.stamps(cache_dir()).items()}
    found = {version: stamp for name, stamp in named.items() if (version := _version(name)) is not None}
    return dict(sorted(found.items()))


def published_releases() -> tuple[list[Version], bool]:
    """Return the stable releases that some Python of this machine can use, oldest first, and whether the index answered.

    Where it did not, they are the installed ones.
    """
    minors = [python.minor for python in pythons()]
    if not published(PROJECT, minors[0]).complete:
        return [version for version in installed() if not version.is_prerelease], False
    ask_ahead(PROJECT, minors)
    found = {version for minor in minors for version in published(PROJECT, minor).versions}
    return sorted(version for version in found if not version.is_prerelease), True


def prune(versions: Sequence[str] = (), progress: Progress = note) -> tuple[list[str], list[str]]:
    """Delete the environments of some releases, or all with what interrupted installations left.

    Return the releases that are gone, and those that are kept because another process uses them. Raises TargetUnavailable, with nothing
    deleted, where one of `versions` is in use.
    """
    base, there = cache_dir(), installed()
    wanted = [parse_version(text) for text in versions]
    for version in wanted:
        if version not in there:
            known = ", ".join(map(str, there)) or "none"
            raise UsageError(f"no environment for {PROJECT} {version} is installed; installed: {known}")
    if not base.exists():
        return [], []
    with components.exclusive(base, progress), ExitStack() as stack:
        free = {version: stack.enter_context(usage.unused(_folder(version))) for version in dict.fromkeys(wanted or there)}
        kept = [version for version, unused in free.items() if not unused]
        if wanted and kept:
            raise TargetUnavailable(f"{PROJECT} {kept[0]} is in use by another process; prune it when that has ended")
        gone = []
        for version in free.keys() - kept:
            try:
                _retire(_folder(version))
                gone.append(version)
            except PermissionError:
                kept.append(version)
        for stale in base.glob(f"*{components.PARTIAL}"):
            components.remove_tree(stale)
    _faults.cache_clear()
    return [str(version) for version in sorted(gone)], [str(version) for version in sorted(kept)]


def _choose(wanted: Version) -> tuple[Version, Python | None]:
    """Return the release that the index has for a wanted one, and the Python for it."""
    seen: set[Version] = set()
    here = [python.minor for python in pythons()]
    complete = True
    for python in pythons():
        versions, complete = published(PROJECT, python.minor)
        seen.update(versions)
        there = fitting(wanted, versions)
        if there:
            return there[-1], python
        if not complete:
            break
        ask_ahead(PROJECT, here)
    whole = [version for version in fitting(wanted, list(installed())) if not faults(version)]
    if whole:
        return whole[-1], None
    if not complete or not seen:
        known = ", ".join(map(str, installed())) or "none"
        raise TargetUnavailable(f"{PROJECT} {wanted}: the package index does not answer; check the network (installed: {known})")
    ask_ahead(PROJECT, _ALL_PYTHONS)
    fitting_pythons = [minor for minor in _ALL_PYTHONS if fitting(wanted, published(PROJECT, minor).versions)]
    if fitting_pythons:
        raise TargetUnavailable(
            f"{PROJECT} {wanted} has wheels for Python {', '.join(fitting_pythons)}, and this machine has {', '.join(here)}: "
            "install one of the former"
        )
    raise UsageError(f"the package index has no {PROJECT} {wanted} for this machine; near: {', '.join(map(str, near(wanted, seen)))}")


def fitting(wanted: Version, versions: Sequence[Version]) -> list[Version]:
    """Return the versions that a wanted one stands for; `1.22` stands for every stable 1.22.x."""
    if _is_exact(wanted):
        return [version for version in versions if version == wanted]
    return [version for version in versions if version.release[:2] == wanted.release and not version.is_prerelease]


def _is_exact(wanted: Version) -> bool:
    return len(wanted.release) > 2 or wanted.is_prerelease


def near(wanted: Version, versions: set[Version], number: int = 4) -> list[Version]:
    """Return the versions around a wanted one, oldest first."""
    ordered = sorted(version for version in versions if not version.is_prerelease)
    place = sum(version < wanted for version in ordered)
    start = max(0, min(place - number // 2, len(ordered) - number))
    return ordered[start : start + number]


def _make(version: Version, python: Python, progress: Progress) -> None:
    """Build an environment beside its place, see it start, stamp it and put it there."""
    place = _folder(version)
    partial = place.with_name(place.name + components.PARTIAL)
    progress(f"installing {PROJECT} {version} with Python {python.version}")
    try:
        components.remove_tree(partial)
        _uv(version, ["venv", "--quiet", "--no-project", "--python", python.path, str(partial)])
        numpy = "numpy" if version >= _NUMPY_2 else "numpy<2"
        options = ["--python", str(_executable(partial)), "--no-deps", "--only-binary", ":all:", "--link-mode", "copy"]
        _uv(version, ["pip", "install", *options, *configuration().uv, f"{PROJECT}=={version}", numpy])
        components.seal(partial, _KEYS, _facts(version, partial))
        _retire(place)
        partial.rename(place)
    finally:
        components.remove_tree(partial)


def _uv(version: Version, arguments: list[str]) -> None:
    done = run_uv(arguments, environment=configuration().environment)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise TargetUnavailable(f"{PROJECT} {version} cannot be installed: {reason[-300:] or f'uv ended with {done.returncode}'}")


def _facts(version: Version, folder: Path) -> dict[str, str]:
    """Start the release once and return the versions that it says."""
    done = subprocess.run(
        [str(_executable(folder)), "-I", "-c", _SAY], capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise TargetUnavailable(f"{PROJECT} {version} does not start on this machine: {last}")
    facts: dict[str, str] = json.loads(done.stdout)
    if Version(facts[PROJECT]).release != version.release:
        raise TargetUnavailable(f"the package index answers {PROJECT} {version} with {facts[PROJECT]}")
    return facts


def _retire(folder: Path) -> None:
    """Delete an environment; it is never seen half deleted."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}.{os.getpid()}{components.PARTIAL}")
        folder.rename(old)
        components.remove_tree(old)


def _folder(version: Version) -> Path:
    return cache_dir() / f"{_PREFIX}{version}"


def _executable(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
