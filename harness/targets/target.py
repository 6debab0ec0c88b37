"""A target as a type: provider, runtime and options, and what the sessions of its workers are given."""

from __future__ import annotations

from typing import NamedTuple

from harness.model.errors import TargetUnavailable
from harness.model.target_info import CPU, DIRECTML, DML
from harness.targets import plugins
from harness.targets.batches import FAKE
from harness.targets.launching import Hello
from harness.targets.plugins import Plugin

DML_OPTIONS = ("device_id", "performance_preference", "device_filter", "disable_metacommands")
"""Options of the DirectML provider that a target's name may set."""
CONFIG = "config."
"""What the option that sets an entry of the session's configuration begins with, `config.KEY=VALUE`."""


class Target(NamedTuple):
    """A parsed target name."""

    name: str
    provider: str
    release: str | None
    options: dict[str, str]
    host: str | None = None
    plugin: Plugin | None = None


PROVIDERS = {"cpu": CPU, "dml": DML, "directml": DIRECTML, "fake": FAKE}
"""The providers of targets that are no plugins, by how their names begin."""
_WHEELS = {CPU: "onnxruntime", DML: "onnxruntime-directml", DIRECTML: "onnxruntime-directml"}


def greeted(target: Target, hello: Hello) -> Target:
    """Return a target with the provider that its worker tells: a plugin's library alone knows how it is
    called.

    Errors: TargetUnavailable where that is the name of a provider that is no plugin, and so no proof of
    placement.
    """
    provider = hello.device.get("provider")
    if target.provider != plugins.UNKNOWN or not provider:
        return target
    if provider in PROVIDERS.values():
        raise TargetUnavailable(
            f"target {target.name!r}: its library calls its provider {provider}, which is no plugin's; name another library"
        )
    return target._replace(provider=str(provider))


def wheel(target: Target) -> str:
    """Return the package that has the target's provider."""
    return _WHEELS.get(target.provider, "onnxruntime")


def session_threads(target: Target) -> int:
    """Return how many threads of one session an operator may be split over."""
    return int(target.options.get("threads", "1"))


def session_config(target: Target) -> dict[str, str]:
    """Return the session configuration: what the target sets, and what proves placement, by which what the provider does not
    take is an error, not a quiet fallback."""
    chosen = {key[len(CONFIG) :]: value for key, value in target.options.items() if key.startswith(CONFIG)}
    config = {**chosen, "session.record_ep_graph_assignment_info": "1"}
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
