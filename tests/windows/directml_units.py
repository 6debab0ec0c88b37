"""Hand-written units for DirectML's own operators: descriptions as the worker takes them, and pools to run
them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from harness.model.case import Case, Tensor, TensorSpec
from harness.model.dtypes import DTYPES
from harness.operators.base import Call, TensorType
from harness.operators.directml.description import structure
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target

Described = tuple[dict[str, Any], list[np.ndarray]]
"""A description and the arrays of one case."""


def tensor(dtype: str, sizes: Sequence[int], **other: Any) -> dict[str, Any]:
    """Describe a packed tensor; `other` replaces entries."""
    size = int(np.prod(sizes)) * DTYPES[dtype].itemsize
    return {
        "dtype": dtype,
        "sizes": list(sizes),
        "strides": None,
        "flags": 0,
        "bytes": (size + 3) & ~3,
        "alignment": 0,
        **other,
    }


def described(
    operator: str, tensors: dict[str, Any], attributes: dict[str, int], shape: Sequence[int], **other: Any
) -> dict[str, Any]:
    """Describe an operator whose inputs are all its tensors but the output."""
    number, members = structure(operator)
    return {
        "operator": operator,
        "number": number,
        "members": list(members),
        "tensors": tensors,
        "attributes": attributes,
        "inputs": [name for name in tensors if name != "OutputTensor"],
        "outputs": ["OutputTensor"],
        "in_place": None,
        "output_shapes": [list(shape)],
        "flags": 0,
        "minimum_feature_level": "1_0",
        **other,
    }


def gather_elements(data: np.ndarray, indices: np.ndarray, axis: int, **other: Any) -> Described:
    dtype = str(data.dtype)
    tensors = {
        "InputTensor": tensor(dtype, data.shape),
        "IndicesTensor": tensor(str(indices.dtype), indices.shape),
        "OutputTensor": tensor(dtype, indices.shape),
    }
    return described("DML_OPERATOR_GATHER_ELEMENTS", tensors, {"Axis": axis}, indices.shape, **other), [
        data,
        indices,
    ]


def gather_nd(
    operator: str,
    data: np.ndarray,
    indices: np.ndarray,
    attributes: dict[str, int],
    output: Sequence[int],
    shape: Sequence[int],
) -> Described:
    dtype = str(data.dtype)
    tensors = {
        "InputTensor": tensor(dtype, data.shape),
        "IndicesTensor": tensor(str(indices.dtype), indices.shape),
        "OutputTensor": tensor(dtype, output),
    }
    return described(operator, tensors, attributes, shape), [data, indices]


def rounding(
    data: np.ndarray, mode: int, *, source: Any = None, output: Any = None, shape: Any = None, **other: Any
) -> Described:
    packed = tensor(str(data.dtype), data.shape)
    tensors = {"InputTensor": source or packed, "OutputTensor": output or packed}
    given = described(
        "DML_OPERATOR_ELEMENT_WISE_ROUND", tensors, {"RoundingMode": mode}, shape or data.shape, **other
    )
    return given, [data]


def graph(given: dict[str, Any]) -> Graph:
    """Make the graph whose bytes are a description."""
    model = json.dumps(given, sort_keys=True, separators=(",", ":")).encode()
    views = {
        key: view
        for name, each in given["tensors"].items()
        for key, view in (
            [(f"{name}.{place}", one) for place, one in enumerate(each)]
            if isinstance(each, list)
            else [(name, each)]
        )
    }
    types = {name: DTYPES[view["dtype"]].onnx for name, view in views.items() if view is not None}
    inputs = tuple((name, types[name]) for name in given["inputs"])
    outputs = tuple((name, types.get(name, 1)) for name in given["outputs"])
    return Graph(
        model,
        hashlib.sha256(model).hexdigest(),
        tuple(range(len(inputs))),
        inputs,
        outputs,
        (given["operator"],),
    )


def prepared(name: str, arrays: Sequence[np.ndarray]) -> Prepared:
    specs = tuple(TensorSpec(str(n), str(array.dtype), array.shape) for n, array in enumerate(arrays))
    call = Call({spec.name: TensorType(spec.dtype, spec.shape) for spec in specs}, {})
    return Prepared(
        Case(name, "X", 1, {}, specs), call, tuple(Tensor(str(array.dtype), array) for array in arrays)
    )


@contextmanager
def pool(target: str = "directml", *, size: int = 1) -> Iterator[WorkerPool]:
    """Open a pool of the target's workers, and end them."""
    opened = WorkerPool(launch(parse_target(target)), size=size, timeout=30)
    try:
        opened.probe()
        yield opened
    finally:
        opened.close()


def execute(worker: WorkerPool, items: dict[str, Described]) -> dict[str, Execution]:
    """Run each description with its arrays as a unit of one case; the worker stays."""
    units = (GraphCases(graph(given), [prepared(name, arrays)]) for name, (given, arrays) in items.items())
    return {case.case.id: execution for case, _, execution in worker.run(units, keep=True)}
