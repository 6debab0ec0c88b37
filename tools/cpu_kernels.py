"""Make `harness/model/data/cpu_kernels.json` again: the kernels of ONNX Runtime's CPU provider, as each release lists its own.
`python -m tools.cpu_kernels` installs the newest patch of every release from 1.16 on, the first that lists kernels."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx.defs
from packaging.version import Version

from harness.model.reference.files import data_file
from harness.model.reference.kernels import CPU_KERNELS, KERNELS, onnx_operator
from harness.model.signatures import FILE
from harness.targets.runtimes.environments import prepare, published_releases
from tools.refresh_directml.package import allowed, grouped, type_text

FIRST = Version("1.16")
PATH = Path(__file__).parent.parent / "harness" / "model" / "data" / CPU_KERNELS
_OPEN = 2**31 - 1
_SCRIPT = """
import json
from onnxruntime.capi import onnxruntime_pybind11_state as state
print(json.dumps([
    [".".join(filter(None, (each.domain, each.op_name))), each.version_range, each.type_constraints]
    for each in state.get_all_opkernel_def() if each.provider == "CPUExecutionProvider"
]))
"""
Listed = dict[str, list[tuple[int, int, dict[str, list[str]]]]]
"""By operator the first and the last version that a kernel serves, and its types by type parameter."""


def minors() -> list[Version]:
    """Return the newest patch of each published release, the oldest first."""
    found: dict[tuple[int, ...], Version] = {}
    for each in published_releases()[0]:
        if each >= FIRST and not each.is_prerelease:
            found[each.release[:2]] = max(each, found.get(each.release[:2], each))
    return sorted(found.values())


def listed(release: Version) -> Listed:
    """Return the kernels that a release lists."""
    python, _ = prepare(str(release))
    printed = subprocess.run([python, "-c", _SCRIPT], capture_output=True, text=True, check=True).stdout
    found: Listed = {}
    for name, (first, last), constraints in json.loads(printed):
        types = {key: list(map(type_text, texts)) for key, texts in constraints.items()}
        found.setdefault(name, []).append((first, last, types))
    return found


def kernels(operator: str, versions: tuple[int, ...], release: Listed) -> list[dict[str, Any]]:
    """Return the kernels of an operator in a release, for the versions of its definition and the types that it allows: an
    open-ended kernel serves its first version alone. The signature of an operator that ONNX does not define stands for all
    of its versions, and so do its kernels."""
    known = onnx.defs.has(operator)
    return grouped(
        (version, {"types": types})
        for version in versions
        for types in _joined(
            _types(types, operator, version)
            for first, last, types in release.get(operator, ())
            if not known or first == version or first < version <= last < _OPEN
        )
    )


def _joined(kernels: Iterable[dict[str, list[str]]]) -> list[dict[str, list[str]]]:
    """Join kernels that differ in the types of one parameter."""
    found = sorted(kernels, key=str)
    for name in found[0] if found else ():
        others: dict[str, dict[str, list[str]]] = {}
        for each in found:
            first = others.setdefault(str({**each, name: None}), each)
            first[name] = sorted({*first[name], *each[name]})
        found = list(others.values())
    return found


def _types(types: dict[str, list[str]], operator: str, version: int) -> dict[str, list[str]]:
    """Return the types of a kernel that ONNX's definition allows; all of an operator that ONNX does not define."""
    if onnx.defs.has(operator):
        return allowed(types, onnx.defs.get_schema(operator, version))
    return {key: sorted(each) for key, each in sorted(types.items())}


def changes(operator: str, releases: dict[str, Listed]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the kernels of an operator in the oldest release, and in each later one that has others."""
    known = onnx_operator(operator)
    before: list[dict[str, Any]] = []
    for label, release in releases.items():
        found = kernels(operator, known.versions, release) if known else []
        if found != before:
            yield label, found
        before = found


def text() -> str:
    """Return what the file should say, a line an operator."""
    releases = {".".join(map(str, each.release[:2])): listed(each) for each in minors()}
    operators = sorted({*data_file(KERNELS).operators, *data_file(FILE).operators})
    found = ((each, dict(changes(each, releases))) for each in operators)
    lines = (f'"{name}":{json.dumps(each, separators=(",", ":"))}' for name, each in found if each)
    return f'{{"onnxruntime":{json.dumps(list(releases))},\n"operators":{{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8", newline="\n")
