"""Describes a target for a run's header, from the greeting of its worker."""

from __future__ import annotations

import msgspec

from harness.model.target_info import TargetInfo
from harness.run.artifacts import LIMIT_BYTES
from harness.targets.launching import Hello
from harness.targets.target import Target


def target_info(target: Target, hello: Hello, runtime: str) -> TargetInfo:
    """Return provider, runtime, versions and device of a target whose worker has greeted."""
    package = target.plugin.project if target.plugin is not None else None
    known = {
        **hello.device,
        "provider": target.provider,
        "runtime": runtime,
        "onnxruntime": hello.onnxruntime,
        "python": hello.python,
        "numpy": hello.numpy,
        "platform": hello.platform,
        "options": target.options,
        "artifact_limit_bytes": LIMIT_BYTES,
        "package": None if package is None else package.name,
        "package_version": None if package is None else runtime.rpartition(" ")[2],
    }
    return msgspec.convert(known, TargetInfo)
