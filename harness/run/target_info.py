"""Describes a target for a run's header, from the greeting of its worker."""

from __future__ import annotations

from typing import Any

from harness.model.target_info import TargetInfo
from harness.run.artifacts import LIMIT_BYTES
from harness.targets.launching import Hello
from harness.targets.target import Target

_DEVICE = (
    "directml",
    "directml_sha256",
    "adapter",
    "vendor",
    "luid",
    "driver",
    "max_feature_level",
    "plugin",
    "plugin_sha256",
    "plugin_vendor",
)


def target_info(target: Target, hello: Hello, runtime: str) -> TargetInfo:
    """Return provider, runtime, versions and device of a target whose worker has greeted."""
    device = hello.device
    texts: dict[str, Any] = {key: str(device[key]) for key in _DEVICE if key in device}
    dtypes = device.get("device_dtypes", ())
    metadata = device.get("device_metadata", {})
    package = target.plugin.project if target.plugin is not None else None
    return TargetInfo(
        provider=target.provider,
        runtime=runtime,
        onnxruntime=hello.onnxruntime,
        python=hello.python,
        numpy=hello.numpy,
        platform=hello.platform,
        options=target.options,
        artifact_limit_bytes=LIMIT_BYTES,
        device_dtypes=tuple(map(str, dtypes)) if isinstance(dtypes, list) else (),
        package=None if package is None else package.name,
        package_version=None if package is None else runtime.rpartition(" ")[2],
        device_metadata={str(key): str(value) for key, value in metadata.items()}
        if isinstance(metadata, dict)
        else {},
        **texts,
    )
