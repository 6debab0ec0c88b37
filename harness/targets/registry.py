"""Targets by name: which there are, what their options may be, and which of them this machine has.

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
(`cpu@ort-1.22.1,threads=4`, `cpu@ssh:HOST,threads=2`); the default is 1. `cpu,library=PATH` loads a library of custom
operators into every session. `cpu,config.KEY=VALUE` and `dml,config.KEY=VALUE` set an entry of the session's configuration, such
as `config.session.qdq_matmulnbits_accuracy_level=0`; ONNX Runtime ignores a key that it does not know.

A plugin takes `device=N` or `device=NAME`, `option.KEY=VALUE` for each option of the provider's own, and a
library `provider=NAME`.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import UsageError, shown
from harness.model.plain_file import PlainFile
from harness.targets import plugins, remote
from harness.targets.plugins import Plugin
from harness.targets.runtimes import wanted_release
from harness.targets.target import CONFIG, DML_OPTIONS, PROVIDERS, Target
from harness.targets.windows import releases, runtime

_FORMS = (
    "cpu, cpu@ort-VERSION, dml, dml@windows, dml@ort-VERSION, dml@level-N_N, dml@levels, cpu@ssh:HOST, dml@ssh:HOST, "
    "directml, directml@windows, directml@ort-VERSION, directml@level-N_N, directml@levels, "
    "openvino, ggml, webgpu, ggml@VERSION, plugin=PATH, fake"
)
_SESSION_OPTIONS = ("graph_fusion", "graph_capture")
_ELSEWHERE = (
    "cuda", "tensorrt", "rocm", "migraphx", "coreml", "qnn", "nnapi", "xnnpack", "vitisai", "cann", "dnnl",
)  # fmt: skip
_PLACED = ("cpu", "dml")
_RELEASED = ("dml", "directml")
_OPTIONS = {
    "cpu": ("threads", "memory_limit", "library", f"{CONFIG}KEY"),
    "dml": (*DML_OPTIONS, *_SESSION_OPTIONS, "memory_limit", f"{CONFIG}KEY"),
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
    """Parse `name[@release][,key=value…]`; raise UsageError with the allowed names."""
    if not text.isascii() and text != text.encode(errors="replace").decode():
        raise UsageError(f"target {text!r}: is not text in UTF-8: rename the file")
    head, *pairs = text.split(",")
    if head.startswith(plugins.PREFIX) or plugins.package(head.partition("@")[0]) is not None:
        return _plugin(text, head, pairs)
    name, at, release = head.partition("@")
    host = remote.check_host(release.removeprefix("ssh:")) if release.startswith("ssh:") else None
    if name not in PROVIDERS or (at and name not in (_PLACED if host else (*_PLACED, "directml"))):
        raise _unknown(text)
    allowed = (*_OPTIONS[name], "python") if host else _OPTIONS[name]
    options: dict[str, str] = {}
    for pair in pairs:
        if pair.partition("@")[0] in PROVIDERS:
            raise UsageError(
                f"target {text!r}: give each target an option of its own: {' '.join(f'-t {each}' for each in text.split(','))}"
            )
        key, value = _option(text, pair, options, allowed)
        pattern, meaning = _VALUES.get(key, (".+", ""))
        if not re.fullmatch(pattern, value):
            raise UsageError(f"target {shown(text)!r}: {key} is {meaning}, not {shown(value)!r}")
    if name == "directml":
        _check_directml(text, options, release)
    if "library" in options and (host or not Path(options["library"]).is_file()):
        why = "is loaded on this machine alone" if host else "there is no such file"
        raise UsageError(f"target {text!r}: library={options['library']}: {why}")
    return Target(
        text, PROVIDERS[name], _release(text, name, release) if at and not host else None, options, host
    )


def _option(text: str, pair: str, options: dict[str, str], allowed: Sequence[str]) -> tuple[str, str]:
    """Add an option of a target to others, and return it; `option.KEY` stands for any option of a provider's own, `config.KEY`
    for any entry of the session's configuration."""
    key, equals, value = pair.partition("=")
    own = any(
        key.startswith(each) and key != each and f"{each}KEY" in allowed for each in (plugins.OPTION, CONFIG)
    )
    if not equals or not value or not (own or key in allowed) or key in options:
        known = ", ".join(f"{each}=…" for each in allowed)
        raise UsageError(f"target {text!r}: bad option {pair!r}; allowed, each once: {known}")
    options[key] = value
    return key, value


def _plugin(text: str, head: str, pairs: Sequence[str]) -> Target:
    """Parse `plugin=PATH` and the packages with a plugin, whose provider is known by the package."""
    name, at, release = head.partition("@")
    project = plugins.package(name)
    library = head.removeprefix(plugins.PREFIX) if project is None else ""
    if project is None and not library:
        raise UsageError(f"target {text!r}: name the shared library of an execution provider: plugin=PATH")
    if project is not None and at:
        wanted_release.parse_version(release, project)
    allowed = plugins.OPTIONS if project is None else plugins.OPTIONS[:1]
    options: dict[str, str] = {}
    for pair in pairs:
        _option(text, pair, options, (*allowed, f"{plugins.OPTION}KEY"))
    provider = options.get("provider") if project is None else project.provider
    if provider in PROVIDERS.values():
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
    swapped = (name for name in PROVIDERS if sorted(name) == sorted(text))
    near = _meant(text) or (*swapped, *difflib.get_close_matches(text, PROVIDERS, 1, 0.75), None)[0]
    meant = f"; did you mean {near!r}?" if near else ""
    return UsageError(
        f"unknown target {text!r}{meant}; allowed: {_FORMS}, each with options such as dml,device_id=1"
    )


def _meant(text: str) -> str | None:
    """Return the target whose name differs only in capitals, or lacks `ort-` or `level-` before a version."""
    head, comma, options = text.partition(",")
    name, at, release = head.lower().partition("@")
    if name not in PROVIDERS or (at and name not in (*_PLACED, "directml")):
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
            wanted_release.parse_version(value)
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
    return parse_targets(["cpu"]), {"dml": reason, "directml": reason}


def starts_what_it_names(text: str) -> bool:
    """Say whether a target's name has a host, an interpreter, a library, its options or a script in it.

    Who takes such a name from a file starts what that says; a provider's option can name files that it reads
    or writes.
    """
    return bool(started_by(text))


def started_by(text: str) -> list[str]:
    """Return the parts of a target's name that determine the started program or the files that are read or written:
    host, plugin, python, dll, script, library, option."""
    head, *pairs = text.split(",")
    keys = [pair.partition("=")[0] for pair in pairs]
    named: list[str] = [key for key in ("python", "dll", "script", "library") if key in keys]
    if "@ssh:" in head:
        named.insert(0, "host")
    if head.startswith(plugins.PREFIX):
        named.insert(0, "plugin")
    if any(key.startswith(plugins.OPTION) for key in keys):
        named.append("option")
    return named
