"""If, Loop, Scan and SequenceMap: the nodes whose attributes are graphs, by what these graphs give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Expected
from harness.specs.graphs.known import (
    Known,
    Shapeless,
    TensorList,
    Value,
    form_of,
    shape_of,
    sliced,
    stacked,
    tensor_of,
    value_of,
)
from harness.specs.graphs.pattern import GraphNode, Unfit

Found = list[Value | Expected]
Run = Callable[[str, Sequence[Value]], Found]
"""Runs the graph of an attribute on what its operator feeds it."""
_MOST = 256
"""So many times may a body run."""
_KEEPS = "the state of Scan keeps its type and its shape"


# outputs = those of then_branch where cond is true, else of else_branch                                      (If)
def choose(node: GraphNode, given: Mapping[str, Value], run: Run) -> Found:
    """Return what the branch taken gives."""
    return run("then_branch" if _true(given["cond"]) else "else_branch", ())


# while cond and i < M: cond, state, slices = body(i, cond, state); outputs = the state, and the slices stacked   (Loop)
def loop(node: GraphNode, given: Mapping[str, Value], run: Run) -> Found:
    """Return the last state and the slices."""
    state: Found = [each for name, each in given.items() if name not in ("M", "cond")]
    most = int(_exact(given["M"]).array.reshape(())) if "M" in given else _MOST + 1
    goes = "cond" not in given or _true(given["cond"])
    count, slices = len(state), list[list[Known]]()
    while goes and len(slices) < most:
        if len(slices) == _MOST:
            raise Unfit(f"a loop that runs more than {_MOST} times")
        number, on = Tensor("int64", np.array(len(slices), np.int64)), Tensor("bool", np.array(goes))
        first, *found = run("body", (number, on, *map(value_of, state)))
        state, goes = found[:count], _true(value_of(first))
        slices.append([tensor_of(value_of(each)) for each in found[count:]])
    if not slices and len(node.outputs) > count:
        fed = (Tensor("int64", np.array(0)), Tensor("bool", np.array(True)), *map(value_of, state))
        return [*state, *_none(run("body", fed)[count + 1 :])]
    return [*state, *(stacked(each) for each in zip(*slices, strict=True))]


def _none(found: Found) -> Found:
    """Return for each tensor of the body an empty tensor of its slices."""
    each = [tensor_of(value_of(one)) for one in found]
    return [Shapeless(one.dtype, np.zeros((0, *shape_of(one)), DTYPES[one.dtype].storage)) for one in each]


# state, slices = body(state, slices of the scanned inputs), for each slice                                   (Scan)
def scan(node: GraphNode, given: Mapping[str, Value], run: Run) -> Found:
    """Return the last state and the slices stacked, by axes and directions."""
    every, number = [*map(tensor_of, given.values())], int(str(node.attributes["num_scan_inputs"]))
    state: Found = [*every[: len(every) - number]]
    scanned, count = every[len(every) - number :], len(state)

    def listed(name: str, many: int) -> list[int]:
        return [*map(int, node.attributes.get(name) or (0,) * many)]  # type: ignore[arg-type] # numbers

    axes, turned = listed("scan_input_axes", number), listed("scan_input_directions", number)
    lengths = {shape_of(each)[axis] for each, axis in zip(scanned, axes, strict=True)}
    if len(lengths) != 1:
        raise Unfit("Scan of inputs of one length")
    (length,), slices = lengths, list[list[Known]]()
    if not length:
        fed = [sliced(_one(each, axis), 0, axis) for each, axis in zip(scanned, axes, strict=True)]
        found = run("body", (*map(value_of, state), *fed))
        if [form_of(each) for each in found[:count]] != [form_of(each) for each in state]:
            raise Unfit(_KEEPS)
        return [*state, *_none(found[count:])]
    for at in range(length):
        fed = [
            sliced(each, length - 1 - at if back else at, axis)
            for each, axis, back in zip(scanned, axes, turned, strict=True)
        ]
        before, found = [*map(value_of, state)], run("body", (*map(value_of, state), *fed))
        state = found[:count]
        if [form_of(each) for each in state] != [*map(form_of, before)]:
            raise Unfit(_KEEPS)
        slices.append([tensor_of(value_of(each)) for each in found[count:]])
    columns = [*zip(*slices, strict=True)]
    axes, turned = (listed(name, len(columns)) for name in ("scan_output_axes", "scan_output_directions"))
    stacks = zip(columns, axes, turned, strict=True)
    return [*state, *(stacked(column[:: -1 if back else 1], axis) for column, axis, back in stacks)]


def _one(known: Known, axis: int) -> Known:
    """Return a tensor of one element along an axis, along which a tensor has none."""
    shape = [*shape_of(known)]
    shape[axis] = 1
    return Tensor(known.dtype, np.zeros(shape, DTYPES[known.dtype].storage))


# outputs[n][i] = body(input_sequence[i], each of additional_inputs, or its [i])[n]                     (SequenceMap)
def sequence_map(node: GraphNode, given: Mapping[str, Value], run: Run) -> Found:
    """Return the sequences of what the body gives of the tensors at each place."""
    first, *others = given.values()
    assert isinstance(first, TensorList)
    if any(isinstance(each, TensorList) and len(each.tensors) != len(first.tensors) for each in others):
        raise Unfit("SequenceMap of sequences of one length")
    found = [
        run("body", [each.tensors[n] if isinstance(each, TensorList) else each for each in given.values()])
        for n in range(len(first.tensors))
    ]
    columns = [[tensor_of(value_of(run_of[n])) for run_of in found] for n in range(len(node.outputs))]
    return [TensorList(tuple(column)) for column in columns]


def _exact(known: Value) -> Tensor:
    if not isinstance(known, Tensor) or known.array.size != 1:
        raise Unfit("what decides is one element, known to the bit")
    return known


def _true(known: Value) -> bool:
    return bool(_exact(known).array.reshape(()))


CONTROL_FLOW: Mapping[str, Callable[[GraphNode, Mapping[str, Value], Run], Found]] = {
    "If": choose,
    "Loop": loop,
    "Scan": scan,
    "SequenceMap": sequence_map,
}
FED = {"Loop": (("int64", ()), ("bool", ()))}
"""What an operator feeds a graph before the state, whatever its own inputs are: ONNX Runtime asks for the shapes."""
