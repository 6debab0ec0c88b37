"""`harness model` on models as people deploy them: what it says of right ones, of planted mistakes, and of bad input."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from harness.compile.model_inputs import ModelInputs
from harness.compile.models import read_model
from harness.model.case import Tensor
from harness.model.errors import UsageError
from harness.model.result import Error
from harness.model.target_info import DML, TargetInfo
from harness.model.verdict import Outcome
from harness.operators.in_models import distinct_indices
from harness.operators.products import sampling
from harness.render.document import Span, Table
from harness.render.model import model_document
from harness.results.model_report import ModelReport, ModelView
from harness.results.runfile import RunReader
from harness.run.recording import execute, executed
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.targets.execution import Execution, Graph
from tests.models import FLOAT, INT64, MODELS, Builder, transformer_block, value
from tests.running import Ended, complaint, harness, results_of
from tests.sampled import one_of

pytestmark = pytest.mark.usefixtures("in_folder")
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def saved(model: ModelProto, name: str = "model") -> str:
    onnx.save(model, f"{name}.onnx")
    return f"{name}.onnx"


def report(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "model.json").read_text())
    return found


def report_of(model: str) -> dict[str, Any]:
    judged(model)
    return report("out")


def relu(*shape: int | str) -> ModelProto:
    b = Builder()
    b.node("Relu", ["x"], "y")
    return b.model([value("x", FLOAT, *shape)], [value("y", FLOAT, *shape)])


def judged(model: str, *options: str, code: int = 0) -> Ended:
    """Judge a model on the CPU provider, in `out`."""
    ended = harness("model", model, "-t", "cpu", *options, "-o", "out")
    assert ended.code == code, ended
    return ended


def refused(*arguments: str) -> Ended:
    ended = harness("model", *arguments)
    assert ended.code != 0
    return ended


@pytest.mark.parametrize("name", MODELS)
def test_a_right_model_is_right_everywhere(name: str) -> None:
    ended = harness("model", saved(MODELS[name]()), "-t", "cpu", "-o", "out")
    found = report("out")
    assert ended.code == 0, ended.err
    assert "right on cpu" in found["summary"]
    assert set(found["verdicts"]["cpu"]) <= {"correct", "compared"}
    assert [each["level"] for each in found["whole"]] == ["off", "basic", "extended", "all"]
    assert not any(each.get("error") for each in found["whole"])
    assert all(each["repeats"] == 0 and each["bound"] < 1e-6 for each in found["whole"])


@pytest.mark.parametrize(
    ("name", "node"),
    one_of(
        5,
        [
            ("quantised_network", "/pool"),
            ("transformer_block", "/erf"),
            ("cached_decoder", "/present_k"),
            ("looping_decoder", "decode/choose/squash"),
            ("light", "n2"),
        ],
    ),
)
def test_a_wrong_kernel_of_one_node_is_named_and_nothing_else(name: str, node: str) -> None:
    model = str(LIGHT / "light_squeezenet.onnx") if name == "light" else saved(MODELS[name]())
    assert harness("model", model, "-t", "fake", "-o", "right").code == 0
    found = report("right")
    (call,) = (each["call"] for each in found["nodes"] if each["name"] == node)
    alike = [each["name"] for each in found["nodes"] if each["call"] == call]
    case = found["calls"][call]["case"].partition(";")[0]
    Path("script.yaml").write_text(f'rules:\n  - {{match: "{case}", do: nan}}\n')
    ended = harness("model", model, "-t", "fake,script=script.yaml", "-o", "wrong")
    assert ended.code == 1
    wrong = report("wrong")
    assert wrong["wrong"] == {"fake,script=script.yaml": alike}
    assert node in alike
    assert f"node {alike[0]}" in ended.out.replace("\n", " ")
    others = [each for n, each in enumerate(wrong["verdicts"]["fake,script=script.yaml"]) if n != call]
    assert set(others) <= {"correct", "not judged"}


def test_every_node_of_a_body_is_judged() -> None:
    judged(saved(MODELS["looping_decoder"]()))
    names = [each["name"] for each in report("out")["nodes"]]
    assert names == [
        *("/start", "decode", "decode/move", "decode/Identity_1", "decode/choose", "decode/choose/squash"),
        *("decode/sum", "/y"),
    ]
    assert report("out")["verdicts"]["cpu"] == ["correct"] * len(names)


@pytest.mark.slow
def test_what_the_optimizer_fused_is_cut_out() -> None:
    for name, wanted in (
        ("transformer_block", "Div, Erf, Add, Mul, Mul → com.microsoft.Gelu"),
        ("quantised_network", "DequantizeLinear, Conv, QuantizeLinear → QLinearConv"),
    ):
        assert harness("model", saved(MODELS[name]()), "-t", "cpu", "-o", name).code == 0
        found = {each["made"]["cpu"]: each for each in report(name)["regions"]}
        result = results_of(Path(name))[found[wanted]["case"]]
        assert result["outcome"] == "pass"
        assert result["transformers"]


def _wrongly_fused() -> ModelProto:
    """A convolution between quantisers, whose weights a transformer of onnxruntime 1.32 quantises too coarsely."""
    b = Builder(13)
    zero, scale = b.weight("zero", np.uint8(128)), b.weight("scale", np.float32(0.05))
    kernel = np.random.default_rng(5).standard_normal((8, 3, 3, 3)).astype(np.float32)
    b.node("QuantizeLinear", ["x", scale, zero], "x_q")
    b.node("DequantizeLinear", ["x_q", scale, zero], "x_dq")
    b.node("Conv", ["x_dq", b.weight("w", kernel)], "conv")
    b.node("QuantizeLinear", ["conv", scale, zero], "conv_q")
    b.node("DequantizeLinear", ["conv_q", scale, zero], "y")
    return b.model([value("x", FLOAT, 1, 3, 8, 8)], [value("y", FLOAT, 1, 8, 6, 6)])


def test_a_wrong_fusion_has_its_transformer() -> None:
    ended = judged(saved(_wrongly_fused()), code=1)
    assert "the optimizer makes" in ended.out
    assert "right without WeightBiasQuantization" in ended.out
    wrong = [each for each in results_of(Path("out")).values() if each["outcome"] == "mismatch"]
    assert {tuple(each["culprit"]) for each in wrong} == {("WeightBiasQuantization",)}


def test_a_level_at_which_a_model_does_not_run_has_its_transformer() -> None:
    """Optimised, onnxruntime 1.32 takes axes of CenterCropPad for others."""
    b = Builder(18)
    b.node("Transpose", ["x"], "behind", perm=[0, 2, 3, 1])
    b.node("CenterCropPad", ["behind", b.weight("extents", np.array([4, 4]))], "cut", axes=[1, 2])
    b.node("Transpose", ["cut"], "y", perm=[0, 3, 1, 2])
    ended = judged(saved(b.model([value("x", FLOAT, 1, 2, 6, 6)], [value("y", FLOAT, 1, 2, 4, 4)])), code=1)
    wanted = "does not run at extended, all, right without TransposeOptimizer_CPUExecutionProvider"
    assert wanted in " ".join(ended.out.split())


@pytest.mark.slow
def test_a_run_of_other_sizes_in_a_session_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session keeps from its first run must not shape a later one: here the outputs of the larger run are lost."""
    model = saved(MODELS["transformer_block"]())
    assert harness("model", model, "-t", "cpu", "-o", "right").code == 0
    whole = report("right")["whole"]
    assert [each["resized"] < 1e-4 and each["repeats"] == 0 for each in whole] == [True] * 4

    def forgetful(*asked: Any) -> list[Execution]:
        done = executed(*asked)
        outputs = [
            Tensor(each.dtype, np.zeros_like(each.array)) for run in done[2:3] for each in run.outputs or ()
        ]
        return [*done[:2], *(each._replace(outputs=outputs) for each in done[2:3]), *done[3:]]

    monkeypatch.setattr("harness.run.whole_model.executed", forgetful)
    ended = harness("model", model, "-t", "cpu", "-o", "wrong")
    assert ended.code == 1
    assert "with free dimensions one larger" in " ".join(ended.out.split())


def test_outputs_bound_to_the_device_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(pool: Any, graph: Graph, *rest: Any) -> Execution:
        done = execute(pool, graph, *rest)
        if not graph.deployed or done.outputs is None:
            return done
        outputs = [Tensor(each.dtype, np.zeros_like(each.array)) for each in done.outputs]
        return done._replace(outputs=outputs)

    monkeypatch.setattr("harness.run.whole_model.execute", forgetful)
    ended = harness("model", saved(MODELS["looping_decoder"]()), "-t", "cpu", "-o", "wrong")
    assert ended.code == 1
    assert "with inputs and outputs in memory of the device is off by 1 of the largest" in " ".join(
        ended.out.split()
    )


@pytest.mark.slow
def test_a_run_that_is_off_by_a_rounding_varies(monkeypatch: pytest.MonkeyPatch) -> None:
    def nearby(pool: Any, graph: Graph, *rest: Any) -> Execution:
        done = execute(pool, graph, *rest)
        if not graph.deployed or done.outputs is None:
            return done
        outputs = [Tensor(each.dtype, np.nextafter(each.array, np.float32(np.inf))) for each in done.outputs]
        return done._replace(outputs=outputs)

    model = saved(MODELS["looping_decoder"]())
    assert harness("model", model, "-t", "cpu", "-o", "right").code == 0
    assert "varies" not in Path("right/model.md").read_text()
    monkeypatch.setattr("harness.run.whole_model.execute", nearby)
    judged(model)
    assert Path("out/model.md").read_text().count("| varies |") == 4


def test_of_a_large_call_a_sample_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST", 128)
    judged(saved(transformer_block()))
    found = [
        each
        for each in results_of(Path("out")).values()
        if each["operator"] == "MatMul" and "sampled" in each
    ]
    assert found
    assert all(0 < judged < of for judged, of in (each["sampled"] for each in found))
    assert "a sample was judged" in Path("out/model.md").read_text()


def test_models_become_specs_that_run() -> None:
    one, other = saved(transformer_block(), "one"), saved(transformer_block(), "other")
    ended = harness("model", one, other, "--cases", "ours", "--dim", "sequence=3")
    assert (ended.code, ended.out) == (0, "50 nodes, 20 distinct calls, 20 written to ours\n")
    ended = harness("run", "ours", "-t", "cpu", "-o", "run")
    assert ended.code == 0
    assert sum(each["uses"] for each in results_of(Path("run")).values()) == 50
    assert len(results_of(Path("run"))) == 20
    assert "Weighed by use, 50 of 50 nodes of the models are correct on cpu." in ended.out
    again = refused(one, "--cases", "ours")
    assert (again.code, complaint(again)) == (2, "ours: holds specs already; --force replaces them")
    assert harness("model", one, "--cases", "ours", "--force").code == 0


