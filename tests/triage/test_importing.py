"""Backend tests of ONNX as specs: its own and folders of them, what is left out and why, and the way back
from an export."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from harness.compile.backend_folders import folders_of
from harness.compile.decompile import node_attributes
from harness.compile.graphs import compile_case
from harness.compile.protos import LeftOut, attribute
from harness.model.case import Case, Tensor, TensorValue, Value
from harness.model.caseid import CaseKey
from harness.model.errors import UsageError
from harness.model.onnx_schemas import operator_schema
from harness.model.query import Query
from harness.run.exporting import export, folder_name
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.calls import call_of, case_inputs
from tests.running import SPECS, complaint, harness, results_of

SELECTED = (
    "Gather@13:case=*",
    "Conv@11:case=documented_with_padding",
    "Gather@13:sweep=dtype_rank;data=bfloat16",
    "Conv@11:sweep=windows;initializer=W",
    "GatherND@12:sweep=dtype_rank;data=string",
    "Round@22:sweep=sandwich;X=float16",
    "Clip@13:sweep=*",
    "Split@13:sweep=*",
    "Concat@13:sweep=*",
    "ReduceSum@13:sweep=*;initializer=constants",
    "TopK@11:sweep=*",
    "Softmax@13:sweep=*",
)


def folders_in(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("model.onnx"))


def cases_in(folder: Path) -> list[Case]:
    return list(expand(load_specs([folder])))


def exported(folder: Path, *queries: str, most: int = 10) -> list[Case]:
    """Export the first valid cases that each query selects; return those that were written, by their folders'
    names."""
    parsed = [Query.parse(query) for query in queries]
    plan = expand(load_specs([SPECS / f"{name}.yaml" for name in {str(q.operator) for q in parsed}]), parsed)
    chosen = [
        case
        for query in parsed
        for case in islice((case for case in plan.searched(query) if query.matches(case.id)), most)
    ]
    done = export(chosen, folder, 0)
    written = {test["case"] for test in done.tests}
    return sorted((case for case in chosen if case.id in written), key=folder_name)


def same(ours: Tensor, theirs: Tensor) -> bool:
    return (ours.dtype, ours.array.shape) == (theirs.dtype, theirs.array.shape) and (
        ours.array.tolist() == theirs.array.tolist() or ours.array.tobytes() == theirs.array.tobytes()
    )


def node_test(folder: Path, node: onnx.NodeProto | list[onnx.NodeProto], opset: int = 13) -> Path:
    """Write a test of float32 [2] in and out."""
    nodes = node if isinstance(node, list) else [node]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y"))
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(nodes[0].domain, opset)], ir_version=8
    )
    (folder / "test_data_set_0").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for name in ("input_0", "output_0"):
        proto = numpy_helper.from_array(np.array([1, 2], "f4"), name)
        (folder / "test_data_set_0" / f"{name}.pb").write_bytes(proto.SerializeToString())
    return folder


def plain_test(folder: Path) -> Path:
    return node_test(folder, helper.make_node("Abs", ["x"], ["y"]))


class TestRoundTrip:
    @pytest.mark.parametrize("query", SELECTED)
    def test_the_call_and_its_model_are_the_same_again(self, tmp_path: Path, query: str) -> None:
        cases = exported(tmp_path / "tests", query)
        assert cases
        assert harness("import", tmp_path / "tests", "-o", tmp_path / "specs").code == 0
        read = {CaseKey.of(case.id).origin.partition("=")[2]: case for case in cases_in(tmp_path / "specs")}
        assert len(read) == len(cases)
        for folder, original in zip(folders_in(tmp_path / "tests"), cases, strict=True):
            case = read[folder.name.removeprefix("test_")]
            call = call_of(case)
            assert call.attributes == call_of(original).attributes
            assert call.outputs == call_of(original).outputs
            assert [spec.name for spec in case.inputs] == [spec.name for spec in original.inputs]
            given = case_inputs(call, case, 1)
            assert all(map(same, given, case_inputs(call_of(original), original, 0)))
            assert compile_case(case, call, given).model == (folder / "model.onnx").read_bytes()

    def test_exported_again_every_file_is_the_same(self, tmp_path: Path) -> None:
        first, again = tmp_path / "first", tmp_path / "again"
        number = len(exported(first, "Gather@13:case=documented_*", "Tanh@13:case=documented_*"))
        assert harness("import", first, "-o", tmp_path / "specs").code == 0
        assert harness("export", "--spec", tmp_path / "specs", again).code == 0
        assert len(folders_in(first)) == len(folders_in(again)) == number >= 3
        for kind in ("model.onnx", "test_data_set_0/input_0.pb", "test_data_set_0/output_0.pb"):
            assert sorted((each / kind).read_bytes() for each in folders_in(first)) == sorted(
                (each / kind).read_bytes() for each in folders_in(again)
            )


class TestOnnx:
    @pytest.mark.slow
    def test_own_cases_of_two_operators_run(self, tmp_path: Path) -> None:
        ended = harness("import", "onnx", "Gather", "Split", "-o", tmp_path / "specs")
        assert ended.code == 0, ended.err
        assert "expected outputs agree with the oracle" in ended.out
        assert "contradict" not in ended.out
        names = {case.id for case in cases_in(tmp_path / "specs")}
        assert any("case=gather_negative_indices" in name for name in names)
        assert harness("check", tmp_path / "specs").code == 0
        ran = harness("run", tmp_path / "specs", "-t", "cpu", "-j", "1", "-o", tmp_path / "run")
        assert ran.code == 0, ran.out
        assert {each["outcome"] for each in results_of(tmp_path / "run").values()} == {"pass"}

    @pytest.mark.parametrize(
        ("operator", "told"),
        [
            ("ImageDecoder", "ImageDecoder: the harness has no formula for this operator, so nothing could judge its cases"),
            ("Gathr", "ONNX has no operator 'Gathr'; did you mean 'Gather'?"),
            ("Qwxyz", "ONNX has no operator 'Qwxyz'; docs/operators.md lists those with a formula"),
        ],
    )  # fmt: skip
    def test_an_operator_that_nothing_can_judge(self, tmp_path: Path, operator: str, told: str) -> None:
        ended = harness("import", "onnx", operator, "-o", tmp_path / "specs")
        assert ended.code == 2
        assert complaint(ended).startswith(told)

    def test_an_operator_without_a_case(self, tmp_path: Path) -> None:
        ended = harness("import", "onnx", "GlobalLpPool", "-o", tmp_path / "specs")
        assert ended.code == 4
        assert complaint(ended) == "ONNX has no case of GlobalLpPool that a spec can hold; nothing is written"


class TestFolders:
    def test_one_folder_of_a_test_and_a_folder_of_many(self, tmp_path: Path) -> None:
        plain_test(tmp_path / "node" / "test_abs")
        plain_test(tmp_path / "node" / "test_abs_again")
        for number, source in enumerate((tmp_path, tmp_path / "node", tmp_path / "node" / "test_abs")):
            out = tmp_path / f"specs{number}"
            assert harness("import", source, "-o", out).code == 0
            assert len(cases_in(out)) == (1 if number == 2 else 2)

    def test_an_output_that_the_oracle_contradicts_is_an_oracle_error(self, tmp_path: Path) -> None:
        folder = plain_test(tmp_path / "tests" / "test_abs")
        wrong = numpy_helper.from_array(np.array([1, 3], "f4"), "y")
        (folder / "test_data_set_0" / "output_0.pb").write_bytes(wrong.SerializeToString())
        ended = harness("import", tmp_path / "tests", "-o", tmp_path / "specs")
        assert ended.code == 0
        assert (
            "0 of the 1 expected outputs agree with the oracle; 1 contradict it (oracle_error in a run): Abs abs"
            in ended.out
        )
        ran = harness("run", tmp_path / "specs", "-t", "cpu", "-j", "1", "-o", tmp_path / "run")
        assert ran.code == 1
        assert [each["outcome"] for each in results_of(tmp_path / "run").values()] == ["oracle_error"]

    @pytest.mark.parametrize("part", ["operator", "domain", "attribute", "output"])
    def test_names_of_strangers_are_shown_as_escapes(self, tmp_path: Path, part: str) -> None:
        hostile = "a\x1b[2J\x9b31m\u202eb\0\u200bc\nharness: fine"
        node = helper.make_node(hostile if part == "operator" else "Abs", ["x"], ["y"])
        if part == "domain":
            node.domain = hostile
        if part == "attribute":
            node.attribute.append(helper.make_attribute(hostile, 1))
        if part == "output":
            node.output.append(hostile)
        node_test(tmp_path / "test_hostile", node)
        plain_test(tmp_path / "test_abs")
        ended = harness("import", tmp_path, "-o", tmp_path / "specs", "--all")
        assert ended.code == 0
        assert r"a\x1b[2J\x9b31m\u202eb\x00\u200bc\nharness: fine" in ended.out or part == "output"
        shown = ended.out + ended.err
        assert not [sign for sign in shown if not sign.isprintable() and sign != "\n"]
        assert "\nharness: fine" not in shown

    def test_specs_are_not_replaced_unasked(self, tmp_path: Path) -> None:
        plain_test(tmp_path / "tests" / "test_abs")
        out = tmp_path / "specs"
        assert harness("import", tmp_path / "tests", "-o", out).code == 0
        ended = harness("import", tmp_path / "tests", "-o", out)
        assert ended.code == 2
        assert (
            complaint(ended)
            == f"{out / 'Abs.yaml'} is there already; --force replaces them, -o DIR names another folder"
        )
        assert harness("import", tmp_path / "tests", "-o", out, "--force").code == 0

    def test_several_data_sets_are_several_cases(self, tmp_path: Path) -> None:
        folder = plain_test(tmp_path / "test_abs")
        shutil.copytree(folder / "test_data_set_0", folder / "test_data_set_1")
        assert harness("import", tmp_path, "-o", tmp_path / "specs").code == 0
        assert len(cases_in(tmp_path / "specs")) == 2


def _no_input(folder: Path) -> None:
    (folder / "test_data_set_0" / "input_0.pb").unlink()


def _no_data(folder: Path) -> None:
    shutil.rmtree(folder / "test_data_set_0")


def _garbled_model(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"\xff" * 40)


def _garbled_input(folder: Path) -> None:
    (folder / "test_data_set_0" / "input_0.pb").write_bytes(b"\xff" * 40)


def _changed(change: Callable[[ModelProto], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        model = onnx.load(str(folder / "model.onnx"))
        change(model)
        (folder / "model.onnx").write_bytes(model.SerializeToString())

    return apply


def _float6(folder: Path) -> None:
    def change(model: ModelProto) -> None:
        model.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT6E2M3

    _changed(change)(folder)


def _two_nodes(model: ModelProto) -> None:
    model.graph.node.add(op_type="Abs", input=["y"], output=["z"])


def _unknown_attribute(model: ModelProto) -> None:
    model.graph.node[0].attribute.append(helper.make_attribute("axis", 1))


def _other_domain(model: ModelProto) -> None:
    model.graph.node[0].domain = "com.example"


def _operator(name: str) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        model.graph.node[0].op_type = name

    return change


def _of_the_future(model: ModelProto) -> None:
    model.opset_import[0].version = 9999


def _of_extent(extent: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        proto = TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[extent], raw_data=bytes(8))
        (folder / "test_data_set_0" / "input_0.pb").write_bytes(proto.SerializeToString())

    return spoil


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_no_input, "a folder that is no whole backend test: test_abs (test_data_set_0: no input_0.pb, where the model takes 1)"),
        (_no_data, "a folder that is no whole backend test: test_abs (no test_data_set_0/ beside model.onnx)"),
        (_garbled_model, "a folder that is no whole backend test: test_abs (model.onnx: damaged, or no file of ONNX)"),
        (_garbled_input, "a folder that is no whole backend test: test_abs (input_0.pb: damaged, or no file of ONNX)"),
        (_of_extent(3), "a tensor whose data does not fit its shape: test_abs"),
        (_of_extent(-2), "a tensor whose data does not fit its shape: test_abs"),
        (_float6, "an element type that the harness cannot feed to ONNX Runtime: test_abs (FLOAT6E2M3)"),
        (_changed(_two_nodes), "a model of several nodes: test_abs"),
        (_changed(_unknown_attribute), "an attribute that the operator does not have: test_abs (axis)"),
        (_changed(_other_domain), "the harness has no formula for the operator: test_abs (com.example.Abs)"),
        (_changed(_operator("ImageDecoder")), "the harness has no formula for the operator: test_abs (ImageDecoder)"),
        (_changed(_operator("Add")), "an input that the operator needs is left out: test_abs (B)"),
        (_changed(_of_the_future), "an opset at which the installed onnx has no such operator: test_abs"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_one_line_with_the_reason(
    tmp_path: Path, spoil: Callable[[Path], None], told: str
) -> None:
    spoil(plain_test(tmp_path / "tests" / "test_abs"))
    ended = harness("import", tmp_path / "tests", "-o", tmp_path / "specs")
    assert ended.code == 4
    (line,) = ended.out.splitlines()
    assert line.startswith(f"left out: 1: {told}")
    assert complaint(ended) == f"{tmp_path / 'tests'}: no test that a spec can hold; nothing is written"
    assert not (tmp_path / "specs").exists()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda _: None, "no such folder; name a folder of ONNX backend tests, or `onnx` for ONNX's own"),
        (lambda path: path.mkdir(), "no ONNX backend test: neither it/model.onnx nor TEST/model.onnx with TEST/test_data_set_0/ below it"),
        (lambda path: path.write_text("x"), "is a file; name a folder of ONNX backend tests, or `onnx` for ONNX's own"),
    ],
    ids=["absent", "empty", "file"],
)  # fmt: skip
def test_a_folder_without_tests(tmp_path: Path, make: Callable[[Path], object], told: str) -> None:
    folder = tmp_path / "it"
    make(folder)
    ended = harness("import", folder, "-o", tmp_path / "specs")
    assert (ended.code, complaint(ended)) == (2, f"{folder}: {told}")


def test_a_folder_of_tests_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """os.walk passes over it, so that it seemed to hold no test."""

    def denied(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("harness.compile.backend_folders.os.listdir", denied)
    with pytest.raises(UsageError, match="cannot be read: Permission denied"):
        folders_of(tmp_path)


@pytest.mark.parametrize(
    ("operator", "name", "value"),
    [
        (
            "Constant",
            "sparse_value",
            TensorValue("float32", (2, 3), (1.5, -2.0), TensorValue("int64", (2,), (1, 5))),
        ),
        (
            "Constant",
            "sparse_value",
            TensorValue("int8", (2, 3), (7,), TensorValue("int64", (1, 2), (1, 2))),
        ),
        ("Optional", "type", "tensor(float)"),
        ("Optional", "type", "seq(tensor(int64))"),
        ("Optional", "type", "seq(tensor(bfloat16))"),
    ],
)
def test_attributes_that_are_sparse_tensors_or_types_are_read(operator: str, name: str, value: Value) -> None:
    schema = operator_schema(operator, 21)
    node = helper.make_node(operator, [], ["Y"])
    node.attribute.append(attribute(name, value, schema.attributes[name].type))
    assert dict(node_attributes(schema, node)) == {name: value}


def test_a_type_that_no_spec_writes_is_left_out() -> None:
    node = helper.make_node("Optional", [], ["Y"])
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    node.attribute.append(helper.make_attribute("type", helper.make_map_type_proto(TensorProto.INT64, inner)))
    with pytest.raises(LeftOut, match="cannot write: a type"):
        [*node_attributes(operator_schema("Optional", 21), node)]
