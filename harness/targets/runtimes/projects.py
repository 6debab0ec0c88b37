"""The projects that get environments: releases of onnxruntime, and packages with an execution provider as a
plugin.

A plugin's package says in its module where its library is. Its metadata names the onnxruntime that it
requires; otherwise it works with any that supports plugins, and the newest is installed. Source: the
packages' own metadata.
"""

from __future__ import annotations

from typing import NamedTuple

from packaging.version import Version


class Project(NamedTuple):
    """A project of the package index; `target`, `module` and `provider` are a plugin's: the target's name,
    the module, and the provider.

    `quiet` are variables that stop it from printing much for every session or crash, where its user has not
    set them.
    """

    name: str
    target: str = "cpu"
    module: str | None = None
    provider: str | None = None
    quiet: tuple[tuple[str, str], ...] = ()

    def label(self, version: Version) -> str:
        """Return how commands call one of its environments: `1.22.1`, `ggml@0.2.0`."""
        return str(version) if self.module is None else f"{self.target}@{version}"

    def target_name(self, version: Version) -> str:
        """Return the target that an environment is for: `cpu@ort-1.22.1`, `ggml@0.2.0`."""
        return f"cpu@ort-{version}" if self.module is None else f"{self.target}@{version}"


ONNXRUNTIME = Project("onnxruntime")
PLUGINS = {
    plugin.target: plugin
    for plugin in (
        Project(
            "onnxruntime-ep-openvino", "openvino", "onnxruntime_ep_openvino", "OpenVINOExecutionProvider"
        ),
        Project(
            "onnxruntime-ggml",
            "ggml",
            "onnxruntime_ggml",
            "ggml",
            (("ORT_GGML_LOG", "error"), ("GGML_NO_BACKTRACE", "1")),
        ),
        Project("onnxruntime-ep-webgpu", "webgpu", "onnxruntime_ep_webgpu", "WebGpuExecutionProvider"),
    )
}
PROJECTS = (ONNXRUNTIME, *PLUGINS.values())
WITH_PLUGINS = "1.24"
"""The first release of onnxruntime that loads plugins and says where a session's nodes were placed."""
