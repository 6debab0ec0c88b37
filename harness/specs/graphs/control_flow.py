"""If, Loop and Scan: the nodes whose attributes are graphs, by what these graphs give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.specs.graphs.known import Known, Within, known_of, shape_of, sliced, stacked
from harness.specs.graphs.pattern import GraphNode, Unfit

Found = list[Known | Expected]
Run = Callable[[str, Sequence[Known]], Found]
"""Runs the graph of an attribute on what its operator feeds it."""
_MOST = 256
"""So many times may a body run."""


# outputs = those of then_branch where cond is true, else of else_branch                                      (If)
def choose(node: GraphNode, given: Mapping[str, Known], run: Run) -> Found:
    """Return what the branch taken gives."""
    return run("then_branch" if _true(given["cond"]) else "else_branch", ())


# while cond and i < M: cond, state, slices = body(i, cond, state); outputs = the state, and the slices stacked   (Loop)
def loop(node: GraphNode, given: Mapping[str, Known], run: Run) -> Found:
    """Return the last state and the slices; of a loop that never runs, of which ONNX states no shape, there may be none."""
    state: Found = [each for name, each in given.items() if name not in ("M", "cond")]
    most = int(_exact(given["M"]).array.reshape(())) if "M" in given else _MOST + 1
    goes = "cond" not in given or _true(given["cond"])
    count, slices = len(state), list[list[Known]]()
    while goes and len(slices) < most:
        if len(slices) == _MOST:
            raise Unfit(f"a loop that runs more than {_MOST} times")
        number, on = Tensor("int64", np.array(len(slices), np.int64)), Tensor("bool", np.array(goes))
        first, *found = run("body", (number, on, *map(_known, state)))
        state, goes = found[:count], _true(_known(first))
        slices.append([*map(_known, found[count:])])
    if not slices and len(node.outputs) > count:
        raise Unfit("slices of a loop that never runs have no shape")
    return [*state, *(stacked(each) for each in zip(*slices, strict=True))]


# state, slices = body(state, slices of the scanned inputs), for each slice                                   (Scan)
def scan(node: GraphNode, given: Mapping[str, Known], run: Run) -> Found:
    """Return the last state and the slices stacked, by axes and directions."""
    every, number = [*given.values()], int(str(node.attributes["num_scan_inputs"]))
    state: Found = [*every[: len(every) - number]]
    scanned, count = every[len(every) - number :], len(state)

    def listed(name: str, many: int) -> list[int]:
        return [*map(int, node.attributes.get(name) or (0,) * many)]  # type: ignore[arg-type] # numbers

    axes, turned = listed("scan_input_axes", number), listed("scan_input_directions", number)
    lengths = {shape_of(each)[axis] for each, axis in zip(scanned, axes, strict=True)}
    if len(lengths) != 1 or lengths == {0}:
        raise Unfit("Scan of inputs of one length above 0")
    (length,), slices = lengths, list[list[Known]]()
    for at in range(length):
        fed = [
            sliced(each, length - 1 - at if back else at, axis)
            for each, axis, back in zip(scanned, axes, turned, strict=True)
        ]
        found = run("body", (*map(_known, state), *fed))
        state = found[:count]
        slices.append([*map(_known, found[count:])])
    columns = [*zip(*slices, strict=True)]
    axes, turned = (listed(name, len(columns)) for name in ("scan_output_axes", "scan_output_directions"))
    stacks = zip(columns, axes, turned, strict=True)
    return [*state, *(stacked(column[:: -1 if back else 1], axis) for column, axis, back in stacks)]


def _known(found: Known | Expected) -> Known:
    return found if isinstance(found, (Tensor, Within)) else known_of(found)


def _exact(known: Known) -> Tensor:
    if not isinstance(known, Tensor) or known.array.size != 1:
        raise Unfit("what decides is one element, known to the bit")
    return known


def _true(known: Known) -> bool:
    return bool(_exact(known).array.reshape(()))


CONTROL_FLOW: Mapping[str, Callable[[GraphNode, Mapping[str, Known], Run], Found]] = {
    "If": choose,
    "Loop": loop,
    "Scan": scan,
}
FED = {"Loop": (("int64", ()), ("bool", ()))}
"""What an operator feeds a graph before the state, whatever its own inputs are: ONNX Runtime asks for the shapes."""