def test_inputs_are_those_of_a_file_or_within_what_they_point_into() -> None:
    model = saved(transformer_block())
    assert harness("model", model, "--cases", "drawn", "--dim", "sequence=40").code == 0
    ids = np.frombuffer(
        Path("drawn/tensors.bin").read_bytes(), np.int64, 40, _offset("drawn/Gather.yaml", "indices")
    )
    assert 0 <= ids.min() < ids.max() < 50
    np.savez("given.npz", ids=np.arange(20).reshape(1, 20))
    assert harness("model", model, "--cases", "given", "--data", "given.npz").code == 0
    ids = np.frombuffer(
        Path("given/tensors.bin").read_bytes(), np.int64, 20, _offset("given/Gather.yaml", "indices")
    )
    assert ids.tolist() == list(range(20))


def test_integers_and_booleans_differ_where_the_model_runs_so() -> None:
    """With 1 alone a quotient is the product, and And is Or."""
    b = Builder()
    b.node("Div", ["k", "n"], "kn")
    b.node("Add", ["kn", "attention_mask"], "y")
    b.node("And", ["left", "all"], "z")
    integers = [value(name, INT64, 40) for name in ("k", "n", "attention_mask")]
    booleans = [value("left", TensorProto.BOOL, 40), value("all", TensorProto.BOOL)]
    model = read_model(
        Path(
            saved(b.model([*integers, *booleans], [value("y", INT64, 40), value("z", TensorProto.BOOL, 40)]))
        )
    )
    drawn = {
        name: set(each.array.reshape(-1).tolist())
        for name, each in ModelInputs(model, {}, 0, varied=True).tensors(None).items()
    }
    assert drawn == {
        "k": {1, 2, 3}, "n": {1, 2, 3}, "attention_mask": {0, 1}, "left": {False, True}, "all": {True},
    }  # fmt: skip
    ones = ModelInputs(model, {}, 0).tensors(None)
    assert all(each.array.all() and each.array.max() == 1 for each in ones.values())


def test_indices_point_into_an_input_and_integers_are_1_where_others_do_not_run() -> None:
    b = Builder()
    b.node("GatherElements", ["x", "places"], "gathered")
    b.node("Neg", ["x"], "minus")
    b.node("Gather", ["minus", "rows"], "y")
    inputs = [value("x", FLOAT, 2, 3), value("places", INT64, 2, 3), value("rows", INT64, 9)]
    model = b.model(inputs, [value("gathered", FLOAT, 2, 3), value("y", FLOAT, 9, 3)])
    judged(saved(model))
    assert report("out")["verdicts"]["cpu"] == ["correct"] * 3


@pytest.mark.parametrize(
    ("operator", "data", "places", "updates", "verdict"),
    [
        ("ScatterElements", (5, 3), (5, 3), (5, 3), "correct"),
        ("ScatterElements", (2, 9), (2, 4), (2, 4), "correct"),
        ("ScatterND", (4, 5, 3), (3, 3, 2), (3, 3, 3), "correct"),
        ("ScatterND", (4, 5, 2), (6, 2), (6, 2), "compared"),  # of the smallest extent
    ],
)
def test_indices_of_places_name_none_twice(
    operator: str, data: Any, places: Any, updates: Any, verdict: str
) -> None:
    b = Builder(18)
    b.node(operator, ["x", "places", "updates"], "y")
    inputs = [value("x", FLOAT, *data), value("places", INT64, *places), value("updates", FLOAT, *updates)]
    b.node("Neg", ["y"], "z")
    judged(saved(b.model(inputs, [value("z", FLOAT, *data)])))
    assert report("out")["verdicts"]["cpu"] == [verdict, "correct"]
    said = "no place is named twice, unless they are reduced"
    assert (said in Path("out/model.md").read_text(encoding="utf-8")) is (verdict == "compared")


def test_tuples_longer_than_any_rank_are_not_counted_out() -> None:
    """3 ** (1 << 40) places would be counted for days."""
    assert distinct_indices("ScatterND", {}, 3, (0, 1 << 40), np.random.default_rng(0)) is None


def test_what_a_node_replaces_is_missing_here_and_there() -> None:
    b = Builder()
    attributes = {"imputed_value_floats": [1.0, 2.0], "replaced_value_float": float("nan")}
    b.node("Imputer", ["x"], "y", domain="ai.onnx.ml", **attributes)
    model = read_model(Path(saved(b.model([value("x", FLOAT, 20, 2)], [value("y", FLOAT, 20, 2)]))))
    drawn = ModelInputs(model, {}, 0).tensors(None)["x"].array
    assert 0 < np.isnan(drawn).sum() < 20


def test_a_name_with_the_place_of_a_node_is_shown_whole() -> None:
    b = Builder()
    b.nodes.append(helper.make_node("Neg", ["x"], ["y"], name="/encoder/layer.0/Neg"))
    model = saved(b.model([value("x", FLOAT, 2, 3)], [value("y", FLOAT, 2, 3)]))
    Path("script.yaml").write_text("rules:\n  - {match: Neg, do: nan}\n")
    ended = harness("model", model, "-t", "fake,script=script.yaml", "-o", "out")
    assert "node /encoder/layer.0/Neg is wrong" in ended.out
    page = Path("out/model.html").read_text(encoding="utf-8")
    assert "node: /encoder/layer.0/Neg" in " ".join(page.split())
    assert "<title>/encoder/layer.0/Neg: Neg(float32[2,3])" in page
    assert "node /encoder/layer.0/Neg is wrong" in report("out")["summary"]


def _offset(path: str, name: str) -> int:
    (line,) = (line for line in Path(path).read_text().splitlines() if line.strip().startswith(f"{name}:"))
    return int(line.partition("offset: ")[2].rstrip("}"))


@pytest.mark.slow
def test_a_complete_run_is_resumed_without_running() -> None:
    model = saved(MODELS["looping_decoder"]())
    judged(model)
    before = Path("out/run.jsonl").read_bytes()
    assert harness("model", model, "-t", "cpu", "-o", "out", "--resume").code == 0
    assert Path("out/run.jsonl").read_bytes() == before
    assert "holds a complete run" in complaint(refused(model, "-t", "cpu", "-o", "out"))


@pytest.mark.slow
def test_a_run_of_another_model_is_not_resumed_and_stays_as_it_is() -> None:
    judged(saved(MODELS["looping_decoder"]()))
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    ended = refused(saved(transformer_block(), "other"), "-t", "cpu", "-o", "out", "--resume")
    assert (ended.code, "out/specs: the calls of another model" in complaint(ended)) == (2, True)
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


def test_a_model_of_which_nothing_is_judged_is_not_right() -> None:
    model = saved(relu("n", 2))
    harness("model", model, "-t", "cpu", "--dim", "n=0", "-o", "out")
    assert report("out")["summary"] == "model.onnx: on cpu nothing is judged"


def test_layer_normalization_before_onnx_has_it_is_judged() -> None:
    b = Builder(13)
    b.node("LayerNormalization", ["x", b.drawn("scale", 4), b.drawn("bias", 4)], "y", axis=-1)
    model = saved(b.model([value("x", FLOAT, 3, 4)], [value("y", FLOAT, 3, 4)]))
    ended = harness("model", model, "-t", "cpu", "-o", "out")
    assert (ended.code, report("out")["verdicts"]["cpu"]) == (0, ["correct"]), ended.err
    (case,) = results_of(Path("out"))
    assert case.startswith("LayerNormalization@13:")


def test_a_model_without_a_node_that_can_be_judged_says_why() -> None:
    alone = Builder()
    alone.node("SequenceConstruct", ["x"], "s")
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [2])
    ended = refused(saved(alone.model([value("x", FLOAT, 2)], [sequence])), "-t", "cpu")
    assert (ended.code, "; the first SequenceConstruct: gives no tensor" in complaint(ended)) == (4, True)


def test_a_model_whose_name_yaml_cannot_hold_is_judged() -> None:
    """The name stands in a comment of each spec of its calls."""
    model = saved(relu(2), "a\x1b[31m")
    harness("model", model, "-t", "cpu", "-o", "out")
    assert report("out")["summary"] == "a\x1b[31m.onnx: right on cpu"


def test_a_size_is_that_of_the_models_that_have_the_dimension() -> None:
    other = saved(relu("n", 2), "other")
    one = saved(transformer_block(), "one")
    assert harness("model", one, other, "--dim", "n=3", "--dim", "sequence=2", "--cases", "ours").code == 0
    (case,) = expand(load_specs([Path("ours/Relu.yaml")]))
    assert case.inputs[0].shape == (3, 2)
    said = complaint(refused(one, other, "--dim", "m=3"))
    assert said.endswith(
        "one.onnx, other.onnx: no free dimension is named 'm'; there are: batch, sequence, n"
    )


@pytest.mark.parametrize("training", [False, True])
def test_dropout_draws_in_training_alone(training: bool) -> None:
    b = Builder()
    b.weight("ratio", np.array(0.5, np.float32))
    b.weight("training", np.array(training))
    b.node("Dropout", ["x", "ratio", "training"] if training else ["x"], "dropped")
    b.node("Relu", ["dropped"], "y")
    model = saved(b.model([value("x", FLOAT, 2)], [value("y", FLOAT, 2)]))
    harness("model", model, "-t", "cpu", "-o", "out")
    found = report("out")
    assert {each["repeats"] for each in found["whole"]} == {None if training else 0.0}
    said = "model.onnx: draws numbers, so that its runs were not compared with each other"
    assert (said in found["remarks"]) is training


def test_the_page_draws_a_strip_of_a_large_graph() -> None:
    b = Builder()
    for n in range(301):
        b.node("Relu", ["x" if not n else f"y{n - 1}"], f"y{n}")
    judged(saved(b.model([value("x", FLOAT, 2)], [value("y300", FLOAT, 2)])))
    page = Path("out/model.html").read_text()
    assert page.count("<title>/y") == 301
    assert "<path" not in page.partition('class="mg"')[2].partition("</svg>")[0]


