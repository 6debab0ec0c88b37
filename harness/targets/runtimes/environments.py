"""The environments with other releases: one for each, made once and verified before use, listed and deleted.

uv installs an environment: one release of onnxruntime or of a plugin's package, and a NumPy that it can use.

A worker needs only onnxruntime and NumPy, so nothing else is installed. NumPy 2 works since ONNX Runtime 1.19
(https://github.com/microsoft/onnxruntime/issues/21063); a release that does not start is never kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from packaging.version import Version

from harness.model.errors import TargetUnavailable, UsageError
from harness.targets import components
from harness.targets.components import Progress, Stamp
from harness.targets.programs import captured, last_line
from harness.targets.runtimes import usage
from harness.targets.runtimes.environment_folder import cache_dir, executable, folder_of, retire
from harness.targets.runtimes.index import ask_ahead, configuration, published
from harness.targets.runtimes.projects import ONNXRUNTIME, PROJECTS, WITH_PLUGINS, Project
from harness.targets.runtimes.pythons import Python, pythons, run_uv
from harness.targets.runtimes.wanted_release import (
    fitting,
    is_exact,
    near,
    parse_label,
    parse_version,
    version_of,
)

_NUMPY_2 = Version("1.19")
_SITES = ("lib/python*/site-packages", "Lib/site-packages")
_KEY_FILES = (
    *(
        f"{ONNXRUNTIME.name}/{name}"
        for name in ("__init__.py", "capi/*.py", "capi/*.so*", "capi/*.dylib", "capi/*.dll", "capi/*.pyd")
    ),
    *(f"numpy/{name}" for name in ("version.py", "*/_multiarray_umath*.so", "*/_multiarray_umath*.pyd")),
)
_PLUGIN_FILES = tuple(
    f"{{module}}{below}/*.{end}" for below in ("", ".libs", "/**") for end in ("py", "so*", "dylib", "dll")
)
_SAY = (
    "import json, platform, numpy, onnxruntime\n"
    "said = {'onnxruntime': onnxruntime.__version__, 'python': platform.python_version(), 'numpy': numpy.__version__}\n"
)
_SAY_LIBRARY = (
    "from importlib.metadata import version\n"
    "import {module} as plugin\n"
    "said['{name}'] = version('{name}')\n"
    "said['library'] = str(getattr(plugin, 'get_library_path', None) and plugin.get_library_path() or plugin.library_path())\n"
)
_SAID = "print(json.dumps(said))\n"


def make(version: Version, python: Python, progress: Progress, project: Project) -> None:
    """Build an environment beside its place, see it start, stamp it and put it there."""
    place = folder_of(version, project)
    partial = place.with_name(place.name + components.PARTIAL)
    progress(f"installing {project.name} {version} with Python {python.version}")
    what = f"{project.name} {version}"
    try:
        components.remove_tree(partial)
        _uv(what, ["venv", "--quiet", "--no-project", "--python", python.path, str(partial)])
        wanted = [
            f"{project.name}=={version}",
            "numpy" if project.module or version >= _NUMPY_2 else "numpy<2",
        ]
        # a plugin names in its metadata the releases of onnxruntime that it needs, or none
        wanted = (
            [*wanted, f"{ONNXRUNTIME.name}>={WITH_PLUGINS}"] if project.module else ["--no-deps", *wanted]
        )
        options = ["--python", str(executable(partial)), "--only-binary", ":all:", "--link-mode", "copy"]
        _uv(what, ["pip", "install", *options, *configuration().uv, *wanted])
        facts = _facts(version, partial, project)
        files = [
            *_KEY_FILES,
            *(name.format(module=project.module) for name in _PLUGIN_FILES if project.module),
        ]
        components.seal(
            partial, ["pyvenv.cfg", *(f"{site}/{name}" for site in _SITES for name in files)], facts
        )
        retire(place)
        partial.rename(place)
    finally:
        components.remove_tree(partial)


def _uv(what: str, arguments: list[str]) -> None:
    done = run_uv(arguments, environment=configuration().environment)
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise TargetUnavailable(
            f"{what} cannot be installed: {reason[-300:] or f'uv ended with {done.returncode}'}"
        )


def _facts(version: Version, folder: Path, project: Project) -> dict[str, str]:
    """Start the release once and return the versions that it says; `library` is a plugin's, from the
    environment's folder on."""
    more = _SAY_LIBRARY.format(module=project.module, name=project.name) if project.module else ""
    done = captured([str(executable(folder)), "-I", "-c", _SAY + more + _SAID])
    if done.returncode:
        last = last_line(done) if done.stderr.strip() else f"exit code {done.returncode}"
        raise TargetUnavailable(f"{project.name} {version} does not start on this machine: {last}")
    facts: dict[str, str] = json.loads(done.stdout)
    if Version(facts[project.name]).release != version.release:
        raise TargetUnavailable(
            f"the package index answers {project.name} {version} with {facts[project.name]}"
        )
    if project.module:
        try:
            facts["library"] = Path(facts["library"]).resolve().relative_to(folder.resolve()).as_posix()
        except ValueError as error:
            raise TargetUnavailable(
                f"{project.name} {version} names a library that is not its own, {facts['library']}: unset the variable that says so, "
                "or name that library with -t plugin=PATH"
            ) from error
    return facts


