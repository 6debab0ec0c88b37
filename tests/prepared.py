"""Prepared cases with graphs and executions, for tests of what comes after execution."""

from __future__ import annotations

import numpy as np

from harness.compile.graphs import compile_case
from harness.compile.prepare import by_graph
from harness.model.case import (
    Case,
    Options,
    Tensor,
    TensorSpec,
    Validity,
)
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Exact
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.specs.sweeps.calls import call_of, case_inputs
from harness.targets.execution import Execution, Graph, GraphCases, Nodes, Prepared
from tests.plans import selected

PROVIDER = "FakeExecutionProvider"
OPSETS = {"GatherElements": 13, "GatherND": 13, "Round": 22}


def legal_dtypes(operator: str) -> tuple[str, ...]:
    """Return the element types that ONNX allows for the operator's first input."""
    return operator_schema(operator, OPSETS[operator]).inputs[0].dtypes


OPERATOR_DTYPES = [(operator, dtype) for operator in OPSETS for dtype in legal_dtypes(operator)]


def different_elements(dtype: str, count: int) -> Array:
    """Return `count` elements, all finite; the first is a zero of its type, and every one differs from its
    neighbours."""
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = [f"text {n}" if n else "" for n in range(count)]
        return array
    if dtype == "bool":
        return np.arange(count) % 2 == 1
    if dtype == "bfloat16":
        return (np.arange(count, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.arange(count).astype(DTYPES[dtype].storage)


def prepare(operator: str, dtype: str, **changes: object) -> Prepared:
    """Return a small valid case of an operator on a dtype whose output has several different elements, a zero
    among them."""
    data = different_elements(dtype, 6)
    if operator == "Round":
        inputs = (Tensor(dtype, data),)
    elif operator == "GatherElements":
        inputs = (Tensor(dtype, data.reshape(2, 3)), Tensor("int64", np.array([[0, 2, -2], [-1, 0, 1]])))
    else:
        inputs = (
            Tensor(dtype, data.reshape(2, 3)),
            Tensor("int64", np.array([[0, 0], [1, -1], [0, 1], [-1, 0]])),
        )
    names = [parameter.name for parameter in operator_schema(operator, OPSETS[operator]).inputs]
    described = {
        "id": f"{operator}@{OPSETS[operator]}:case=flip;{names[0]}={dtype}[{','.join(map(str, inputs[0].array.shape))}]",
        "operator": operator,
        "opset": OPSETS[operator],
        "attributes": {"axis": 1} if operator == "GatherElements" else {},
        "inputs": tuple(
            TensorSpec(name, t.dtype, t.array.shape, "literal") for name, t in zip(names, inputs, strict=True)
        ),
        "options": Options(),
        "validity": Validity.VALID,
        "literals": tuple(t.array for t in inputs),
    }
    case = Case(**{**described, **changes})
    return Prepared(case, call_of(case), inputs)


def prepared_case(case: Case, seed: int = 0) -> Prepared:
    """Return a case with its call and its inputs."""
    call = call_of(case)
    return Prepared(case, call, case_inputs(call, case, seed))


def chosen(*queries: str) -> list[GraphCases]:
    """Return the valid cases that queries select from the default specs, by graph."""
    return list(by_graph(selected(*queries).cases(valid=True), 0))


def compiled(case: Case, seed: int = 0) -> Graph:
    """Return the graph of a case."""
    return compile_case(*prepared_case(case, seed)[:3])


def graph_of(prepared: Prepared, tested: tuple[str, ...] | None = None) -> Graph:
    """Return what the judge asks of a graph: the operator types whose placement must be proven."""
    return Graph(b"", "0" * 64, (), (), (("", 0),), tested or (prepared.case.operator,))


def placed(operator: str, provider: str = PROVIDER) -> Nodes:
    return ((provider, operator),)


def answered(output: Tensor, nodes: Nodes | None) -> Execution:
    return Execution((output,), None, "compare", nodes, 0.0)


def right_output(prepared: Prepared) -> Tensor:
    """Return the only output of a case whose result is defined to the bit."""
    inputs = dict(zip(prepared.call.inputs, prepared.inputs, strict=True))
    (found,) = OPERATORS[prepared.case.operator].oracle(prepared.call, inputs, "ieee")
    assert isinstance(found, Exact)
    return found.tensor
