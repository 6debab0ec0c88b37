"""Targets by name: provider, runtime and options, and whether this machine has them.

    cpu               ONNX Runtime's CPU provider in this interpreter
    cpu@ort-1.22.1    the CPU provider of another release, in an environment of its own
    dml               the DirectML provider: of this interpreter on Windows, in the Windows runtime on Linux (`dml@windows`)
    dml@ort-1.12.1    the DirectML provider of another release, in the Windows runtime
    dml@level-5_0     of the newest release whose DirectML.dll ends at this feature level; `dml@levels` is one for each such level
    directml          DirectML's own API, without ONNX Runtime: where `dml` runs, with the same releases (`directml@ort-1.12.1`,
                      `directml@level-5_0`, `directml@levels`) or a DLL of one's own (`directml,dll=PATH`)
    cpu@ssh:HOST      the CPU provider, dml@ssh:HOST the DirectML provider of another machine, over ssh (`python=…` names its interpreter)
    openvino, ggml, webgpu    the provider of a package of the index, in an environment of its own; `ggml@0.2.0` is one release of it
    plugin=PATH       the provider of a shared library, a plugin of this interpreter's onnxruntime (docs/plugins.md)
    fake              a shipped target with scripted outcomes, to try reports and CI without a provider (`fake,script=FILE`)

Options follow a comma: `cpu,threads=2`, `cpu,memory_limit=2000000000`, `dml,device_id=1`. `threads` is the
number of threads of one session over which an operator may be split, on the CPU provider of any runtime
(`cpu@ort-1.22.1,threads=4`, `cpu@ssh:HOST,threads=2`); the default is 1.

A plugin takes `device=N` or `device=NAME`, `option.KEY=VALUE` for each option of the provider's own, and a
library `provider=NAME`.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from harness.model.errors import TargetUnavailable, UsageError, shown
from harness.model.plain_file import PlainFile
from harness.model.records import CPU, DIRECTML, DML
from harness.targets import plugins, remote
from harness.targets.frames import FAKE
from harness.targets.plugins import Plugin
from harness.targets.pool import Hello, Launch
from harness.targets.runtimes import environments
from harness.targets.windows import releases, runtime

_HERE = "this interpreter"
_WINDOWS = _HERE if sys.platform == "win32" else "Windows runtime"
_WORKER = Path(__file__).resolve().parent.parent / "worker" / "worker.py"
_FORMS = (
    "cpu, cpu@ort-VERSION, dml, dml@windows, dml@ort-VERSION, dml@level-N_N, dml@levels, cpu@ssh:HOST, dml@ssh:HOST, "
    "directml, directml@windows, directml@ort-VERSION, directml@level-N_N, directml@levels, "
    "openvino, ggml, webgpu, ggml@VERSION, plugin=PATH, fake"
)
_DML_OPTIONS = ("device_id", "performance_preference", "device_filter", "disable_metacommands")
_SESSION_OPTIONS = ("graph_fusion", "graph_capture")


class Target(NamedTuple):
    """A parsed target name."""

    name: str
    provider: str
    release: str | None
    options: dict[str, str]
    host: str | None = None
    plugin: Plugin | None = None


_PROVIDERS = {"cpu": CPU, "dml": DML, "directml": DIRECTML, "fake": FAKE}
_ELSEWHERE = (
    "cuda",
    "tensorrt",
    "rocm",
    "migraphx",
    "coreml",
    "qnn",
    "nnapi",
    "xnnpack",
    "vitisai",
    "cann",
    "dnnl",
)
_PLACED = ("cpu", "dml")
_RELEASED = ("dml", "directml")
_WHEELS = {CPU: "onnxruntime", DML: "onnxruntime-directml", DIRECTML: "onnxruntime-directml"}
_OPTIONS = {
    "cpu": ("threads", "memory_limit"),
    "dml": (*_DML_OPTIONS, *_SESSION_OPTIONS, "memory_limit"),
    "directml": ("device_id", "dll", "debug"),
    "fake": ("script",),
}

_SWITCH = "[01]", "0 or 1"
_VALUES = {
    "threads": ("[1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-6]", "a number from 1 to 256"),
    "memory_limit": ("[0-9]{1,18}", "a number of bytes"),
    "device_id": ("[0-9]{1,9}", "the number of a DXGI adapter"),
    "debug": _SWITCH,
    "graph_fusion": _SWITCH,
    "graph_capture": _SWITCH,
}


def parse_target(text: str) -> Target:
    """Parse `name[@release][,key=value…]`; raise UsageError that names what is allowed."""
    if not text.isascii() and text != text.encode(errors="replace").decode():
        raise UsageError(f"target {text!r}: is not text in UTF-8: rename the file")
    head, *pairs = text.split(",")
    if head.startswith(plugins.PREFIX) or plugins.package(head.partition("@")[0]) is not None:
        return _plugin(text, head, pairs)
    name, at, release = head.partition("@")
    host = remote.check_host(release.removeprefix("ssh:")) if release.startswith("ssh:") else None
    if name not in _PROVIDERS or (at and name not in (_PLACED if host else (*_PLACED, "directml"))):
        raise _unknown(text)
    allowed = (*_OPTIONS[name], "python") if host else _OPTIONS[name]
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if pair.partition("@")[0] in _PROVIDERS:
            raise UsageError(
                f"target {text!r}: give each target an option of its own: {' '.join(f'-t {each}' for each in text.split(','))}"
            )
        if not equals or not value or key not in allowed or key in options:
            raise UsageError(
                f"target {text!r}: bad option {pair!r}; allowed, each once: {', '.join(f'{k}=…' for k in allowed)}"
            )
        options[key] = value
        pattern, meaning = _VALUES.get(key, (".+", ""))
        if not re.fullmatch(pattern, value):
            raise UsageError(f"target {shown(text)!r}: {key} is {meaning}, not {shown(value)!r}")
    if name == "directml":
        _check_directml(text, options, release)
    return Target(
        text, _PROVIDERS[name], _release(text, name, release) if at and not host else None, options, host
    )


def _plugin(text: str, head: str, pairs: Sequence[str]) -> Target:
    """Parse `plugin=PATH` and the packages with a plugin, whose provider is known by the package."""
    name, at, release = head.partition("@")
    project = plugins.package(name)
    library = head.removeprefix(plugins.PREFIX) if project is None else ""
    if project is None and not library:
        raise UsageError(f"target {text!r}: name the shared library of an execution provider: plugin=PATH")
    if project is not None and at:
        environments.parse_version(release, project)
    allowed = plugins.OPTIONS if project is None else plugins.OPTIONS[:1]
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        own = key.startswith(plugins.OPTION) and key != plugins.OPTION
        if not equals or not value or not (own or key in allowed) or key in options:
            known = ", ".join(f"{each}=…" for each in (*allowed, f"{plugins.OPTION}KEY"))
            raise UsageError(f"target {text!r}: bad option {pair!r}; allowed, each once: {known}")
        options[key] = value
    provider = options.get("provider") if project is None else project.provider
    if provider in _PROVIDERS.values():
        raise UsageError(
            f"target {text!r}: {provider} is not a plugin's; leave provider= out, or name the plugin's own"
        )
    return Target(
        text, provider or plugins.UNKNOWN, None, options,
        plugin=Plugin(
            None if project else Path(library), project, release if at and project else None, provider, options.get("device"),
            {key.removeprefix(plugins.OPTION): value for key, value in options.items() if key.startswith(plugins.OPTION)},
        ),
    )  # fmt: skip


def _unknown(text: str) -> UsageError:
    if text.partition("@")[0].partition(",")[0].lower() in _ELSEWHERE:
        return UsageError(
            f"target {text!r} is a provider of another wheel of ONNX Runtime, which is not run here; "
            "one in a shared library runs as it is: -t plugin=PATH"
        )
    swapped = (name for name in _PROVIDERS if sorted(name) == sorted(text))
    near = _meant(text) or (*swapped, *difflib.get_close_matches(text, _PROVIDERS, 1, 0.75), None)[0]
    meant = f"; did you mean {near!r}?" if near else ""
    return UsageError(
        f"unknown target {text!r}{meant}; allowed: {_FORMS}, each with options such as dml,device_id=1"
    )


def _meant(text: str) -> str | None:
    """Return the target of which only capitals, or `ort-` and `level-` before a version, were wrong."""
    head, comma, options = text.partition(",")
    name, at, release = head.lower().partition("@")
    if name not in _PROVIDERS or (at and name not in (*_PLACED, "directml")):
        return None
    if re.fullmatch(r"[0-9]+_[0-9]+", release) and name != "cpu":
        release = f"level-{release}"
    elif found := re.fullmatch(r"(?:v|ort|onnxruntime)?[-=]*([0-9]+\.[0-9.]+)", release):
        release = f"ort-{found[1]}"
    elif (found := re.fullmatch(r"level[-=_]*([0-9]+)[._]([0-9]+)", release)) and name != "cpu":
        release = f"level-{found[1]}_{found[2]}"
    elif release not in ("", "windows", "levels") or (release and name == "cpu") or (at and not release):
        return None
    meant = f"{name}{at}{release}{comma}{options}"
    return meant if meant != text else None


def _check_directml(text: str, options: dict[str, str], release: str) -> None:
    if "dll" not in options:
        return
    if release not in ("", "windows"):
        raise UsageError(f"target {text!r}: a DLL of one's own and that of a release; name one of the two")
    try:
        with PlainFile(Path(options["dll"])) as file:
            program = file.read(2) == b"MZ"
    except OSError as error:
        raise UsageError(
            f"target {text!r}: {options['dll']}: {error.strerror}; name a DirectML.dll for 64-bit Windows"
        ) from error
    if not program:
        raise UsageError(
            f"target {text!r}: {options['dll']} is not a Windows DLL; name a DirectML.dll for 64-bit Windows"
        )


def _release(text: str, name: str, release: str) -> str | None:
    kind, dash, value = release.partition("-")
    if name == "cpu":
        if kind == "ort" and dash:
            environments.parse_version(value)
            return value
        raise _unknown(text)
    if release == "windows":
        return None
    if kind == "ort" and dash:
        return releases.release(value).onnxruntime
    if kind == "level" and dash:
        return releases.release_for_level(value).onnxruntime
    raise _unknown(text)


def parse_targets(texts: Sequence[str]) -> tuple[Target, ...]:
    """Parse the targets of a command line, each once; `dml@levels` and `directml@levels` stand for one target
    a feature level."""
    names: list[str] = []
    for text in texts:
        name, at, rest = text.partition("@levels")
        if name in _RELEASED and at and rest[:1] in ("", ","):
            names += [f"{name}@level-{level}{rest}" for level in releases.usable_levels()]
        else:
            names.append(text)
    return tuple(map(parse_target, dict.fromkeys(names)))


def default_targets() -> tuple[tuple[Target, ...], dict[str, str]]:
    """Return every target that this machine has, and for those that it has not why, with the remedy where
    there is one."""
    reason = None if sys.platform == "win32" else runtime.unavailable()
    if reason is None:
        return parse_targets(["cpu", "dml", "directml"]), {}
    what, run, _ = reason.partition(": run ")
    why = what + ("; `harness setup` installs what this machine can have" if run else "")
    return parse_targets(["cpu"]), {"dml": why, "directml": why}


def starts_what_it_names(text: str) -> bool:
    """Say whether a target's name has a host, an interpreter, a library, its options or a script in it.

    Who takes such a name from a file starts what that says; a provider's option can name files that it reads
    or writes.
    """
    return bool(started_by(text))


def started_by(text: str) -> list[str]:
    """Return which parts of a target's name say what is started, read or written: host, plugin, python, dll,
    script, option."""
    head, *pairs = text.split(",")
    keys = [pair.partition("=")[0] for pair in pairs]
    named: list[str] = [key for key in ("python", "dll", "script") if key in keys]
    if "@ssh:" in head:
        named.insert(0, "host")
    if head.startswith(plugins.PREFIX):
        named.insert(0, "plugin")
    if any(key.startswith(plugins.OPTION) for key in keys):
        named.append("option")
    return named


def greeted(target: Target, hello: Hello) -> Target:
    """Return a target with the provider that its worker tells: a plugin's library alone knows how it is
    called.

    Errors: TargetUnavailable where that is the name of a provider that is no plugin, and so no proof of
    placement.
    """
    provider = hello.device.get("provider")
    if target.provider != plugins.UNKNOWN or not provider:
        return target
    if provider in _PROVIDERS.values():
        raise TargetUnavailable(
            f"target {target.name!r}: its library calls its provider {provider}, which is no plugin's; name another library"
        )
    return target._replace(provider=str(provider))


def make_ready(targets: Sequence[Target]) -> None:
    """Make the environments of other releases, once, before several processes want them; UsageError for a
    release that is not published.

    Where this machine cannot have one, `launch` says so.
    """
    for target in targets:
        if target.provider == CPU and target.release is not None and target.host is None:
            with contextlib.suppress(TargetUnavailable):
                environments.prepare(target.release)
        if target.plugin is not None and target.plugin.project is not None:
            with contextlib.suppress(TargetUnavailable):
                environments.prepare(target.plugin.release, project=target.plugin.project)


def launch(target: Target) -> Launch:
    """Say how to start a worker for a target; raise TargetUnavailable with the reason and the remedy."""
    if target.provider == FAKE:
        script = target.options.get("script")
        arguments = [str(Path(script).resolve())] if script else []
        return Launch([sys.executable, "-m", "harness.targets.fake", *arguments], None, FAKE, {}, {})
    if target.plugin is not None:
        command, variables, where = plugins.prepared(target.plugin, target.name)
        return Launch(
            command, {**variables, "OMP_NUM_THREADS": "1"}, target.provider, {}, session_config(target), runtime=where or _HERE,
            link=plugins.Refusals(target.name),
        )  # fmt: skip
    limit = int(target.options["memory_limit"]) if "memory_limit" in target.options else None
    threads = session_threads(target)
    if target.host is not None:
        python = target.options.get("python", "python")
        chosen = {key: value for key, value in target.options.items() if key in _DML_OPTIONS}
        return Launch(
            remote.command(target.host, python), None, target.provider, chosen, session_config(target), remote.START_SECONDS, limit,
            f"ssh:{target.host}", remote.program(), remote.Ssh(target.host, python, wheel(target)), threads,
        )  # fmt: skip
    if target.provider == DIRECTML:
        dll = Path(target.options["dll"]) if "dll" in target.options else None
        arguments = [
            f"{key}={target.options[key]}" for key in ("device_id", "debug") if key in target.options
        ]
        argv, env = runtime.launch(
            _WORKER, ort=target.release, args=arguments, through="directml_worker.py", dll=dll
        )
        return Launch(argv, env, DIRECTML, {}, {}, runtime.START_SECONDS, runtime=_WINDOWS)
    if target.provider == DML:
        argv, env = runtime.launch(_WORKER, ort=target.release)
        chosen = {key: value for key, value in target.options.items() if key in _DML_OPTIONS}
        options = {**(runtime.PROVIDER_OPTIONS if sys.platform != "win32" else {}), **chosen}
        return Launch(
            argv,
            env,
            DML,
            options,
            session_config(target),
            runtime.START_SECONDS,
            limit,
            _WINDOWS,
        )
    env = {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
    }  # before 1.7 the pool of a session was OpenMP's
    if target.release is not None:
        interpreter, version = environments.prepare(target.release)
        name = f"environment with onnxruntime {version}"
        argv = [str(interpreter), "-I", str(_WORKER)]
        return Launch(
            argv, env, CPU, {}, session_config(target), memory_limit=limit, runtime=name, threads=threads
        )
    if find_spec("onnxruntime") is None:
        raise TargetUnavailable(
            f"target {target.name!r}: onnxruntime is not installed in this interpreter; run: python -m pip install onnxruntime"
        )
    return Launch(
        [sys.executable, str(_WORKER)],
        env,
        CPU,
        {},
        session_config(target),
        memory_limit=limit,
        threads=threads,
    )


def wheel(target: Target) -> str:
    """Return the package that has the target's provider."""
    return _WHEELS.get(target.provider, "onnxruntime")


def session_threads(target: Target) -> int:
    """Return how many threads of one session an operator may be split over."""
    return int(target.options.get("threads", "1"))


def session_config(target: Target) -> dict[str, str]:
    """Return the session configuration that proves placement: what the provider does not take is an error,
    not a quiet fallback."""
    config = {"session.record_ep_graph_assignment_info": "1"}
    if session_threads(target) > 1:
        config["session.intra_op.allow_spinning"] = "0"  # idle threads sleep: what is split stays the same
    if target.provider == CPU:
        return config
    config["session.disable_cpu_ep_fallback"] = "1"
    if target.provider == DML:
        config["ep.dml.disable_graph_fusion"] = "0" if target.options.get("graph_fusion") == "1" else "1"
        if target.options.get("graph_capture") == "1":
            config["ep.dml.enable_graph_capture"] = "1"
    return config
