"""The kernels that ONNX Runtime registers, and how its DirectML provider lowers an operator.

The kernels of the CPU provider are those that each release lists: `data/cpu_kernels.json`. Those of the DirectML provider are
the table of one release, which does not cover a version of an operator that is newer, and, for a newer release, a kernel that it
lacks: `data/onnxruntime_kernels.json`, with handwritten facts beside it, `data/onnxruntime_kernels.yaml`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec
from packaging.version import InvalidVersion, Version

from harness.model.reference.feature_levels import load
from harness.model.reference.files import data_file, file_bytes
from harness.model.signatures import signature
from harness.model.target_info import CPU, DML, TargetInfo

KERNELS = "onnxruntime_kernels.json"
CPU_KERNELS = "cpu_kernels.json"
"""Made by `python -m tools.cpu_kernels`: by operator, and by the release since which it is so, the kernels of the CPU provider."""
_INDEX = "Tind"
"""ONNX's type parameter of indices; neither these nor inputs of one type alone are asked of a device, which
reads them as 32-bit halves."""

Registered = Literal["yes", "no", "device", "unknown"]
"""`device`: only where the device reports the element type; `unknown`: the tables do not tell."""


class Corrections(msgspec.Struct, frozen=True):
    """What the tables do not say.

    `device_dependent`: by provider, the element types that it takes only on a device that reports them.
    """

    device_dependent: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


@cache
def corrections() -> Corrections:
    """Read the file."""
    return msgspec.convert(load("onnxruntime_kernels.yaml"), Corrections)


class Kernel(msgspec.Struct, frozen=True):
    """A kernel: the versions of the operator's definition that it serves, and its element types.

    `types` are by type parameter, or by the name of an input that has no parameter; sequences are written
    `seq(float32)`.
    """

    versions: tuple[int, ...]
    types: dict[str, tuple[str, ...]]


class Inputs(msgspec.Struct, frozen=True):
    """The inputs of some versions of an operator: (name, type parameter) each; the name again where it has
    none."""

    versions: tuple[int, ...]
    inputs: tuple[tuple[str, str], ...]


class Creation(msgspec.Struct, frozen=True):
    """What the DirectML provider makes of some versions of an operator.

    `creates` are the DirectML operators that the kernel's source names, alternatives among them; `constants`
    the inputs that are read on the CPU: a node is placed only if they are initializers. `graph` is False for
    a kernel that cannot be part of a compiled graph, `query` the function that may refuse further calls,
    `dml_target_version` the feature level that the provider has to be built for.
    """

    versions: tuple[int, ...]
    creates: tuple[str, ...]
    constants: tuple[str, ...] = ()
    graph: bool = True
    query: str | None = None
    dml_target_version: str | None = None


class OnnxOperator(msgspec.Struct, frozen=True):
    """An operator of ONNX: the versions of its definition, its inputs, and the DirectML provider's kernels and
    creations."""

    versions: tuple[int, ...]
    inputs: tuple[Inputs, ...]
    kernels: tuple[Kernel, ...] = ()
    directml: tuple[Creation, ...] = ()


class OtherRegistration(msgspec.Struct, frozen=True):
    """A kernel of the DirectML provider for an operator outside of ONNX's default domain: the DirectML operator that
    it creates, and the element types of its first type parameter."""

    creates: tuple[str, ...]
    types: tuple[str, ...]


class KernelRelease(msgspec.Struct, frozen=True):
    """Whose tables these are: the release, the files with their commits, and the newest version of an
    operator that they know.

    `others` are the DirectML provider's kernels for operators of other domains (`com.microsoft:Attention`)
    and for those that ONNX never adopted or removed (`Affine`).
    """

    onnxruntime: str
    sources: tuple[str, ...]
    onnx: str
    newest_opset: int
    others: dict[str, OtherRegistration] = {}


@cache
def release() -> KernelRelease:
    """Return which release the tables are of."""
    return msgspec.json.decode(file_bytes(KERNELS), type=KernelRelease)


@cache
def onnx_operator(name: str) -> OnnxOperator | None:
    """Return the facts about an operator of ONNX's default domain, None for an unknown one."""
    found = data_file(KERNELS).operators.get(name)
    return contributed(name) if found is None else msgspec.json.decode(found, type=OnnxOperator)


