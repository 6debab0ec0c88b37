"""Handwritten facts about kernels beside ONNX Runtime's tables: `data/onnxruntime_kernels.yaml`."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import yaml

from harness.model.reference.files import file_bytes


class Corrections(msgspec.Struct, frozen=True):
    """What the tables do not say.

    `since`: by provider, operator and version, the first release with a kernel. `device_dependent`: by
    provider, the element types that it takes only on a device that reports them. `held_against`: operators
    whose tables were held against newer releases, too.
    """

    since: dict[str, dict[str, dict[str, str]]]
    device_dependent: dict[str, tuple[str, ...]]
    held_against: tuple[str, ...]
    notes: tuple[str, ...]


@cache
def corrections() -> Corrections:
    """Read the file."""
    tree: Any = yaml.load(
        file_bytes("onnxruntime_kernels.yaml"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return msgspec.convert(tree, Corrections)