_ALL_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))


def note(message: str) -> None:
    """Print one line of progress."""
    print(f"runtimes: {message}", file=sys.stderr, flush=True)


def prepare(
    text: str | None, progress: Progress = note, project: Project = ONNXRUNTIME
) -> tuple[Path, Version]:
    """Return the interpreter of the environment for a release and the release; it is made where it is not
    there or damaged.

    Without `text` it is the newest release. Raises UsageError for a release that the package index does not
    have, TargetUnavailable where this machine cannot have it.
    """
    wanted = None if text is None else parse_version(text, project)
    if wanted is not None and is_exact(wanted) and _usable(wanted, project):
        return executable(folder_of(wanted, project)), wanted
    version, python = _choose(wanted, project)
    folder = folder_of(version, project)
    if not _usable(version, project):
        if python is None:
            raise TargetUnavailable(
                f"{project.name} {version} was removed meanwhile, and the package index does not answer; check the network"
            )
        with components.exclusive(cache_dir(), progress):
            _faults.cache_clear()  # while this waited, another installation may have made it
            for stale in cache_dir().glob(f"*{components.PARTIAL}"):
                components.remove_tree(stale)
            wrong = faults(version, project)
            if wrong and folder.exists():
                progress(f"{wrong[0]}: made anew")
            if wrong:
                make(version, python, progress, project)
            _faults.cache_clear()
            usage.hold(folder)
    return executable(folder), version


def library(version: Version, project: Project) -> Path:
    """Return the library of a plugin's environment that `prepare` returned."""
    stamp = components.stamp_of(folder_of(version, project))
    if stamp is None or "library" not in stamp.facts:
        raise TargetUnavailable(f"{project.name} {version} was removed meanwhile: run the command again")
    return folder_of(version, project) / stamp.facts["library"]


def _usable(version: Version, project: Project) -> bool:
    """Say whether an environment is whole, and hold it."""
    return not faults(version, project) and usage.hold(folder_of(version, project))


def faults(version: Version, project: Project = ONNXRUNTIME) -> tuple[str, ...]:
    """Return the defects of the environment for a release; checked once a process."""
    return _faults(folder_of(version, project))


@cache
def _faults(folder: Path) -> tuple[str, ...]:
    wrong = components.problems(folder)
    if not wrong and not executable(folder).exists():
        wrong = [f"{folder.name}: its Python is gone"]
    return tuple(wrong)


def installed(project: Project = ONNXRUNTIME) -> dict[Version, Stamp]:
    """Return the stamp of each environment, oldest release first; nothing is verified."""
    prefix = f"{project.name}-"
    named = {
        name.removeprefix(prefix): stamp
        for name, stamp in components.stamps(cache_dir()).items()
        if name.startswith(prefix)
    }
    found = {version: stamp for name, stamp in named.items() if (version := version_of(name)) is not None}
    return dict(sorted(found.items()))


