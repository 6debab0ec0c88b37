"""The installation of an environment by uv: one release of onnxruntime or of a plugin's package, and a NumPy that it can
use.

A worker needs only onnxruntime and NumPy, so nothing else is installed. NumPy 2 works since ONNX Runtime 1.19
(https://github.com/microsoft/onnxruntime/issues/21063); a release that does not start is never kept.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from packaging.version import Version

from harness.model.errors import TargetUnavailable
from harness.targets import components
from harness.targets.components import Progress
from harness.targets.runtimes.environment_folder import executable, folder_of, retire
from harness.targets.runtimes.index import configuration
from harness.targets.runtimes.projects import ONNXRUNTIME, WITH_PLUGINS, Project
from harness.targets.runtimes.pythons import Python, run_uv

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
    done = subprocess.run(
        [str(executable(folder)), "-I", "-c", _SAY + more + _SAID],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
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
