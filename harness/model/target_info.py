"""A target as a run file records it: its provider, runtime, versions and device."""

from __future__ import annotations

import msgspec

CPU, DML, DIRECTML = "CPUExecutionProvider", "DmlExecutionProvider", "DirectML"
"""What a target's `provider` says: two of ONNX Runtime's, and DirectML's own API."""
REPRODUCED = (CPU, DML, DIRECTML)
"""The providers whose failures `harness repro` writes: someone without the harness has them."""


class TargetInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A target as the run's header records it; fields that its runtime cannot tell stay None.

    `unavailable` is the reason why it did not run, with the remedy. `artifact_limit_bytes` bounds the tensors
    kept of failing cases. `plugin` is the file name of a provider's own library, `plugin_vendor` what it says
    of its maker, `package` and `package_version` where the library is from, and `device_metadata` what
    provider and hardware say of the device.
    """

    provider: str
    runtime: str = "this interpreter"
    unavailable: str | None = None
    onnxruntime: str | None = None
    python: str | None = None
    numpy: str | None = None
    platform: str | None = None
    directml: str | None = None
    directml_sha256: str | None = None
    adapter: str | None = None
    vendor: str | None = None
    luid: str | None = None
    driver: str | None = None
    max_feature_level: str | None = None
    device_dtypes: tuple[str, ...] = ()
    plugin: str | None = None
    plugin_sha256: str | None = None
    plugin_vendor: str | None = None
    package: str | None = None
    package_version: str | None = None
    device_metadata: dict[str, str] = {}
    options: dict[str, str] = {}
    artifact_limit_bytes: int | None = None