def contributed(name: str) -> OnnxOperator | None:
    """Return an operator that ONNX does not define; of the DirectML provider's kernel only the types of the first type
    parameter are known."""
    known = signature(name)
    if known is None:
        return None
    versions, inputs = (known.since,), known.schema(name).inputs
    domain, _, type_ = name.rpartition(".")
    other = release().others.get(f"{domain}:{type_}" if domain else type_)
    return OnnxOperator(
        versions,
        (Inputs(versions, tuple((each.name, each.type_param) for each in inputs)),),
        (Kernel(versions, {inputs[0].type_param: other.types}),) if other and known.types else (),
        (Creation(versions, other.creates),) if other else (),
    )


def operator_version(operator: str, opset: int) -> int | None:
    """Return the version of the operator that a model of `opset` uses, None for an unknown operator or one
    that is newer than the opset."""
    known = onnx_operator(operator)
    if known is None:
        return None
    return max((version for version in known.versions if version <= opset), default=None)


@cache
def formal_inputs(operator: str, opset: int) -> tuple[tuple[str, str], ...]:
    """Return (name, type parameter) of each input at an opset; () where that is unknown."""
    known, version = onnx_operator(operator), operator_version(operator, opset)
    formal = () if known is None else known.inputs
    return next((each.inputs for each in formal if version in each.versions), ())


def registered(target: TargetInfo, operator: str, opset: int, types: Mapping[str, str]) -> Registered:
    """Say whether a target's provider registers a kernel for an operator of these element types, given by
    type parameter or by input."""
    provider, cpu = target.provider, target.provider == CPU
    known, version = onnx_operator(operator), operator_version(operator, opset)
    if known is None or version is None or provider not in (CPU, DML):
        return "unknown"
    parameters = dict(formal_inputs(operator, opset))
    given = {parameters.get(name, name): dtype for name, dtype in types.items()}
    for kernel in cpu_kernels(operator, target.onnxruntime) if cpu else known.kernels:
        if version in kernel.versions and all(
            _has(kernel.types.get(name, (dtype,)), dtype) for name, dtype in given.items()
        ):
            asked = {
                dtype for name, dtype in given.items() if name != _INDEX and parameters.get(name) != name
            }
            return "device" if asked & device_types(provider) - set(target.device_dtypes) else "yes"
    covered = cpu or version <= release().newest_opset
    tables = _lists()[-1] if cpu else release().onnxruntime
    return "no" if covered and _minor(target.onnxruntime) <= _minor(tables) else "unknown"


@cache
def cpu_kernels(operator: str, onnxruntime: str | None) -> tuple[Kernel, ...]:
    """Return the kernels that the CPU provider of a release has for an operator: those of the newest list up to it, of
    the oldest list for an older release."""
    raw = data_file(CPU_KERNELS).operators.get(operator)
    lists = {} if raw is None else msgspec.json.decode(raw, type=dict[str, tuple[Kernel, ...]])
    asked = max(_minor(onnxruntime), _minor(_lists()[0]))
    return next((lists[first] for first in reversed(lists) if _minor(first) <= asked), ())


@cache
def _lists() -> tuple[str, ...]:
    """Return the releases whose lists are known, the oldest first."""
    return tuple(msgspec.json.decode(file_bytes(CPU_KERNELS))["onnxruntime"])


def _has(types: tuple[str, ...], dtype: str) -> bool:
    """Say whether tensors of an element type, or a sequence of such, are among the types of a kernel."""
    return dtype in types or f"seq({dtype})" in types


def device_types(provider: str) -> frozenset[str]:
    """Return the element types that a provider takes only on a device that reports them."""
    return frozenset(corrections().device_dependent.get(provider, ()))


def lowers_to(operator: str, opset: int) -> tuple[str, ...] | None:
    """Return the DirectML operators, alternatives among them, that the provider creates for an operator; None
    where it registers none."""
    known, version = onnx_operator(operator), operator_version(operator, opset)
    created = () if known is None else known.directml
    return next((each.creates for each in created if version in each.versions), None)


@cache
def directml_operators(operator: str) -> tuple[str, ...]:
    """Return the DirectML operators that the provider creates for any version of an operator."""
    known = onnx_operator(operator)
    return () if known is None else tuple({name: None for each in known.directml for name in each.creates})


@cache
def registered_for(directml: str) -> tuple[str, ...]:
    """Return the operators, of any domain, for which the DirectML provider may create a DirectML operator."""
    known = (name for name in data_file(KERNELS).operators if directml in directml_operators(name))
    return (*known, *(name for name, other in release().others.items() if directml in other.creates))


def _minor(version: str | None) -> tuple[int, ...]:
    """Return the first two numbers of a release; infinity in place of a version that cannot be read."""
    try:
        return Version(version or "").release[:2]
    except InvalidVersion:
        return (sys.maxsize,)