def test_weights_in_other_files_are_read() -> None:
    onnx.save(
        transformer_block(), "model.onnx", save_as_external_data=True, location="weights", size_threshold=0
    )
    inside = read_model(Path(saved(transformer_block(), "inside")))
    outside = read_model(Path("model.onnx"))
    assert all(
        np.array_equal(outside.weights[name].array, each.array) for name, each in inside.weights.items()
    )
    judged("model.onnx")
    Path("weights").rename("elsewhere")
    ended = refused("model.onnx", "-t", "cpu")
    assert ended.code == 2
    assert "model.onnx: weight 'table' in 'weights' is missing or damaged: No such file" in complaint(ended)


def test_weights_beside_the_file_that_a_link_names_are_read() -> None:
    """As a cache of Hugging Face has them: the model and its weights are links to two files of one folder."""
    Path("blobs").mkdir()
    Path("snapshot").mkdir()
    np.arange(6, dtype="f4").tofile("blobs/b")
    os.rename(saved(hostile(2, 3, weight=outside("model.onnx_data"))), "blobs/a")
    Path("snapshot/model.onnx").symlink_to("../blobs/a")
    Path("snapshot/model.onnx_data").symlink_to("../blobs/b")
    model = read_model(Path("snapshot/model.onnx"))
    assert model.weights["w"].array.tolist() == [[0, 1, 2], [3, 4, 5]]


def model_of(operator: str, domain: str = "", **attributes: object) -> ModelProto:
    node = helper.make_node(operator, ["data", "indices"], ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [value("data", FLOAT, 2, 2, 2), value("indices", TensorProto.INT64, 2, 1)],
        [value("y", FLOAT, 2, 2)],
    )
    return helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ours", 1)]
    )


def test_bad_input_is_one_line() -> None:
    Path("text.onnx").write_text("This is no model.")
    Path("empty.onnx").write_bytes(b"")
    for name in ("text.onnx", "empty.onnx"):
        ended = refused(name, "-t", "cpu")
        assert (ended.code, f"{name}: no ONNX model" in complaint(ended)) == (2, True)
    assert "absent.onnx: cannot be read: No such file" in complaint(refused("absent.onnx", "-t", "cpu"))
    model = saved(transformer_block())
    for arguments, wanted in (
        (("--dim", "batch"), "--dim batch: write NAME=N, for example batch=2"),
        (("--dim", "batch=2", "--dim", "batch=3"), "--dim batch is given twice; leave one out"),
        (("--cases", "ours", "-o", "run"), "--cases runs nothing, and -o is about a run; leave one out"),
        (("--cases", "ours"), "--cases runs nothing, and -t is about a run; leave one out"),
        (("--cases", "ours", "--resume"), "--cases runs nothing, and --resume is about a run; leave one out"),
        (("--resume", "--force", "-o", "run"), "--resume goes on with a run and --force replaces it"),
        (("--dim", "width=2"), "model.onnx: no free dimension is named 'width'; there are: batch, sequence"),
        (("--data", "text.onnx"), "text.onnx: no .npz file with arrays of numbers, or a damaged one"),
        (
            ("--data", "x.npz", "--dim", "batch=2"),
            "--dim sizes inputs that are drawn, and --data gives those",
        ),
        (("--data", "."), ".: holds no input_0.pb; name a folder as ONNX's backend tests have it"),
        (("-o", "nothing", "--resume"), "nothing: there is no run to resume; leave --resume out"),
    ):
        ended = refused(model, "-t", "cpu", *arguments)
        assert (ended.code, wanted in complaint(ended)) == (2, True), ended.err
    ended = refused(saved(relu(2), "fixed"), "-t", "cpu", "--dim", "n=2")
    assert "no free dimension is named 'n'; every extent is a number" in complaint(ended)
    np.savez("given.npz", idx=np.zeros((1, 1), np.int64))
    assert "the model has no input 'idx'; it has: ids" in complaint(refused(model, "--data", "given.npz"))
    os.mkfifo("pipe")
    assert "pipe: cannot be read: is no regular file" in complaint(refused(model, "--data", "pipe"))
    for given, said in (
        (np.zeros((1, 1), "f8"), "given.npz: ids: a tensor of another element type than the model declares"),
        (np.array([["ab"]]), "given.npz: ids: a tensor of another element type than the model declares"),
        (np.array([[{}]]), "given.npz: no .npz file with arrays of numbers, or a damaged one"),
        (np.zeros(3, np.int64), "given.npz: ids has the shape [3], and the model takes [?,?]"),
    ):
        np.savez("given.npz", ids=given)
        ended = refused(model, "--data", "given.npz")
        assert (ended.code, said in complaint(ended)) == (2, True), ended.err


def test_specs_of_ones_own_are_not_replaced() -> None:
    Path("specs").mkdir()
    Path("specs/Mine.yaml").write_text("mine")
    for more in ((), ("--force",)):
        ended = refused(saved(relu(2)), "-t", "cpu", "-o", ".", *more)
        assert (ended.code, "specs: is not of a run of models" in complaint(ended)) == (2, True)
    assert os.listdir("specs") == ["Mine.yaml"]


def test_weights_of_four_bits_in_another_file_are_two_a_byte() -> None:
    made = TensorProto(name="w", data_type=TensorProto.INT4, dims=[3], data_location=TensorProto.EXTERNAL)
    made.external_data.add(key="location", value="long")
    made.external_data.add(key="length", value="2")
    Path("long").write_bytes(b"\xe1\x03")
    assert read_model(Path(saved(hostile(3, weight=made)))).weights["w"].array.tolist() == [1, -2, 3]


def test_outputs_of_no_declared_type_are_bound() -> None:
    model = relu(2)
    model.graph.output[0].ClearField("type")
    judged(saved(model))
    assert [each["bound"] for each in report("out")["whole"]] == [0.0] * 4


def test_a_contributed_operator_needs_no_import() -> None:
    b = Builder()
    b.node("BiasGelu", ["x", b.drawn("w", 2)], "y", domain="com.microsoft")
    model = b.model([value("x", FLOAT, 3, 2)], [value("y", FLOAT, 3, 2)])
    del model.opset_import[1:]
    judged(saved(model))
    assert report("out")["verdicts"]["cpu"] == ["correct"]


def test_a_call_of_hundreds_of_inputs_is_judged() -> None:
    b = Builder()
    names = [f"x{n}" for n in range(300)]
    b.node("Sum", names, "y")
    judged(saved(b.model([value(name, FLOAT, 1) for name in names], [value("y", FLOAT, 1)])))
    assert report("out")["verdicts"]["cpu"] == ["correct"]


