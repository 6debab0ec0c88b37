"""Make `harness/model/data/kernel_releases.json` again: since which release ONNX Runtime's CPU provider has the kernels that
the tables name, as each release lists its own. `python -m tools.kernel_releases` installs the newest patch of every release
from 1.16 on, the first that lists kernels."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.version import Version

from harness.model.onnx_schemas import dtypes_of
from harness.model.reference.files import data_file
from harness.model.reference.kernels import KERNELS, RELEASES, onnx_operator
from harness.model.signatures import FILE
from harness.model.target_info import CPU
from harness.targets.runtimes.environments import prepare, published_releases

FIRST = Version("1.16")
PATH = Path(__file__).parent.parent / "harness" / "model" / "data" / RELEASES
_OPEN = 2**31 - 1
_SCRIPT = """
import json
from onnxruntime.capi import onnxruntime_pybind11_state as state
print(json.dumps([
    [".".join(filter(None, (each.domain, each.op_name))), each.version_range, each.type_constraints]
    for each in state.get_all_opkernel_def() if each.provider == "CPUExecutionProvider"
]))
"""
Kernels = dict[str, list[tuple[int, int, dict[str, tuple[str, ...]]]]]
"""By operator the first and the last version that a kernel serves, and its element types by type parameter."""


def minors() -> list[Version]:
    """Return the newest patch of each published release, the oldest first."""
    found: dict[tuple[int, ...], Version] = {}
    for each in published_releases()[0]:
        if each >= FIRST and not each.is_prerelease:
            found[each.release[:2]] = max(each, found.get(each.release[:2], each))
    return sorted(found.values())


def listed(release: Version) -> Kernels:
    """Return the kernels that a release lists."""
    python, _ = prepare(str(release))
    printed = subprocess.run([python, "-c", _SCRIPT], capture_output=True, text=True, check=True).stdout
    found: Kernels = {}
    for name, (first, last), constraints in json.loads(printed):
        types = {key: dtypes_of(texts) for key, texts in constraints.items()}
        found.setdefault(name, []).append((first, last, types))
    return found


def serves(kernels: Kernels, operator: str, version: int, parameter: str, dtype: str) -> bool:
    """Say whether a kernel serves a version of an operator's definition; an open-ended one serves its first version alone."""
    return any(
        (first == version or first < version <= last < _OPEN) and dtype in types.get(parameter, (dtype,))
        for first, last, types in kernels.get(operator, ())
    )


def since(releases: dict[str, Kernels]) -> Iterator[tuple[str, int, str, str, str]]:
    """Yield operator, version, type parameter, element type, and the first release of those later than the oldest that has such
    a kernel, and so have all after it."""
    for operator in (*data_file(KERNELS).operators, *data_file(FILE).operators):
        known = onnx_operator(operator)
        for kernel in () if known is None else known.kernels.get(CPU, ()):
            for version in kernel.versions:
                for parameter, dtypes in kernel.types.items():
                    for dtype in dtypes:
                        lacking = [
                            label
                            for label, kernels in releases.items()
                            if not serves(kernels, operator, version, parameter, dtype)
                        ]
                        labels = list(releases)
                        if lacking and lacking[-1] != labels[-1]:
                            yield operator, version, parameter, dtype, labels[labels.index(lacking[-1]) + 1]


def text() -> str:
    """Return what the file should say, a line an operator."""
    releases = {".".join(map(str, each.release[:2])): listed(each) for each in minors()}
    found: dict[str, Any] = {}
    for operator, version, parameter, dtype, first in since(releases):
        found.setdefault(operator, {}).setdefault(version, {}).setdefault(parameter, {})[dtype] = first
    lines = (f'"{name}":{json.dumps(each, separators=(",", ":"))}' for name, each in sorted(found.items()))
    return f'{{"onnxruntime":{json.dumps(list(releases))},\n"operators":{{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8", newline="\n")
