"""Targets by name: which provider, in which runtime, with which options; and whether this machine has it.

    cpu          ONNX Runtime's CPU provider in this interpreter
    dml          the DirectML provider, in whichever runtime of this machine has it
    fake         a shipped target with scripted outcomes, to try reports and CI without a provider (`fake,script=FILE`)

Options follow a comma: `cpu,memory_limit=2000000000`, `dml,device_id=1`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from harness.errors import TargetUnavailable, UsageError
from harness.frames import FAKE
from harness.pool import Launch

CPU, DML = "CPUExecutionProvider", "DmlExecutionProvider"
_PACKAGE = Path(__file__).resolve().parent
_DML_OPTIONS = ("device_id", "performance_preference", "device_filter", "disable_metacommands")
_SESSION_OPTIONS = ("graph_fusion", "graph_capture")


class Target(NamedTuple):
    """A parsed target name."""

    name: str
    provider: str
    release: str | None
    options: dict[str, str]


_PROVIDERS = {"cpu": CPU, "dml": DML, "fake": FAKE}
_OPTIONS = {"cpu": ("memory_limit",), "dml": (*_DML_OPTIONS, *_SESSION_OPTIONS, "memory_limit"), "fake": ("script",)}


def parse_target(text: str) -> Target:
    """Parse `name[@release][,key=value…]`; raise UsageError that names what is allowed."""
    head, *pairs = text.split(",")
    name, at, release = head.partition("@")
    if name not in _PROVIDERS or (at and not release):
        raise UsageError(f"unknown target {text!r}; allowed: {', '.join(_PROVIDERS)}, each with options such as dml,device_id=1")
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not value or key not in _OPTIONS[name] or key in options:
            raise UsageError(f"target {text!r}: bad option {pair!r}; allowed, each once: {', '.join(f'{k}=…' for k in _OPTIONS[name])}")
        options[key] = value
    if not options.get("memory_limit", "0").isdigit():
        raise UsageError(f"target {text!r}: memory_limit is a number of bytes, not {options['memory_limit']!r}")
    return Target(text, _PROVIDERS[name], release or None, options)


def default_targets() -> list[Target]:
    """Return every target that this machine has."""
    found = [parse_target("cpu")]
    try:
        launch(parse_target("dml"))
    except TargetUnavailable:
        return found
    return [*found, parse_target("dml")]


def launch(target: Target) -> Launch:
    """Say how to start a worker for a target; raise TargetUnavailable with the reason and the remedy."""
    if target.provider == FAKE:
        script = target.options.get("script")
        arguments = [str(Path(script).resolve())] if script else []
        return Launch([sys.executable, "-m", "harness.fake", *arguments], None, FAKE, {}, {})
    if target.release is not None:
        raise TargetUnavailable(
            f"target {target.name!r}: no runtime named {target.release!r} here; this interpreter's is {target.name.split('@')[0]!r}"
        )
    if find_spec("onnxruntime") is None:
        raise TargetUnavailable(
            f"target {target.name!r}: onnxruntime is not installed in this interpreter; run: python -m pip install onnxruntime"
        )
    if target.provider == DML and sys.platform != "win32":
        raise TargetUnavailable("target 'dml': onnxruntime-directml exists for Windows only, and no Windows runtime is installed here")
    return Launch(
        argv=[sys.executable, str(_PACKAGE / "worker.py")],
        env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        provider=target.provider,
        provider_options={key: value for key, value in target.options.items() if key in _DML_OPTIONS},
        config=session_config(target),
        memory_limit=int(target.options["memory_limit"]) if "memory_limit" in target.options else None,
    )


def session_config(target: Target) -> dict[str, str]:
    """Return the session configuration that proves placement: what the provider does not take is an error, not a quiet fallback."""
    config = {"session.record_ep_graph_assignment_info": "1"}
    if target.provider == CPU:
        return config
    config["session.disable_cpu_ep_fallback"] = "1"
    if target.provider == DML:
        config["ep.dml.disable_graph_fusion"] = "0" if target.options.get("graph_fusion") == "1" else "1"
        if target.options.get("graph_capture") == "1":
            config["ep.dml.enable_graph_capture"] = "1"
    return config