def loop(counter: list[int], added: str) -> ModelProto:
    """Return a loop of three trips that adds a value to x; its body declares the shape of its counter."""
    nodes = [
        helper.make_node("Add", ["i", "one"], ["end"]),
        helper.make_node("Slice", ["x", "i", "end"], ["part"]),
        helper.make_node("Add", ["state", added], ["next"]),
        helper.make_node("Identity", ["on"], ["stays"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", INT64, *counter), value("on", TensorProto.BOOL), value("state", FLOAT, 3)],
        [value("stays", TensorProto.BOOL), value("next", FLOAT, 3)],
    )
    b = Builder()
    b.weight("one", np.array([1]))
    b.nodes.append(helper.make_node("Loop", [b.weight("trips", np.array(3)), "", "x"], ["y"], body=body))
    return b.model([value("x", FLOAT, 3)], [value("y", FLOAT, 3)])


def test_a_counter_has_the_dimension_that_a_body_declares() -> None:
    judged(saved(loop([1], "part")))
    assert report("out")["verdicts"]["cpu"] == ["compared", *["correct"] * 4]


def test_a_body_that_does_not_run_by_itself_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [
        Tensor("int64", np.array(0)),
        Tensor("bool", np.array(True)),
        Tensor("float32", np.zeros(2, "f4")),
    ]
    monkeypatch.setattr("harness.run.recording.first_body", lambda *_: ("body", given))
    monkeypatch.setattr("harness.run.recording.node_bodies", lambda node: [1] * (node.op_type == "Loop"))
    model = loop([1], "x")
    model.graph.node.append(helper.make_node("Neg", ["y"], ["z"]))
    model.graph.output[0].name = "z"
    judged(saved(model))
    found = report("out")
    assert found["verdicts"]["cpu"][0] == "compared"
    assert found["verdicts"]["cpu"][-1] == "correct"
    assert set(found["verdicts"]["cpu"][1:-1]) == {"not judged"}


def test_force_replaces_what_a_killed_run_left() -> None:
    """A run that ended between its specs and its first line."""
    model = saved(relu(2))
    judged(model)
    os.unlink("out/run.jsonl")
    ended = refused(model, "-t", "cpu", "-o", "out")
    assert "specs: is not of a run of models" in complaint(ended)
    Path("out/specs/Mine.yaml").write_text("mine")
    ended = refused(model, "-t", "cpu", "-o", "out", "--force")
    assert "specs: is not of a run of models" in complaint(ended)
    os.unlink("out/specs/Mine.yaml")
    judged(model, "--force")


def test_a_baseline_of_other_weights_is_said() -> None:
    model = hostile(2, 3)
    judged(saved(model))
    os.rename("out", "before")
    assert "other weights" not in judged(saved(model), "--baseline", "before").out
    model.graph.initializer[0].float_data[0] = 2
    assert "before: is of other models, or of other weights" in judged(
        saved(model), "--baseline", "before", "--force"
    ).out.replace("\n  ", " ")


def test_types_that_onnx_runtime_does_not_infer_are_those_of_the_model() -> None:
    """As of the scores of com.microsoft.MultiHeadAttention; two constants have one name, of which the last counts."""
    b = Builder()
    attention = helper.make_node(
        "MultiHeadAttention", ["x", "x", "x"], ["y", "", "", "scores"], domain="com.microsoft", num_heads=2
    )
    b.nodes.append(attention)
    for number in (1.0, 2.0):
        b.node("Constant", [], "two", value_float=number)
    b.node("Mul", ["y", "two"], "z")
    outputs = [value("z", FLOAT, 1, 3, 4), value("scores", FLOAT, 1, 2, 3, 3)]
    judged(saved(b.model([value("x", FLOAT, 1, 3, 4)], outputs)))
    assert report("out")["verdicts"]["cpu"] == ["correct", "correct"]


def test_big_endian_inputs_keep_their_numbers() -> None:
    model = read_model(Path(saved(transformer_block())))
    np.savez("given.npz", ids=np.array([[1, 2]], ">i8"))
    assert ModelInputs(model, {}, 0).tensors(Path("given.npz"))["ids"].array.tolist() == [[1, 2]]


def test_inputs_that_would_fill_the_memory_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    model = read_model(Path(saved(transformer_block())))
    monkeypatch.setattr("harness.compile.model_inputs.PROTOBUF_LIMIT", 1 << 20)
    np.savez_compressed("bomb.npz", ids=np.zeros((1, 1 << 20), np.int64))
    assert Path("bomb.npz").stat().st_size < 1 << 14
    with pytest.raises(UsageError, match=r"bomb[.]npz: more than 2 GiB of inputs, which no model takes"):
        ModelInputs(model, {}, 0).tensors(Path("bomb.npz"))


def sparse(
    places: object = (1, 2), shape: tuple[int, ...] = (3,), values: tuple[float, ...] = (5, 7)
) -> ModelProto:
    """Return x + w as a model whose w is sparse."""
    model = hostile(2, 3)
    del model.graph.initializer[:]
    elements = numpy_helper.from_array(np.array(values, np.float32), "w")
    indices = numpy_helper.from_array(np.array(places), "")
    made = onnx.SparseTensorProto(values=elements, indices=indices, dims=shape)
    model.graph.sparse_initializer.append(made)
    return model


@pytest.mark.parametrize(
    ("places", "shape", "wanted"),
    [
        ([1, 2], (3,), [0, 5, 7]),
        ([[0, 1], [1, 0]], (2, 3), [[0, 5, 0], [7, 0, 0]]),
        ([0, 5], (2, 3), [[5, 0, 0], [0, 0, 7]]),
    ],
)
def test_a_sparse_weight_is_made_dense(places: object, shape: tuple[int, ...], wanted: object) -> None:
    model = saved(sparse(places, shape))
    assert read_model(Path(model)).weights["w"].array.tolist() == wanted
    judged(model)
    assert report("out")["verdicts"]["cpu"] == ["correct"]


def lost() -> ModelProto:
    """Return x + w as a model with another output."""
    model = hostile(2, 3)
    model.graph.output[0].name = "z"
    return model


def hostile(
    *shape: int, weight: TensorProto | None = None, constant: TensorProto | None = None
) -> ModelProto:
    """Return x + w as a model, with an input, a weight or a constant that is none."""
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    nodes[:0] = [] if constant is None else [helper.make_node("Constant", [], ["w"], value=constant)]
    own = helper.make_tensor("w", FLOAT, [], [1.0])
    weights = [] if constant is not None else [weight or own]
    graph = helper.make_graph(nodes, "g", [value("x", FLOAT, *shape)], [value("y", FLOAT)], weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def outside(location: str, **entries: str) -> TensorProto:
    """Return a tensor of six floats in another file."""
    made = TensorProto(name="w", data_type=FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **entries}.items():
        made.external_data.add(key=key, value=text)
    return made


def sparse_attribute() -> ModelProto:
    """Return x + w as a model whose w is a sparse constant."""
    model = sparse()
    constant = helper.make_node("Constant", [], ["w"], sparse_value=model.graph.sparse_initializer[0])
    del model.graph.sparse_initializer[:]
    model.graph.node.insert(0, constant)
    return model


def sparse_in_a_body() -> ModelProto:
    """Return x + w in the branches of If, whose w is sparse."""
    inner = sparse([3, 4]).graph
    del inner.input[:]
    b = Builder()
    b.node("If", ["c"], "z", then_branch=inner, else_branch=inner)
    return b.model([value("x", FLOAT, 2, 3), value("c", TensorProto.BOOL)], [value("z", FLOAT, 2, 3)])


def named_twice() -> ModelProto:
    """Return x + w as a model in which a node makes the weight too."""
    model = hostile(2, 3)
    model.graph.node.insert(0, helper.make_node("Neg", ["x"], ["w"]))
    return model


def giving_nothing() -> ModelProto:
    """Return x + w as a model beside an If of no input and no output."""
    model = hostile(2, 3)
    model.graph.node.append(helper.make_node("If", [], []))
    return model


def of_opset(number: int) -> ModelProto:
    """Return x + w as a model of an opset."""
    model = hostile(2, 3)
    model.opset_import[0].version = number
    return model


def bomb() -> ModelProto:
    """Return a model of 24 functions, each of which calls the next one twice."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ours", 1)]
    bodies = [[("", "Neg", "a", "b")]] + [
        [("ours", f"F{n}", "a", "between"), ("ours", f"F{n}", "between", "b")] for n in range(24)
    ]
    model = hostile(2, 3)
    for n, body in enumerate(bodies):
        nodes = [helper.make_node(name, [a], [b], domain=domain) for domain, name, a, b in body]
        model.functions.append(helper.make_function("ours", f"F{n}", ["a"], ["b"], nodes, imports))
    model.graph.node[0].CopyFrom(helper.make_node("F24", ["x"], ["y"], domain="ours"))
    model.opset_import.append(imports[1])
    return model


NO_FIT = "its extents or its place do not fit the file; copy its file beside the model"
HOSTILE = {
    "huge": (hostile(2**40, 2**40), "input 'x' of 1099511627776×1099511627776 elements cannot be drawn"),
    "above": (hostile(2, 3, weight=outside("../../etc/passwd")), "lies outside of the model's folder"),
    "absolute": (hostile(2, 3, weight=outside("/etc/passwd")), "lies outside of the model's folder"),
    "link": (hostile(2, 3, weight=outside("link")), "lies outside of the model's folder"),
    "pipe": (hostile(2, 3, weight=outside("pipe")), "is no regular file"),
    "zero byte": (hostile(2, 3, weight=outside("a\0b")), NO_FIT),
    "place": (hostile(2, 3, weight=outside("short", offset=str(2**70))), NO_FIT),
    "before": (hostile(2, 3, weight=outside("short", offset="-10")), NO_FIT),
    "short": (hostile(2, 3, weight=outside("short")), NO_FIT),
    "length": (hostile(2, 3, weight=outside("long", length="4")), NO_FIT),
    "many dimensions": (hostile(*[1] * 33), "'x' has 33 dimensions, and 32 are the most"),
    "two values": (named_twice(), "'w' is the name of two values"),
    "no outputs": (giving_nothing(), "a node of If has no output"),
    "opset 0": (of_opset(0), "domain '' has no opset 0"),
    "no opset": (of_opset(1 << 40), "domain '' has no opset 1099511627776"),
    "calls upon calls": (bomb(), "its functions call each other so often that it has more than 1,048,576 nodes"),
    "bytes for texts": (
        hostile(2, 3, weight=TensorProto(name="w", data_type=TensorProto.STRING, dims=[1], string_data=[b"\xff"])),
        "weight 'w': strings that are not UTF-8; export the model again",
    ),
    "constant": (hostile(2, 3, constant=outside("short")), "attribute 'value' of a Constant has its data in another file"),
    "no data": (
        hostile(2, 3, weight=TensorProto(name="w", data_type=FLOAT, dims=[9])),
        "weight 'w': a tensor whose data does not fit its shape",
    ),
    "sparse outside": (sparse([1, 3]), "sparse weight 'w' has an index outside of it"),
    "sparse before": (sparse([[0, 0], [0, -1]], (2, 3)), "sparse weight 'w' has an index outside of it"),
    "sparse out of order": (sparse([2, 1]), "has indices that are not in order, or one twice"),
    "sparse twice": (sparse([[0, 1], [0, 1]], (2, 3)), "has indices that are not in order, or one twice"),
    "sparse of few indices": (sparse([1]), "has indices that do not fit its values"),
    "sparse of other ranks": (sparse([[1], [2]], (2, 3)), "has indices that do not fit its values"),
    "sparse by floats": (sparse([1.0, 2.0]), "has indices that do not fit its values"),
    "sparse and large": (sparse(shape=(2**40, 2**40)), "has more than 256 MiB as a dense one"),
    "sparse and negative": (sparse(shape=(-3,)), "has a negative dimension, or more than 32"),
    "sparse constant": (sparse_attribute(), "attribute 'sparse_value' of a Constant is a sparse tensor"),
    "sparse in a body": (sparse_in_a_body(), "sparse weight 'w' has an index outside of it"),
    "no output": (lost(), "nothing makes the output 'z'"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_is_one_line(name: str) -> None:
    Path("link").symlink_to("/etc/passwd")
    os.mkfifo("pipe")
    Path("short").write_bytes(b"abc")
    Path("long").write_bytes(bytes(24))
    model, said = HOSTILE[name]
    with pytest.raises(UsageError, match=re.escape(said)) as raised:
        ModelInputs(read_model(Path(saved(model))), {}, 0).tensors(None)
    assert str(raised.value).startswith("model.onnx: ")
    assert "\n" not in str(raised.value)


def in_function(model: ModelProto, opset: int = 17) -> ModelProto:
    """Return a model with its nodes in a function, whose opset may be another."""
    graph = model.graph
    takes, gives = [each.name for each in graph.input], [each.name for each in graph.output]
    imports = [helper.make_opsetid("", opset)]
    model.functions.append(helper.make_function("ours", "F", takes, gives, list(graph.node), imports))
    del graph.node[:]
    graph.node.append(helper.make_node("F", takes, gives, domain="ours"))
    model.opset_import.append(helper.make_opsetid("ours", 1))
    return model


def test_names_and_data_within_functions_are_looked_at() -> None:
    damaged = in_function(relu(2))
    damaged.functions[0].node.insert(0, helper.make_node("Neg", ["x"], ["unused"]))
    Path("bytes.onnx").write_bytes(damaged.SerializeToString().replace(b"unused", b"unus\xff\xfe"))
    with pytest.raises(UsageError, match=r"bytes\.onnx: a name in it is no UTF-8"):
        read_model(Path("bytes.onnx"))
    with pytest.raises(UsageError, match="attribute 'value' of a Constant has its data in another file"):
        read_model(Path(saved(in_function(hostile(2, 3, constant=outside("short"))))))


def test_functions_of_another_opset_than_the_model_are_inlined() -> None:
    """As those that exporters share between models; ONNX Runtime runs them."""
    model = read_model(Path(saved(in_function(relu(2), opset=14))))
    assert [(each.op_type, each.domain) for each in model.graph.node] == [("Relu", "")]


def test_functions_of_an_older_opset_with_the_same_operators_are_inlined() -> None:
    """One within another, of whose values ONNX's converter of versions has no types."""
    inner = helper.make_function(
        "own", "Inner", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    body = [helper.make_node("Inner", ["a"], ["b"], domain="own"), helper.make_node("Abs", ["b"], ["c"])]
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    outer = helper.make_function("own", "Outer", ["a"], ["c"], body, imports)
    graph = helper.make_graph(
        [helper.make_node("Outer", ["x"], ["y"], domain="own")],
        "model",
        [value("x", FLOAT, 2)],
        [value("y", FLOAT, 2)],
    )
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("own", 1)]
    model = saved(helper.make_model(graph, functions=[inner, outer], opset_imports=imports, ir_version=10))
    judged(model)
    assert [call["operator"] for call in report("out")["calls"]] == ["Neg", "Abs"]


def test_a_file_name_that_is_no_text_is_one_line() -> None:
    saved(relu(2))
    os.rename("model.onnx", b"caf\xe9.onnx")
    ended = refused("caf\udce9.onnx", "-t", "cpu")
    assert (ended.code, "is not text in UTF-8: rename the file" in complaint(ended)) == (2, True)


def test_names_that_nothing_can_read_are_one_line() -> None:
    model = hostile(2, 3)
    for name, damage, said in (
        ("bytes", lambda data: data.replace(b"\x01x\x12", b"\x01\xff\x12"), "is no UTF-8"),
        ("twice", lambda data: (model.graph.input.append(model.graph.input[0]), model.SerializeToString())[1], "two inputs"),
    ):  # fmt: skip
        Path(f"{name}.onnx").write_bytes(damage(model.SerializeToString()))
        with pytest.raises(UsageError, match=rf"{name}\.onnx: .*{said}"):
            read_model(Path(f"{name}.onnx"))


def test_functions_that_call_themselves_are_one_line() -> None:
    model = model_of("F", "ours")
    call = helper.make_node("F", ["data", "indices"], ["y"], domain="ours")
    model.functions.append(
        helper.make_function("ours", "F", ["data", "indices"], ["y"], [call], list(model.opset_import))
    )
    with pytest.raises(UsageError, match=r"model\.onnx: its functions cannot be inlined: "):
        read_model(Path(saved(model)))


def test_an_opset_to_come_is_named_with_the_newest() -> None:
    model = relu(2)
    model.opset_import[0].version = 99
    ended = refused(saved(model), "-t", "cpu")
    assert (ended.code, "support for domain ai.onnx is till opset" in complaint(ended)) == (4, True)


def test_an_operator_that_its_opset_has_not_is_one_line() -> None:
    model = model_of("GatherND", batch_dims=0)
    model.opset_import[0].version = 10
    ended = refused(saved(model), "-t", "cpu")
    assert (ended.code, "model.onnx: the model does not run on the CPU" in complaint(ended)) == (4, True)


def test_a_model_that_does_not_run_is_one_line() -> None:
    unknown = refused(saved(model_of("Sharpen\nours", "ours")), "-t", "cpu")
    assert unknown.code == 4
    assert "does not run on the CPU" in complaint(unknown)
    ends = refused(saved(model_of("GatherND", batch_dims=-5)), "-t", "cpu")
    assert ends.code == 4
    assert "does not run on the CPU: ended the process" in complaint(ends)


@pytest.mark.parametrize(
    ("operator", "dtype", "said"),
    [
        (
            "Gather",
            FLOAT,
            "Gather(float32[3], int64[1]): a call that ONNX does not define: index values within",
        ),
        ("Multinomial", FLOAT, "Multinomial(float32[3]): "),
        ("HardSigmoid", TensorProto.DOUBLE, "HardSigmoid(float64[3]): a call that ONNX defines"),
    ],
)
def test_the_node_at_which_a_model_stops_is_named(operator: str, dtype: int, said: str) -> None:
    b = Builder()
    b.node("Neg", ["x"], "minus")
    b.node(operator, ["minus", *([b.weight("i", np.array([9]))] if operator == "Gather" else [])], "stop")
    b.node("Identity", ["stop"], "y")
    model = b.model([value("x", dtype, 3)], [value("y", dtype if operator != "Multinomial" else 6, None)])
    ended = refused(saved(model), "-t", "cpu")
    assert (ended.code, f"; it stops at node /stop, {said}" in complaint(ended)) == (4, True), ended


def test_a_model_without_a_formula_is_run_whole_all_the_same() -> None:
    b = Builder()
    b.node("SampleOp", ["x"], "y", domain="com.microsoft")
    model = b.model([value("x", FLOAT, 2)], [value("y", FLOAT, 2)])
    ended = refused(saved(model), "-t", "cpu", "-o", "out")
    assert ended.code == 4
    assert "no node can be judged" in complaint(ended)
    levels = ", ".join(f"{level} 0.0e+00" for level in ("off", "basic", "extended", "all"))
    assert f"whole on cpu, from the unoptimised run on the CPU: {levels}" in complaint(ended)
    assert "no node can be judged" in complaint(refused("model.onnx", "--cases", "specs"))


def test_a_call_that_is_correct_against_an_entry_is_named() -> None:
    Path("known.yaml").write_text(
        "- {match: Relu, when: {provider: CPUExecutionProvider}, expect: rejected, title: No Relu, reason: none, link: https://x.y/z}\n"
    )
    ended = judged(saved(relu(2)), "--expectations", "known.yaml", code=1)
    assert "right on cpu; on cpu 1 case is correct against an entry" in ended.out
    assert "Relu on cpu: correct against an entry" in ended.out
    assert "known: No Relu: none" in ended.out


def test_what_no_entry_knows_is_named_first_and_a_declared_shape_last() -> None:
    b = Builder(17)
    for each in range(3):
        b.node("Relu", ["x"], f"relu{each}")
    for each in range(2):
        b.node("Abs", ["x"], f"abs{each}")
    b.node("Neg", ["x"], "neg")
    outputs = [value(name, FLOAT, 2) for name in ("relu0", "relu1", "relu2", "abs0", "abs1", "neg")]
    Path("known.yaml").write_text(
        "- {match: Relu, when: {provider: CPUExecutionProvider}, expect: rejected, title: No Relu, reason: none, link: https://x.y/z}\n"
    )
    judged(saved(b.model([value("x", FLOAT, 2)], outputs)), "--expectations", "known.yaml", code=1)
    known = msgspec.json.decode(Path("out/model.json").read_bytes(), type=ModelReport)
    reader = RunReader(Path("out/run.jsonl"))
    ran = list(reader)
    (entry,) = (each.expectation for each in ran if each.operator == "Relu")
    changed = {
        "Relu": {"outcome": Outcome.MISMATCH, "expectation": entry},
        "Abs": {"outcome": Outcome.MISMATCH, "error": Error("DeclaredShape", "the session declares")},
        "Neg": {"outcome": Outcome.MISMATCH},
    }
    results = [msgspec.structs.replace(each, **changed[each.operator]) for each in ran]
    view = ModelView(known, reader.header, results, Path("out"))
    named = [known.calls[call].operator for call in view.wrong_calls("cpu")]
    assert named == ["Neg", "Abs", "Relu"]


def test_a_loop_without_an_end_is_waited_for_until_its_time_limit() -> None:
    model = MODELS["looping_decoder"]()
    loop = next(node for node in model.graph.node if node.op_type == "Loop")
    loop.input[0] = ""
    ended = refused(saved(model), "-t", "cpu", "--timeout", "2")
    assert ended.code == 4
    assert "does not run on the CPU: was given up: --timeout allows more" in complaint(ended)


def test_a_negative_extent_is_a_free_dimension() -> None:
    """As older exporters write one, and ONNX Runtime reads it."""
    model = read_model(Path(saved(relu(-1, 3))))
    assert ModelInputs(model, {"x[0]": 4}, 0).tensors(None)["x"].array.shape == (4, 3)
    np.savez("given.npz", x=np.ones((5, 3), "f4"))
    assert ModelInputs(model, {}, 0).tensors(Path("given.npz"))["x"].array.shape == (5, 3)


def test_lengths_are_tried_where_a_model_does_not_run_with_one() -> None:
    """The last of two dimensions is a length, the first a batch; a size that is given is the one that is run."""
    b = Builder()
    b.node("Pad", ["x", b.weight("pads", np.array([0, 8, 0, 8]))], "y", mode="reflect")
    model = saved(b.model([value("x", FLOAT, "batch", "samples")], [value("y", FLOAT, "batch", None)]))
    assert report_of(model)["sizes"] == {"batch": 1, "samples": 64}
    said = complaint(refused(model, "-t", "cpu", "--dim", "samples=2"))
    assert "free dimensions were batch=1, samples=2: set others with --dim NAME=N" in said


def test_a_wrong_axis_shows_where_dimensions_are_free() -> None:
    """Of one element Softmax is 1, whatever its axis is."""
    model = saved(transformer_block())
    assert report_of(model)["sizes"] == {"batch": 2, "sequence": 3}
    shapes = {each["text"] for each in report("out")["calls"] if each["operator"] == "Softmax"}
    assert shapes == {"Softmax(float32[2,2,3,3])"}


def test_an_exponent_is_no_weight_that_rounding_moves() -> None:
    b = Builder()
    b.node("Sub", ["x", b.weight("mean", np.float32(0.3))], "centred")
    b.node("Pow", ["centred", b.weight("two", np.float32(2))], "y")
    whole = report_of(saved(b.model([value("x", FLOAT, 3, 40)], [value("y", FLOAT, 3, 40)])))["whole"]
    assert all(0 < each["noise"] < 1e-5 for each in whole)


@pytest.mark.slow
def test_a_free_dimension_that_does_not_fit_is_named() -> None:
    b = Builder()
    b.node("Add", ["x", b.weight("w", np.zeros(3, "f"))], "sum")
    b.node("Reshape", ["sum", b.weight("shape", np.array([2, 6]))], "y")
    ended = refused(saved(b.model([value("x", FLOAT, "rows", 3)], [value("y", FLOAT, 2, 6)])), "-t", "cpu")
    assert ended.code == 4
    assert "free dimensions were rows=1: set others with --dim NAME=N" in complaint(ended)
    assert harness("model", "model.onnx", "-t", "cpu", "--dim", "rows=4", "-o", "out").code == 0
    b = Builder()
    b.node("Odd", ["x"], "y", domain="example.odd")
    saved(b.model([value("x", FLOAT, "rows", 3)], [value("y", FLOAT, "rows", 3)]))
    said = complaint(refused("model.onnx", "-t", "cpu"))
    assert "example.odd:Odd" in said
    assert "--dim" not in said


@pytest.mark.slow
def test_of_several_models_one_that_does_not_run_keeps_no_other() -> None:
    b = Builder()
    b.node("Add", ["x", b.weight("w", np.zeros(3, "f"))], "sum")
    b.node("Reshape", ["sum", b.weight("shape", np.array([2, 6]))], "y")
    broken = saved(b.model([value("x", FLOAT, 1, 3)], [value("y", FLOAT, 2, 6)]), "broken")
    right = saved(MODELS["transformer_block"](), "right")
    ended = harness("model", broken, right, "-t", "cpu", "-o", "out")
    assert ended.code == 1
    assert "right on cpu; 1 model does not run on the CPU" in ended.out
    assert "broken.onnx: the model does not run on the CPU" in ended.out
    assert all(each == "correct" for each in report("out")["verdicts"]["cpu"])
    assert harness("model", broken, right, "--cases", "ours").code == 1
    assert list(Path("ours").glob("*.yaml"))


def test_strings_are_compared_as_strings() -> None:
    b = Builder()
    b.node("Identity", ["x"], "y")
    string = TensorProto.STRING
    model = saved(b.model([value("x", string, 2)], [value("y", string, 2)]))
    judged(model)
    assert {each["repeats"] for each in report("out")["whole"]} == {0.0}


def test_known_losses_of_digits_are_known_of_a_models_calls() -> None:
    """The kernel of Sigmoid has an absolute error, which a fused region passes on."""
    b = Builder()
    b.node("Mul", ["x", b.weight("far", np.float32(6))], "z")
    b.node("Sigmoid", ["z"], "gate")
    b.node("Mul", ["z", "gate"], "y")
    model = saved(b.model([value("x", FLOAT, 64, 64)], [value("y", FLOAT, 64, 64)]))
    ended = judged(model)
    assert "node /gate is wrong by" in ended.out.replace("\n", " ")
    assert "as known; 1 fused region of such nodes is wrong as well" in " ".join(ended.out.split())
    assert any(each["case"].startswith("RegionSigmoidMul") for each in report("out")["regions"])


def test_numbers_that_a_kernel_computes_in_float32_are_known() -> None:
    b = Builder()
    b.node("Shrink", ["x"], "y", lambd=0.3, bias=0.1)
    double = TensorProto.DOUBLE
    ended = judged(saved(b.model([value("x", double, 4, 4)], [value("y", double, 4, 4)])))
    assert ", as known" in " ".join(ended.out.split())


def test_a_gate_that_is_fused_is_known() -> None:
    b = Builder(22)
    b.node("Conv", ["x", b.drawn("w", 4, 3, 1, 1)], "z")
    b.node("Sigmoid", ["z"], "gated")
    b.node("GlobalAveragePool", ["gated"], "mean")
    b.node("Flatten", ["mean"], "flat")
    b.node("MatMul", ["flat", b.weight("far", np.full((4, 32), -4, np.float32))], "product")
    b.node("Add", ["product", b.drawn("bias", 32)], "sum")
    b.node("Sigmoid", ["sum"], "y")
    model = saved(b.model([value("x", FLOAT, 8, 3, 9, 9)], [value("y", FLOAT, 8, 32)]))
    np.savez("x.npz", x=np.random.default_rng(0).standard_normal((8, 3, 9, 9)).astype(np.float32) * 9)
    judged(model, "--data", "x.npz")
    wrong = [key for key, each in results_of(Path("out")).items() if each["outcome"] == "mismatch"]
    for name in ("RegionConvSigmoid", "RegionMatMulAddSigmoid"):
        assert any(key.startswith(name) for key in wrong), wrong


def test_a_root_of_two_of_six_digits_is_known() -> None:
    """As models of Bert have it; a root that is further off is not taken for one."""
    b = Builder()
    b.node("Div", ["x", b.weight("root", np.float32(1.41421))], "scaled")
    b.node("Erf", ["scaled"], "erf")
    b.node("Add", ["erf", b.weight("one", np.float32(1))], "sum")
    b.node("Mul", ["x", "sum"], "product")
    b.node("Mul", ["product", b.weight("half", np.float32(0.5))], "y")
    judged(saved(b.model([value("x", FLOAT, 64)], [value("y", FLOAT, 64)])))
    (region,) = report("out")["regions"]
    assert results_of(Path("out"))[region["case"]]["outcome"] == "mismatch"


def test_a_mask_of_which_onnx_says_nothing_is_compared() -> None:
    node = helper.make_node("Dropout", ["x"], ["y", "mask"], name="drop")
    b = Builder(10)
    b.nodes.append(node)
    b.node("Neg", ["y"], "z")
    outputs = [value("z", FLOAT, 2), value("mask", TensorProto.BOOL, 2)]
    judged(saved(b.model([value("x", FLOAT, 2)], outputs)))
    assert report("out")["verdicts"]["cpu"] == ["compared", "correct"]


def blocked(*, bias: bool) -> ModelProto:
    """Return x times weights of four bits with a scale for each sixteen, as a model, with a bias or without."""
    b = Builder(21)
    elements = np.random.default_rng(0).integers(0, 15, 32 * 8)
    b.weights.append(helper.make_tensor("B", TensorProto.UINT4, [32, 8], elements.tolist()))
    b.node("DequantizeLinear", ["B", b.drawn("scales", 2, 8)], "w", axis=0, block_size=16)
    b.node("MatMul", ["x", "w"], "product" if bias else "y")
    if bias:
        b.node("Add", ["product", b.drawn("bias", 8)], "y")
    model = b.model([value("x", FLOAT, 2, 32)], [value("y", FLOAT, 2, 8)])
    model.ir_version = 10
    return model


def test_casts_that_go_with_their_rounding_are_known() -> None:
    """As a converter to float16 writes them around a node without a kernel of float16; a wrong pool is not known."""
    b = Builder()
    b.node("Cast", ["x"], "half", to=TensorProto.FLOAT16)
    b.node("MaxPool", ["half"], "pooled", kernel_shape=[2, 2])
    b.node("Cast", ["pooled"], "y", to=FLOAT)
    model = saved(b.model([value("x", FLOAT, 1, 3, 8, 8)], [value("y", FLOAT, 1, 3, 7, 7)]))
    judged(model)
    known = next(each for each in results_of(Path("out")).values() if each["operator"].startswith("Region"))
    assert (known["outcome"], known["verdict"]) == ("mismatch", "expected")


def test_a_sigmoid_within_a_region_loses_digits_as_known() -> None:
    b = Builder()
    b.node("Add", ["x", b.weight("far", np.float32(-12))], "low")
    ends = [
        b.weight(name, np.array([number]))
        for name, number in (("first", 0), ("last", 2**63 - 1), ("axis", 1))
    ]
    b.node("Slice", ["low", *ends], "all")
    b.node("Sigmoid", ["all"], "small")
    b.node("Sub", ["small", "x"], "y")
    judged(saved(b.model([value("x", FLOAT, 4, 40)], [value("y", FLOAT, 4, 40)])))
    found = [each for each in results_of(Path("out")).values() if each["outcome"] != "pass"]
    assert {each["operator"].startswith("RegionSliceSigmoid") for each in found} == {True, False}


def test_activations_of_eight_bits_are_known_of_a_model_with_weights_of_four() -> None:
    judged(saved(blocked(bias=False)))
    wrong = [key for key, each in results_of(Path("out")).items() if each["outcome"] == "mismatch"]
    assert any(key.startswith("RegionMatMul") for key in wrong), wrong


def test_what_a_higher_level_makes_of_the_same_nodes_is_judged_too() -> None:
    """MatMul, Add become Gemm, and above that MatMulNBits."""
    judged(saved(blocked(bias=True)))
    levels = [each["case"].rpartition("optimization=")[2] for each in report("out")["regions"]]
    assert levels == ["basic", "extended"]


def test_activations_of_eight_bits_are_known_where_the_offsets_of_small_weights_cancel() -> None:
    """The kernel adds 128 to weights of int8 and takes it away of sums of A: 128 times what is left is rounded."""
    b = Builder(21)
    drawn = np.random.default_rng(0)
    b.weights.append(numpy_helper.from_array(drawn.integers(-1, 2, (32, 8)).astype(np.int8), "B"))
    b.node("DequantizeLinear", ["B", b.drawn("scales", 2, 8)], "w", axis=0, block_size=16)
    b.node("MatMul", ["x", "w"], "y")
    model = b.model([value("x", FLOAT, 2, 32)], [value("y", FLOAT, 2, 8)])
    model.ir_version = 10
    judged(saved(model))
    wrong = [key for key, each in results_of(Path("out")).items() if each["outcome"] == "mismatch"]
    assert any(key.startswith("RegionMatMul") for key in wrong), wrong


def test_a_convolution_that_saturates_is_known() -> None:
    """Where the processor has no VNNI; a scale of 1 / 255 is no whole number of float32 either, which QLinearSoftmax makes of it."""
    b = Builder(17)
    zero, scale = b.weight("zero", np.uint8(0)), b.weight("scale", np.float32(1 / 255))
    weights = np.full((10, 16, 1, 1), 127, np.int8)
    weights[:, ::2] = np.arange(10, dtype=np.int8).reshape(10, 1, 1, 1) + 90
    b.node("QuantizeLinear", ["x", scale, zero], "x_q")
    b.node("DequantizeLinear", ["x_q", scale, zero], "x_dq")
    b.node(
        "DequantizeLinear",
        [b.weight("w", weights), b.weight("ws", np.float32(0.001)), b.weight("wz", np.int8(0))],
        "w_dq",
    )
    b.node("Conv", ["x_dq", "w_dq"], "conv")
    wide = b.weight("wide", np.float32(0.01))
    b.node("QuantizeLinear", ["conv", wide, zero], "conv_q")
    b.node("DequantizeLinear", ["conv_q", wide, zero], "conv_dq")
    b.node("Softmax", ["conv_dq"], "softmax", axis=1)
    b.node("QuantizeLinear", ["softmax", scale, zero], "y")
    model = saved(b.model([value("x", FLOAT, 2, 16, 5, 5)], [value("y", TensorProto.UINT8, 2, 10, 5, 5)]))
    np.savez("x.npz", x=np.random.default_rng(0).uniform(0.5, 1, (2, 16, 5, 5)).astype(np.float32))
    judged(model, "--data", "x.npz")
    regions = {each["case"]: each["made"]["cpu"] for each in report("out")["regions"]}
    assert any("QLinearConv" in made for made in regions.values())
    assert any("QLinearSoftmax" in made for made in regions.values())


def test_outputs_that_are_inputs_or_weights_are_compared() -> None:
    b = Builder()
    b.weight("w", np.array([1, 2], np.float32))
    b.node("Add", ["x", "w"], "y")
    shaped = [value(name, FLOAT, 2) for name in ("x", "w", "y")]
    judged(saved(b.model(shaped[:1], shaped)))
    assert [each["apart"] for each in report("out")["whole"]] == [0.0] * 4


def test_a_resize_to_extents_that_another_node_gives_is_judged() -> None:
    b = Builder(18)
    b.node("Shape", ["x"], "shape")
    b.node("Mul", ["shape", b.weight("twice", np.array([1, 1, 2, 2]))], "sizes")
    b.node("Resize", ["x", "", "", "sizes"], "y", mode="linear")
    model = saved(b.model([value("x", FLOAT, 1, 2, "h", "w")], [value("y", FLOAT, 1, 2, "a", "b")]))
    judged(model, "--dim", "h=4", "--dim", "w=5")
    assert report("out")["verdicts"]["cpu"] == ["correct"] * 3


def test_a_normalisation_in_training_has_all_its_outputs() -> None:
    names = ["x", "scale", "bias", "mean", "variance"]
    node = helper.make_node("BatchNormalization", names, ["y", "m", "v"], training_mode=1)
    inputs = [value("x", FLOAT, 4, 3, 2), *(value(name, FLOAT, 3) for name in names[1:])]
    b = Builder(15)
    b.nodes.append(node)
    model = saved(b.model(inputs, [value("y", FLOAT, 4, 3, 2)]))
    np.savez(
        "x.npz",
        **{
            each.name: np.random.default_rng(0)
            .uniform(1, 2, [d.dim_value for d in each.type.tensor_type.shape.dim])
            .astype(np.float32)
            for each in inputs
        },
    )
    judged(model, "--data", "x.npz")
    assert report("out")["verdicts"]["cpu"] == ["correct"]


@pytest.mark.slow
def test_trees_of_an_earlier_version_are_judged_however_many_they_are() -> None:
    """Their attributes are longer than an id may be."""
    count = 400
    b = Builder()
    b.node(
        *("TreeEnsembleRegressor", ["x"], "y"),
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[n // 3 for n in range(3 * count)],
        nodes_nodeids=[0, 1, 2] * count,
        nodes_featureids=[0] * 3 * count,
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * count,
        nodes_values=[each for n in range(count) for each in (n / count - 0.5, 0.0, 0.0)],
        nodes_truenodeids=[1, 0, 0] * count,
        nodes_falsenodeids=[2, 0, 0] * count,
        target_treeids=[n // 2 for n in range(2 * count)],
        target_nodeids=[1, 2] * count,
        target_ids=[0] * 2 * count,
        target_weights=[n / 64 for n in range(2 * count)],
    )
    model = saved(b.model([value("x", FLOAT, 4, 1)], [value("y", FLOAT, 4, 1)]))
    judged(model)
    assert report("out")["verdicts"]["cpu"] == ["correct"]
    Path("script.yaml").write_text('rules:\n  - {match: "*", do: nan}\n')
    assert harness("model", model, "-t", "fake,script=script.yaml", "-o", "wrong").code == 1


def test_a_region_whose_extents_follow_from_elements_is_not_cut_out() -> None:
    b = Builder(18)
    b.node("Shape", ["x"], "shape")
    b.node("Slice", ["shape", b.weight("one", np.array([1])), b.weight("two", np.array([2]))], "length")
    b.node("Squeeze", ["length"], "n")
    b.node("Range", [b.weight("zero", np.int64(0)), "n", b.weight("step", np.int64(1))], "places")
    b.node("Gather", [b.drawn("table", 16, 4), "places"], "rows")
    b.node("Add", ["x", "rows"], "y")
    model = saved(b.model([value("x", FLOAT, 2, "n", 4)], [value("y", FLOAT, 2, "n", 4)]))
    judged(model, "--dim", "n=7")
    assert all(each["outcome"] == "pass" for each in results_of(Path("out")).values())


def test_what_gives_a_sequence_is_judged_by_what_takes_it() -> None:
    b = Builder(18)
    b.node("SplitToSequence", ["x"], "parts", axis=0)
    b.node("ConcatFromSequence", ["parts"], "whole", axis=0)
    b.node("Neg", ["whole"], "y")
    model = saved(b.model([value("x", FLOAT, 3, 2)], [value("y", FLOAT, 3, 2)]))
    ended = judged(model)
    assert report("out")["verdicts"]["cpu"] == ["not judged", "correct", "correct"]
    page = Path("out/model.md").read_text(encoding="utf-8")
    assert "| SplitToSequence(float32[3,2]) | 1 | gives no tensor |" in page
    assert "does not support" not in ended.out


def test_of_a_body_with_a_sequence_the_other_nodes_are_judged() -> None:
    """A loop that collects its steps, and a branch that joins them: the branch gives the output of the model."""
    steps = helper.make_tensor_sequence_value_info("kept", FLOAT, None)
    body = helper.make_graph(
        [
            helper.make_node("Neg", ["state"], ["next"], name="/neg"),
            helper.make_node("SequenceInsert", ["kept", "next"], ["longer"]),
            helper.make_node("Identity", ["on"], ["stays"]),
        ],
        "body",
        [value("i", INT64), value("on", TensorProto.BOOL), value("state", FLOAT, 2), steps],
        [
            value("stays", TensorProto.BOOL),
            value("next", FLOAT, 2),
            helper.make_tensor_sequence_value_info("longer", FLOAT, None),
        ],
    )
    joined, first = (
        helper.make_graph([node], "branch", [], [value(node.output[0], FLOAT, "n")])
        for node in (
            helper.make_node("ConcatFromSequence", ["steps"], ["joined"], axis=0),
            helper.make_node("Identity", ["x"], ["first"]),
        )
    )
    b = Builder()
    b.node("SequenceEmpty", [], "none")
    b.weight("trips", np.array(3))
    b.nodes.append(helper.make_node("Loop", ["trips", "", "x", "none"], ["last", "steps"], body=body))
    b.node("Cast", [b.weight("one", np.array(1))], "yes", to=TensorProto.BOOL)
    b.nodes.append(helper.make_node("If", ["yes"], ["y"], then_branch=joined, else_branch=first))
    judged(saved(b.model([value("x", FLOAT, 2)], [value("y", FLOAT, "n")])))
    found = report("out")
    verdicts = dict(zip((each["name"] for each in found["nodes"]), found["verdicts"]["cpu"], strict=True))
    assert verdicts["Loop_1//neg"] == "correct"
    assert [each["apart"] for each in found["whole"]] == [0.0] * 4


def test_a_branch_that_declares_another_shape_than_it_makes_is_judged() -> None:
    """ONNX Runtime runs the model where the optimizer takes the If apart, and not without optimisation."""

    def branch(operator: str, inputs: list[str], name: str, *shape: int) -> Any:
        node = helper.make_node(operator, inputs, [name], name=name)
        return helper.make_graph([node], name, [], [value(name, FLOAT, *shape)])

    b = Builder()
    b.weight("no", np.array(False))
    flat = branch("Reshape", ["x", b.weight("six", np.array([6]))], "flat", 6)
    first = {"then_branch": flat, "else_branch": branch("Identity", ["x"], "kept", 2, 3)}
    second = {
        each: branch("Identity", ["either"], name, 6)
        for each, name in (("then_branch", "one"), ("else_branch", "other"))
    }
    b.nodes.append(helper.make_node("If", ["no"], ["either"], name="first", **first))
    b.nodes.append(helper.make_node("If", ["no"], ["y"], name="second", **second))
    model = saved(b.model([value("x", FLOAT, 2, 3)], [value("y", FLOAT, "m", "n")]))
    harness("model", model, "-t", "cpu", "-o", "out")
    found = report("out")
    levels = [(each["level"], each["error"] == "") for each in found["whole"]]
    assert levels == [("off", False), ("basic", True), ("extended", True), ("all", True)]
    assert found["verdicts"]["cpu"] == ["correct"] * 3


def test_a_result_that_onnx_leaves_open_is_compared() -> None:
    """ONNX does not say how one row of coefficients stands for two classes; a right node stands beside it."""
    b = Builder()
    weights, labels = [0.1, 0.2, -0.3], [0, 1]
    b.node("Neg", ["x"], "minus")
    b.nodes.append(
        helper.make_node(
            *("LinearClassifier", ["minus"], ["label", "p"]),
            domain="ai.onnx.ml",
            classlabels_ints=labels,
            coefficients=weights,
            intercepts=[0.1],
        )
    )
    model = saved(b.model([value("x", FLOAT, 2, 3)], [value("label", INT64, 2), value("p", FLOAT, 2, 2)]))
    judged(model)
    assert report("out")["verdicts"]["cpu"] == ["correct", "compared"]
    assert "a result that ONNX leaves open" in Path("out/model.md").read_text(encoding="utf-8")


def test_texts_are_those_that_a_node_looks_for() -> None:
    b = Builder()
    b.node("OneHotEncoder", ["x"], "y", domain="ai.onnx.ml", cats_strings=["red", "blue"], zeros=0)
    model = saved(b.model([value("x", TensorProto.STRING, 5)], [value("y", FLOAT, 5, 2)]))
    judged(model)
    drawn = ModelInputs(read_model(Path(model)), {}, 0).tensors(None)["x"].array
    assert {*drawn.tolist()} <= {"red", "blue"}


def test_a_free_dimension_that_is_a_sum_follows_from_its_terms() -> None:
    b = Builder()
    b.node("Concat", ["past", "new"], "all", axis=0)
    b.node("Add", ["all", "mask"], "y")
    inputs = [value("past", FLOAT, "p"), value("new", FLOAT, "n"), value("mask", FLOAT, "p + n")]
    model = saved(b.model(inputs, [value("y", FLOAT, "m")]))
    judged(model, "--dim", "p=3")
    found = report("out")
    assert found["sizes"] == {"p": 3, "n": 2, "p + n": 5}
    assert all(each["resized"] == 0.0 for each in found["whole"])


def test_a_length_that_a_model_was_traced_with_is_found() -> None:
    b = Builder()
    b.node("Reshape", ["x", b.weight("shape", np.array([8]))], "y")
    judged(saved(b.model([value("x", FLOAT, 1, "n")], [value("y", FLOAT, 8)])))
    assert report("out")["sizes"] == {"n": 8}


def test_a_mask_longer_than_what_is_new_is_tried() -> None:
    b = Builder()
    b.node("Concat", ["past", "new"], "all", axis=0)
    b.node("MatMul", ["all", "mask"], "y")
    inputs = [value("past", FLOAT, "p"), value("new", FLOAT, "n"), value("mask", FLOAT, "total")]
    judged(saved(b.model(inputs, [value("y", FLOAT)])))
    assert report("out")["sizes"] == {"p": 1, "n": 1, "total": 2}


def test_outputs_that_are_no_tensors_are_left_out() -> None:
    scores, labels = [0.1, 0.2, -0.3, 0.4, 0.5, 0.6], [0, 1]
    ml = "ai.onnx.ml"
    b = Builder()
    b.nodes += [
        helper.make_node(
            *("LinearClassifier", ["x"], ["label", "p"]),
            domain=ml,
            classlabels_ints=labels,
            coefficients=scores,
            intercepts=[0.1, 0.2],
        ),
        helper.make_node("ZipMap", ["p"], ["maps"], domain=ml, classlabels_int64s=labels),
    ]
    floats = helper.make_tensor_type_proto(FLOAT, [])
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, floats))
    outputs = [value("label", TensorProto.INT64, 2), helper.make_value_info("maps", maps)]
    model = saved(b.model([value("x", FLOAT, 2, 3)], outputs))
    judged(model)
    assert report("out")["verdicts"]["cpu"] == ["correct", "not judged"]
    assert [each["apart"] for each in report("out")["whole"]] == [0.0] * 4


@pytest.mark.slow
def test_what_a_document_leaves_open_is_not_wrong() -> None:
    """The formula of Normalizer loses the sign of negative numbers, which no implementation does."""
    b = Builder()
    b.node("Normalizer", ["x"], "y", domain="ai.onnx.ml", norm="L2")
    model = saved(b.model([value("x", FLOAT, 2, 4)], [value("y", FLOAT, 2, 4)]))
    for rows in ([[-1, 2, 3, 4], [-1, -2, -3, -4]], [[1, 2, 3, 4], [-1, -2, -3, -4]]):
        np.savez("x.npz", x=np.array(rows, "f"))
        ended = harness("model", model, "-t", "cpu", "--data", "x.npz", "-o", "out", "--force")
        assert ended.code == 0, ended.out


def test_a_target_that_is_not_here_is_said() -> None:
    ended = harness("model", saved(MODELS["looping_decoder"]()), "-t", "plugin=absent.so", "-o", "out")
    assert ended.code == 3
    assert "is not available" in ended.out


def test_known_defects_of_other_releases_are_listed() -> None:
    entry = {
        "when": {"provider": "CPUExecutionProvider", "onnxruntime": ">=1.20,<1.28"},
        "match": ["Erf"],
        "expect": "crash",
        "title": "Erf of everything",
        "reason": "it ends the process",
        "link": "https://example.org/1",
    }
    Path("known.yaml").write_text(json.dumps([entry]))
    model = saved(MODELS["transformer_block"]())
    ended = harness("model", model, "-t", "cpu", "-o", "out", "--expectations", "known.yaml")
    assert ended.code == 0
    (known,) = report("out")["known"]
    assert (known["title"], known["calls"], known["holds"]) == ("Erf of everything", 1, False)
    assert "since 1.20, mended in 1.28" in ended.out
    assert "not in this release" in ended.out


@pytest.mark.slow
def test_a_bug_report_needs_none_of_the_models_numbers() -> None:
    model = _wrongly_fused()
    judged(saved(model), code=1)
    case = next(case for case, each in results_of(Path("out")).items() if each["outcome"] == "mismatch")
    ended = harness("repro", "out", case, "-t", "cpu", "-o", "bug", "--redraw", "--spec", "out/specs")
    assert (ended.code, ended.err.splitlines()[0]) == (0, "drawn anew: all")
    (kernel,) = (numpy_helper.to_array(each) for each in model.graph.initializer if each.name == "w")
    held = [numpy_helper.to_array(each) for each in onnx.load("bug/model.onnx").graph.initializer]
    fed = [TensorProto.FromString(path.read_bytes()) for path in Path("bug").rglob("*.pb")]
    numbers = {float(number) for each in (*held, *map(numpy_helper.to_array, fed)) for number in each.ravel()}
    assert numbers.isdisjoint(kernel.ravel().tolist())
    assert not any(b"model.onnx" in path.read_bytes() for path in Path("bug").glob("*.[yo]*"))
    said = Path("bug/issue.md").read_text()
    assert "harness model" not in said
    title = (
        "# DequantizeLinear, Conv, QuantizeLinear: CPUExecutionProvider gives a wrong result (element) unless"
    )
    assert said.startswith(f"{title} WeightBiasQuantization is disabled")
    assert "harness run case.yaml -t cpu" in said
    assert harness("run", "bug/case.yaml", "-t", "cpu", "-o", "again").code == 1


def test_a_node_of_a_model_is_reported_without_its_name() -> None:
    model = MODELS["transformer_block"]()
    Path("script.yaml").write_text("rules:\n  - {match: Erf, do: nan}\n")
    target = "fake,script=script.yaml"
    ended = harness("model", saved(model), "-t", target, "-o", "out")
    assert ended.code == 1
    assert "harness repro" not in ended.out  # of a provider that nobody else has


def test_what_documents_allow_stands_beside_what_ran() -> None:
    """Of a target of DirectML: here the CPU's results under its name, without those of one operator."""
    judged(saved(MODELS["transformer_block"]()))
    known = msgspec.json.decode(Path("out/model.json").read_bytes(), type=ModelReport)
    reader = RunReader(Path("out/run.jsonl"))
    info = TargetInfo(provider=DML, onnxruntime="1.24.4", max_feature_level="6_4")
    results = [
        msgspec.structs.replace(
            each,
            target="dml",
            outcome=Outcome.NOT_PLACED if each.case.startswith("Softmax") else each.outcome,
        )
        for each in reader
    ]
    view = ModelView(
        known, msgspec.structs.replace(reader.header, targets={"dml": info}), results, Path("out")
    )
    section = next(each for each in model_document(view).sections if each.name == "levels")
    by_level, by_target = (each for each in section.blocks if isinstance(each, Table))
    assert [row[1] for row in by_level.rows if row[0] == "6_4"] == [known.releases["6_4"]]
    assert by_target.heads[-2:] == ("documented, did not run", "ran, not documented")
    (row,) = by_target.rows
    softmax = sum(known.calls[node.call].operator == "Softmax" for node in known.nodes)
    assert row[-2] == Span(f"Softmax {softmax}", "warn")
    nodes = [int(str(each)) for each in (row[2], row[3], row[4])]
    assert nodes[2] == len(known.nodes) - softmax
    assert nodes[1] == len(known.nodes)


def test_bfloat16_is_recorded() -> None:
    b = Builder(17)
    b.node("Cast", ["x"], "small", to=TensorProto.BFLOAT16)
    b.node("Transpose", ["small"], "turned", perm=[1, 0])
    b.node("Cast", ["turned"], "y", to=FLOAT)
    model = saved(b.model([value("x", FLOAT, 2, 3)], [value("y", FLOAT, 3, 2)]))
    judged(model)
    assert report("out")["verdicts"]["cpu"] == ["correct"] * 3


def test_inputs_of_bfloat16_are_not_bound_as_integers() -> None:
    b = Builder(17)
    b.node("Transpose", ["x"], "y", perm=[1, 0])
    model = b.model([value("x", TensorProto.BFLOAT16, 2, 3)], [value("y", TensorProto.BFLOAT16, 3, 2)])
    judged(saved(model))
    assert [(each["repeats"], each["bound"]) for each in report("out")["whole"]] == [(0, None)] * 4


def test_the_body_of_a_scan_of_opset_8_is_not_recorded() -> None:
    inner = Builder(8)
    inner.node("Add", ["state", "each"], "next")
    ends = [value("state", FLOAT, 3), value("each", FLOAT, 3)], [value("next", FLOAT, 3)]
    b = Builder(8)
    b.node("Relu", ["x"], "positive")
    b.node("Scan", ["", "first", "positive"], "y", num_scan_inputs=1, body=inner.model(*ends).graph)
    model = b.model([value("first", FLOAT, 1, 3), value("x", FLOAT, 1, 4, 3)], [value("y", FLOAT, 1, 3)])
    judged(saved(model))
    assert report("out")["verdicts"]["cpu"][0] == "correct"


@pytest.mark.slow
def test_the_onnx_packages_small_models() -> None:
    """Those exported by PyTorch are of opsets below 7, for which onnxruntime promises no kernel."""
    folders = [LIGHT.parent / name for name in ("pytorch-converted", "pytorch-operator", "simple")]
    paths = [path for folder in folders for path in sorted(folder.glob("*/model.onnx"))]
    for path in paths:
        shutil.copy(path, f"{path.parent.name}.onnx")
    names = [f"{path.parent.name}.onnx" for path in paths]
    ended = harness("model", *names, "-t", "cpu", "-o", "out")
    assert ended.code in (0, 1), ended.err
    found = report("out")
    reasons = (
        "Could not find an implementation",  # of an old opset
        "is not a registered function/op",  # Gradient
        "Failed to construct locale",  # of StringNormalizer, where the machine lacks en_US
        "split_size_sum",  # of drawn inputs
    )
    assert len(paths) > 130
    others = [each for each in found["ended"] if not any(reason in each for reason in reasons)]
    assert not others
    assert len(found["ended"]) < len(paths) / 3
    assert not any(each.get("error") for each in found["whole"])
    assert set(found["wrong"]["cpu"]) <= {"test_Sigmoid:Sigmoid_0"}  # its known loss of digits


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shufflenet", "inception_v1"])
def test_light_models_are_right(name: str) -> None:
    ended = judged(str(LIGHT / f"light_{name}.onnx"))
    assert f"light_{name}.onnx: right on cpu" in ended.out