def published_releases() -> tuple[list[Version], bool]:
    """Return the stable releases that some Python of this machine can use, oldest first, and whether the
    index answered.

    Where it did not, they are the installed ones.
    """
    minors = [python.minor for python in pythons()]
    if not published(ONNXRUNTIME.name, minors[0]).complete:
        return [version for version in installed() if not version.is_prerelease], False
    ask_ahead(ONNXRUNTIME.name, minors)
    found = {version for minor in minors for version in published(ONNXRUNTIME.name, minor).versions}
    return sorted(version for version in found if not version.is_prerelease), True


def prune(labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Delete the environments of some releases (`1.22.1`, `ggml@0.2.0`), or all with what interrupted
    installations left.

    Return the releases that are gone, and those that are kept because another process uses them. Raises
    TargetUnavailable, with nothing deleted, where one of `labels` is in use.
    """
    base = cache_dir()
    there = {
        project.label(version): folder_of(version, project)
        for project in PROJECTS
        for version in installed(project)
    }
    wanted = [_label_there(text, there) for text in labels]
    if not base.exists():
        return [], []
    with components.exclusive(base, note), ExitStack() as stack:
        free = {
            label: stack.enter_context(usage.unused(there[label])) for label in dict.fromkeys(wanted or there)
        }
        kept = [label for label, unused in free.items() if not unused]
        if wanted and kept:
            name, _, version = there[kept[0]].name.rpartition("-")
            raise TargetUnavailable(
                f"{name} {version} is in use by another process; prune it when that has ended"
            )
        gone: list[str] = []
        for label in free.keys() - kept:
            try:
                retire(there[label])
                gone.append(label)
            except PermissionError:
                kept.append(label)
        for stale in base.glob(f"*{components.PARTIAL}"):
            components.remove_tree(stale)
    _faults.cache_clear()
    order = list(there)
    return sorted(gone, key=order.index), sorted(kept, key=order.index)


def _label_there(text: str, there: dict[str, Path]) -> str:
    """Return how an installed environment is called; UsageError where none is meant."""
    project, version = parse_label(text)
    own = [project.label(known) for known in installed(project)]
    label = own[-1] if version is None and own else project.label(parse_version(version or "0.0", project))
    if label not in there:
        what = f"{project.name} {version}" if version else project.name
        raise UsageError(f"no environment for {what} is installed; installed: {', '.join(own) or 'none'}")
    return label


def _choose(wanted: Version | None, project: Project) -> tuple[Version, Python | None]:
    """Return the release that the index has for a wanted one, the newest without one, and the Python for
    it."""
    seen: set[Version] = set()
    here = [python.minor for python in pythons()]
    complete, others = True, _ALL_PYTHONS
    for python in pythons():
        versions, complete = published(project.name, python.minor)
        seen.update(versions)
        there = fitting(wanted, versions)
        if there:
            return there[-1], python
        if not complete:
            break
        if wanted and seen and wanted > max(seen):
            others = _ALL_PYTHONS[
                -3:
            ]  # wheels of a release that is newer than all that are seen are for these
            ask_ahead(project.name, others)
            if not any(fitting(wanted, published(project.name, minor).versions) for minor in others):
                break
        ask_ahead(project.name, here)
    whole = [version for version in fitting(wanted, list(installed(project))) if not faults(version, project)]
    if whole:
        return whole[-1], None
    what = f"{project.name} {wanted}" if wanted else project.name
    known = ", ".join(map(str, installed(project))) or "none"
    if not complete or (not seen and project is ONNXRUNTIME):
        raise TargetUnavailable(
            f"{what}: the package index does not answer; check the network (installed: {known})"
        )
    ask_ahead(project.name, others)
    fitting_pythons = [minor for minor in others if fitting(wanted, published(project.name, minor).versions)]
    if fitting_pythons:
        raise TargetUnavailable(
            f"{what} has wheels for Python {', '.join(fitting_pythons)}, and this machine has {', '.join(here)}: install one of the former"
        )
    if not seen:
        raise TargetUnavailable(
            f"the package index has no {project.name} for this machine; name the library itself, -t plugin=PATH, where you have it"
        )
    raise UsageError(
        f"the package index has no {what} for this machine; near: {', '.join(map(str, near(wanted or max(seen), seen)))}"
    )
