"""Operators of other domains in graphs, models, queries and specs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from harness.compile.backend_folders import DataSet
from harness.compile.decompile import case_of
from harness.compile.graphs import compile_case
from harness.compile.protos import LeftOut
from harness.model.caseid import parse
from harness.model.errors import SpecError
from harness.model.query import Query
from harness.operators import OPERATORS
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs, operator_of, own_spec
from harness.specs.reading.write import spec_file
from harness.specs.sweeps.calls import call_of, case_inputs

NAME = "com.microsoft.QuickGelu"


def _by_hand() -> tuple[onnx.ModelProto, DataSet, str]:
    case = next(each for each in expand(load_specs([own_spec(NAME)])) if "case=by_hand" in each.id)
    call = call_of(case)
    inputs = case_inputs(call, case, 0)
    model = onnx.ModelProto.FromString(compile_case(case, call, inputs).model)
    assert case.documented is not None
    tensors = [onnx.numpy_helper.from_array(each.array) for each in inputs]
    outputs = [onnx.numpy_helper.from_array(each) for each in case.documented if each is not None]
    return model, DataSet(tensors, outputs), case.id


def test_a_graph_imports_the_domain_and_a_model_of_it_is_a_case_again() -> None:
    model, data, case_id = _by_hand()
    assert {each.domain: each.version for each in model.opset_import} == {"": 17, "com.microsoft": 1}
    assert [(node.domain, node.op_type) for node in model.graph.node] == [("com.microsoft", "QuickGelu")]
    case = case_of("by_hand", "a test", model, data)
    assert case.operator == NAME
    assert case.id == case_id
    model.graph.node[0].domain = ""
    with pytest.raises(LeftOut, match="no formula"):
        case_of("by_hand", "a test", model, data)


def test_ids_and_queries_have_the_full_name() -> None:
    told = parse(f"{NAME}@1:sweep=sizes;X=float32[3];alpha=1.0")
    assert (told.operator, told.opset) == (NAME, 1)
    for text, selects in (
        (NAME, True),
        ("com.microsoft.*", True),
        ("QuickGelu", False),
        (f"{NAME}@1:X=float32", True),
    ):
        assert Query.parse(text).matches(f"{NAME}@1:sweep=sizes;X=float32[3]") is selects


def test_a_folder_below_has_the_name_of_a_domain() -> None:
    assert own_spec(NAME).parts[-2:] == ("com.microsoft", "QuickGelu.yaml")
    assert operator_of(own_spec(NAME)) == NAME
    assert operator_of(Path("specs/graphs/Gelu.yaml")) == "Gelu"
    assert {spec.model.operator for spec in load_specs((), [Query.parse(NAME)])} == {NAME}
    assert OPERATORS[NAME] is not OPERATORS["Gelu"]


def test_a_domain_without_a_signature_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "Turned.yaml").write_text(
        "operator: Turned\ndomain: own\nopsets: [1]\nsweeps:\n  - {name: sizes, X: {shape: [[2]]}}\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError) as caught:
        load_specs([tmp_path])
    assert [each.partition("yaml:")[2] for each in caught.value.problems] == [
        "1: operator: the harness does not know 'own.Turned': write its formula and its signature in a module of a folder "
        "that HARNESS_OPERATORS names (docs/specs.md, An operator of your own)"
    ]


def test_a_written_spec_names_the_domain() -> None:
    assert spec_file(NAME, (1,), (), [["  - name: x"]]).startswith(
        "operator: QuickGelu\ndomain: com.microsoft\nopsets: [1]\n"
    )
