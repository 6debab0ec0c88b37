"""ONNX's own cases of its operators: `onnx.backend.test.case.node`, made by the installed onnx."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator

from harness.compile.backend_folders import BackendTest, DataSet


def onnx_tests(operators: Collection[str] = ()) -> Iterator[BackendTest]:
    """Yield all cases, or those of one node that is one of these operators, by name.

    Takes some seconds: onnx computes their data.
    """
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for test in sorted(found, key=lambda each: each.name):
        model = test.model
        if model is None or (
            operators and [node.op_type for node in model.graph.node if node.op_type in operators] == []
        ):
            continue
        if operators and len(model.graph.node) > 1:
            continue
        sets = tuple(DataSet(tuple(inputs), tuple(outputs)) for inputs, outputs in test.data_sets or ())
        yield BackendTest(test.name, model, sets)
