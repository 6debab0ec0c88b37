"""Proof of placement on the real onnxruntime: a pass needs the session's or its profile's word where the node
ran."""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec import UNSET
from onnx import FunctionProto, ModelProto, TensorProto, defs, helper
from onnx import checker as onnx_checker

from harness.compile.prepare import by_graph
from harness.model.case import (
    Case,
    Options,
    Tensor,
    TensorSpec,
    Validity,
)
from harness.model.onnx_schemas import operator_versions
from harness.model.result import Diff, Error
from harness.model.signatures import signature
from harness.model.target_info import CPU, DML
from harness.model.verdict import Outcome
from harness.run.deviation import Given
from harness.run.judge import Judgement, NodePlacement, judge, placement
from harness.specs.expand import expand
from harness.specs.expectations.expectation_entry import Entry
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.calls import call_of
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.launches import launch
from harness.targets.launching import Launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from harness.worker import worker
from harness.worker.worker import with_identity
from tests.plans import selected
from tests.prepared import chosen

WORKERS = Path(__file__).parents[1] / "workers.py"
QUERIES = (
    "GatherElements@13:sweep=extent;data=int8;indices=int32;axis=0",
    "GatherElements@13:sweep=initializer;data=float32[3,4]",
    "GatherElements@13:sweep=optimized;data=float32[3,4]",
    "GatherElements@13:sweep=sandwich;data=bool[3,4]",
    "GatherElements@13:sweep=dtype_rank;data=bfloat16[3,4]",
    "GatherElements@13:sweep=dtype_rank;data=string[3,4]",
    "GatherElements@13:sweep=dtype_rank;data=complex64[3,4]",
    "GatherND@13:sweep=batch;data=string[2,3,4]",
    "GatherND@13:case=documented_onnx_5",
    "Round@22:sweep=variants_rank;X=float16;values=random",
    "Round@22:sweep=in_place;X=float32",
    "Round@22:sweep=rank;X=float64;values=specials",
    "Round@22:sweep=empty;X=bfloat16",
)


def cpu() -> Launch:
    return launch(parse_target("cpu"))


def older() -> Launch:
    """Return the CPU provider of an onnxruntime that does not tell placement before a run."""
    return cpu()._replace(argv=[sys.executable, str(WORKERS), "without_assignment"])


def leaving_out() -> Launch:
    """Return the CPU provider of an onnxruntime that does not list every node."""
    return cpu()._replace(argv=[sys.executable, str(WORKERS), "with_nodes_left_out"])


def of_graph(name: str, *wanted: str) -> list[GraphCases]:
    """Return the cases of a graph whose ids have one of these texts, and the graphs that they run on."""
    cases = expand(load_specs([Path(f"specs/graphs/{name}.yaml")]))
    return list(by_graph((case for case in cases if any(text in case.id for text in wanted)), 0))


def judged(given: list[GraphCases], with_: Launch) -> dict[str, tuple[Judgement, Execution]]:
    pool = WorkerPool(with_, size=1, timeout=60)
    return {
        p.case.id: (judge(p, graph, execution, with_.provider), execution)
        for p, graph, execution in pool.run(iter(given))
    }


@pytest.mark.parametrize("start", [cpu, older], ids=["assignment", "profile"])
def test_every_pass_is_proven(start: object) -> None:
    """Both ways to prove placement lead to the same outcomes, case by case."""
    given = chosen(*QUERIES)
    found = judged(given, start())
    assert len(found) == sum(len(unit.cases) for unit in given)
    graphs = {prepared.case.id: unit.graph for unit in given for prepared in unit.cases}
    for case, (judgement, execution) in found.items():
        if "complex64" in case:
            assert judgement.outcome is Outcome.REJECTED, case
        elif "Round@22:sweep=empty;X=bfloat16" in case:
            assert judgement.outcome is Outcome.UNSUPPORTED, case
        else:
            assert (judgement.outcome, judgement.placed_on) == (Outcome.PASS, CPU), case
            assert execution.nodes is not None, case
            assert set(graphs[case].tested) <= {
                operator for provider, operator in execution.nodes if provider == CPU
            }, case
    assert sum(judgement.outcome is Outcome.PASS for judgement, _ in found.values()) > 100


@pytest.mark.parametrize("start", [cpu, older, leaving_out])
def test_every_node_of_a_graph_is_proven(start: Callable[[], Launch]) -> None:
    """Casts are inserted around nodes of float16; a deployed session that is gone ran without a profile."""
    given = [
        *of_graph("MatMulScale", "sweep=half"),
        *of_graph("PassedThrough", "exposed=same;binding=outlived"),
    ]
    found = judged(given, start())
    graphs = {prepared.case.id: unit.graph for unit in given for prepared in unit.cases}
    assert len(found) > 15
    assert {graph.optimization for graph in graphs.values()} == {"off", "basic", "extended", "all"}
    for case, (judgement, execution) in found.items():
        assert (judgement.outcome, judgement.placed_on) == (Outcome.PASS, CPU), case
        listed = {operator for provider, operator in execution.nodes or () if provider == CPU}
        kept = set(graphs[case].tested).intersection(execution.graph_nodes or graphs[case].tested)
        assert listed, case
        assert kept <= listed, case


@pytest.mark.parametrize("start", [cpu, older], ids=["assignment", "profile"])
@pytest.mark.parametrize("optimization", ["off", "basic", "all"])
def test_a_folded_node_proves_nothing(optimization: str, start: object) -> None:
    """All inputs are initializers: an optimised session computes the node while it loads, and no provider
    runs it."""
    data, indices = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[0, 1, 1]])
    node = helper.make_node("GatherElements", ["data", "indices"], ["gathered"], name="tested", axis=0)
    kept = helper.make_node("Add", ["gathered", "x"], ["output"])  # something that is left to run
    graph = helper.make_graph(
        [node, kept],
        "folded",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 3])],
        [
            TensorProto(name="data", data_type=TensorProto.FLOAT, dims=data.shape, raw_data=data.tobytes()),
            TensorProto(
                name="indices", data_type=TensorProto.INT64, dims=indices.shape, raw_data=indices.tobytes()
            ),
        ],
    )
    model: ModelProto = helper.make_model(graph, ir_version=7, opset_imports=[helper.make_opsetid("", 13)])
    raw = model.SerializeToString()
    compiled = Graph(
        raw,
        sha256(raw).hexdigest(),
        (2,),
        (("x", 1),),
        (("output", 1),),
        ("GatherElements",),
        optimization,  # type: ignore[arg-type]
    )
    zero = np.zeros((1, 3), np.float32)
    specs = (
        TensorSpec("data", "float32", data.shape, "literal"),
        TensorSpec("indices", "int64", indices.shape, "literal"),
        TensorSpec("x", "float32", zero.shape, "literal"),
    )
    case = Case(
        "GatherElements@13:case=folded",
        "GatherElements",
        13,
        {"axis": 0},
        specs,
        Options(optimization=optimization),
    )  # type: ignore[arg-type]
    prepared = Prepared(
        case, call_of(case), (Tensor("float32", data), Tensor("int64", indices), Tensor("float32", zero))
    )
    pool = WorkerPool(start(), size=1, timeout=60)
    ((_, _, execution),) = pool.run(iter([GraphCases(compiled, [prepared])]))
    assert execution.outputs is not None
    assert [output.array.tolist() for output in execution.outputs] == [
        [[0.0, 4.0, 5.0]]
    ]  # the right result, whoever computed it
    if optimization == "off":
        assert placement(execution, compiled, CPU) == NodePlacement(CPU)
    else:
        judgement = judge(prepared, compiled, execution, CPU)
        assert judgement.outcome is Outcome.NOT_PLACED
        assert judgement.placed_on is None
        assert judgement.error is not None
        assert judgement.error.message == "GatherElements is not in the graph that ran: folded or fused"


def test_a_provider_that_is_not_there_is_an_error_and_no_cpu_session() -> None:
    """onnxruntime itself only warns of an unknown provider and takes the CPU."""
    given = chosen("Round@22:sweep=empty;X=float16")
    found = judged(given, cpu()._replace(provider="CUDAExecutionProvider"))
    assert {(judgement.outcome, judgement.placed_on) for judgement, _ in found.values()} == {
        (Outcome.REJECTED, None)
    }
    assert {execution.stage for _, execution in found.values()} == {"load"}
    (message,) = {judgement.error.message for judgement, _ in found.values() if judgement.error is not None}
    assert message == "CUDAExecutionProvider is not in this onnxruntime"


def test_a_pass_on_another_provider_cannot_be_written_down() -> None:
    given = chosen("GatherND@13:case=documented_onnx_2")
    ((prepared,),) = (unit.cases for unit in given)
    ((_, execution),) = judged(given, cpu()).values()
    found = judge(prepared, given[0].graph, execution, "DmlExecutionProvider")
    assert (found.outcome, found.placed_on) == (Outcome.NOT_PLACED, CPU)


@pytest.mark.parametrize("newer", [{"ir_version": 99}, {"opset": 99}], ids=["ir", "opset"])
def test_a_release_that_does_not_know_the_version_was_not_asked(newer: dict[str, int]) -> None:
    """The release says so itself of a graph that nothing else can be wrong with; the same graph with known
    versions is a result."""
    (unit, *_) = chosen("Round@22:sweep=empty;X=float32[0]")
    model = ModelProto.FromString(unit.graph.model)
    model.ir_version = newer.get("ir_version", model.ir_version)
    model.opset_import[0].version = newer.get("opset", 22)
    given = [unit, GraphCases(unit.graph._replace(model=model.SerializeToString()), unit.cases)]
    pool = WorkerPool(cpu(), size=1, timeout=60)
    found = [(judge(p, graph, e, CPU), e) for p, graph, e in pool.run(iter(given))]
    known, unknown = found[: len(unit.cases)], found[len(unit.cases) :]
    assert {judgement.outcome for judgement, _ in known} == {Outcome.PASS}
    assert {judgement.outcome for judgement, _ in unknown} == {Outcome.NOT_RUN}
    assert {e.error.class_ for _, e in unknown if e.error} == {"UnknownVersionError"}


def test_what_cannot_be_passed_runs_nowhere_though_its_session_was_placed() -> None:
    (unit, *_) = chosen("Round@22:sweep=empty;X=float32[0]")
    for prepared, graph, execution in WorkerPool(cpu(), size=1, timeout=60).run(iter([unit])):
        assert placement(execution, graph, CPU) == NodePlacement(CPU)
        error = Error("CannotFeedError", "cannot bind element type bfloat16")
        found = judge(prepared, graph, execution._replace(outputs=None, error=error), CPU)
        assert (found.outcome, found.placed_on) == (Outcome.NOT_RUN, None)


def test_an_output_that_was_not_made_is_no_refusal() -> None:
    """The kernel of Attention takes a mode of -1 without an error, and leaves the fourth output unmade."""
    query = "Attention@24:sweep=unknown_stage;qk_matmul_output_mode=-1"
    (unit,) = by_graph(selected(query).cases(valid=False), 0)
    ((judgement, execution),) = judged([unit], cpu()).values()
    assert judgement.outcome is Outcome.ACCEPTED_INVALID
    assert execution.error is not None
    assert execution.error.class_ == "NoOutputError"
    (prepared,) = unit.cases
    valid = prepared._replace(case=msgspec.structs.replace(prepared.case, validity=Validity.VALID))
    assert judge(valid, unit.graph, execution, CPU).outcome is Outcome.REJECTED


def test_a_mistake_of_the_worker_is_no_answer_of_a_provider() -> None:
    with pytest.raises(AttributeError):
        worker.failure(0, "run", AttributeError("'NoneType' object has no attribute 'dtype'"), 0.0)


def test_who_refused_a_model_is_recorded() -> None:
    """A model of known versions that ONNX Runtime's core does not load never reached a provider; one that it loads was
    refused by the provider."""
    (unit, *_) = chosen("Round@22:sweep=empty;X=float32[0]")
    model = ModelProto.FromString(unit.graph.model)
    model.graph.node[0].op_type = "NoSuchOperator"
    core = GraphCases(unit.graph._replace(model=model.SerializeToString()), unit.cases)
    found = judged([core], cpu())
    assert {(j.outcome, j.error.by) for j, _ in found.values() if j.error} == {(Outcome.REJECTED, "core")}
    kernel = chosen("Round@22:sweep=rank;X=bfloat16")
    found = judged(kernel, cpu())
    assert {(j.outcome, j.error.by) for j, _ in found.values() if j.error} == {(Outcome.UNSUPPORTED, UNSET)}


def test_the_versions_of_a_model_are_kept_and_its_graph_is_not() -> None:
    (unit, *_) = chosen("Round@22:sweep=empty;X=float32[0]")
    bare = ModelProto.FromString(with_identity(unit.graph.model))
    model = ModelProto.FromString(unit.graph.model)
    assert (bare.ir_version, bare.opset_import) == (model.ir_version, model.opset_import)
    assert [node.op_type for node in bare.graph.node] == ["Identity"]
    onnx_checker.check_model(bare)


def test_a_run_that_fails_still_tells_where_its_node_is() -> None:
    """A profile lacks the node that failed: the session runs once more with zeros, which are legal
    indices."""
    query = "GatherElements@13:sweep=index_out_of_range;data=string[5];indices=int32[5];axis=0;values=above"
    given = list(by_graph(selected(query).cases(valid=False), 0))
    found = judged(given, older())
    assert {execution.nodes for _, execution in found.values()} == {((CPU, "GatherElements"),)}
    assert {judgement.outcome for judgement, _ in found.values()} == {Outcome.REJECTED}
    for unit in given:
        for prepared in unit.cases:
            execution = found[prepared.case.id][1]
            assert (
                judge(prepared, unit.graph, execution, "DmlExecutionProvider").outcome is Outcome.NOT_PLACED
            )


def on(provider: str, *operators: str) -> tuple[tuple[str, str], ...]:
    return tuple((provider, operator) for operator in operators)


MISH = ("Softplus", "Tanh", "Mul")
FOLDED = "Mish is not in the graph that ran: folded or fused"


@pytest.mark.parametrize(
    ("tested", "nodes", "optimization", "wanted"),
    [
        pytest.param(("Mish",), on(CPU, *MISH), "off", NodePlacement(CPU, None, 3), id="its body"),
        pytest.param(
            ("Mish",),
            on(CPU, "Identity", *MISH, "Identity"),
            "off",
            NodePlacement(CPU, None, 3),
            id="neighbours",
        ),
        pytest.param(
            ("Mish",),
            on(CPU, "Identity", "Identity", "Identity", "Mul"),
            "off",
            NodePlacement(CPU, None, 2),
            id="an Identity of its body",
        ),
        pytest.param(
            ("Mish",), on(CPU, "FusedMul"), "all", NodePlacement(CPU, None, 1), id="an optimised body"
        ),
        pytest.param(("Mish",), on(CPU, "Identity", "Mish"), "off", NodePlacement(CPU), id="a kernel"),
        pytest.param(
            ("Mish",), on(CPU, "Identity", "Identity"), "off", NodePlacement(None, FOLDED), id="folded"
        ),
        pytest.param(("Mish",), (), "all", NodePlacement(None, FOLDED), id="nothing is left"),
        pytest.param(
            ("Round",),
            on(CPU, "Floor", "Add"),
            "off",
            NodePlacement(None, "Round is not in the graph that ran: folded or fused"),
            id="no function",
        ),
        pytest.param(
            ("Mish",),
            (*on(CPU, "Softplus"), *on(DML, "Tanh", "Mul")),
            "off",
            NodePlacement(CPU, "Softplus of the function Mish ran on CPUExecutionProvider"),
            id="in part elsewhere",
        ),
        pytest.param(
            ("Floor", "Mish"),
            on(CPU, "Floor", *MISH),
            "off",
            NodePlacement(CPU, None, 3),
            id="beside another",
        ),
        pytest.param(
            ("Mish", "Tanh"),
            on(CPU, "Tanh", *MISH),
            "off",
            NodePlacement(CPU, None, 3),
            id="beside one that its body holds",
        ),
        pytest.param(
            ("Floor", "Mish"),
            on(CPU, "Floor"),
            "all",
            NodePlacement(None, FOLDED),
            id="folded beside another",
        ),
        pytest.param(
            ("Floor", "Mish"),
            on(CPU, *MISH),
            "all",
            NodePlacement(None, "Floor is not in the graph that ran: folded or fused"),
            id="another is folded",
        ),
        pytest.param(
            ("Floor", "Floor", "Mish"),
            on(CPU, "Floor", *MISH),
            "off",
            NodePlacement(None, "only 1 of 2 Floor are in the graph that ran"),
            id="another is folded in part",
        ),
    ],
)
def test_a_function_ran_if_all_nodes_of_its_body_did(
    tested: tuple[str, ...], nodes: tuple[tuple[str, str], ...], optimization: str, wanted: NodePlacement
) -> None:
    graph = Graph(
        b"", "", (), (), (), tested, optimization, untested=("Identity", "Identity"), functions=("Mish",)
    )
    provider = DML if wanted.provider == CPU and any(where == DML for where, _ in nodes) else CPU
    assert placement(Execution((), None, "compare", nodes, 0.0), graph, provider) == wanted


def test_a_fused_node_is_proof_for_a_function_whose_other_nodes_are_there_too() -> None:
    """The releases of DirectML that cannot be told to keep nodes apart fuse the nodes of a body as well."""
    graph = Graph(b"", "", (), (), (), ("Mish",), functions=("Mish",))
    fused = on(DML, "DmlFusedNode_0")
    found = Execution((), None, "compare", fused, 0.0, fuses=True)
    assert placement(found, graph, DML) == NodePlacement(DML)
    found = found._replace(nodes=(*fused, *on(CPU, "Tanh")))
    assert placement(found, graph, DML) == NodePlacement(
        CPU, "Tanh of the function Mish ran on CPUExecutionProvider"
    )


@pytest.mark.parametrize("start", [cpu, older], ids=["assignment", "profile"])
def test_functions_are_judged(start: object) -> None:
    """The CPU provider has no kernel for Mish and GroupNormalization: what ONNX Runtime expands is held against
    the formula."""
    given = chosen(
        "Mish@18:case=documented_onnx_backend",
        "GroupNormalization@21:case=by_hand",
        "GroupNormalization@21:sweep=far_from_zero;X=float32",
    )
    graphs = {prepared.case.id: unit.graph for unit in given for prepared in unit.cases}
    found = judged(given, start())
    wrong = {case for case, (judgement, _) in found.items() if judgement.outcome is not Outcome.PASS}
    assert wrong == {case for case in found if "values=far" in case}
    assert wrong
    assert {
        (
            graphs[case].functions,
            judgement.outcome is Outcome.PASS,
            judgement.placed_on,
            judgement.function_nodes,
        )
        for case, (judgement, _) in found.items()
    } == {
        (("Mish",), True, CPU, 3),
        (("GroupNormalization",), True, CPU, 29),
        (("GroupNormalization",), False, CPU, 29),
    }
    assert {graphs[case].untested for case in found if "neighbours=true" in case} == {
        ("Identity", "Identity")
    }


def test_a_function_with_a_node_elsewhere_is_not_judged() -> None:
    (unit, *_) = chosen("Mish@18:case=documented_onnx_backend")
    ((_, execution),) = judged([GraphCases(unit.graph, unit.cases[:1])], cpu()).values()
    assert execution.nodes is not None
    moved = execution._replace(nodes=(*execution.nodes[:-1], (DML, "Mul")))
    found = judge(unit.cases[0], unit.graph, moved, CPU)
    assert (found.outcome, found.placed_on, found.function_nodes) == (Outcome.NOT_PLACED, DML, None)
    assert found.error == Error("NotPlaced", "Mul of the function Mish ran on DmlExecutionProvider")


@pytest.mark.parametrize("start", [cpu, older], ids=["assignment", "profile"])
@pytest.mark.parametrize("optimization", ["off", "all"])
def test_a_function_that_is_folded_proves_nothing(optimization: str, start: object) -> None:
    """Its input is an initializer: an optimised session computes it while it loads, and the other node is none
    of its body."""
    x = np.array([-1, 0, 2, 3, -4], np.float32)
    nodes = [helper.make_node("Relu", ["X"], ["Y"]), helper.make_node("Add", ["Y", "zeros"], ["Z"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [5]) for name in ("zeros", "Z")]
    held = TensorProto(name="X", data_type=TensorProto.FLOAT, dims=x.shape, raw_data=x.tobytes())
    graph = helper.make_graph(nodes, "folded", values[:1], values[1:], [held])
    model: ModelProto = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)])
    (unit, *_) = chosen("Relu@14:case=documented")
    assert unit.graph.functions == ("Relu",)
    compiled = unit.graph._replace(
        model=model.SerializeToString(),
        inputs=(("zeros", 1),),
        outputs=(("Z", 1),),
        optimization=optimization,
        untested=("Add",),
    )
    pool = WorkerPool(start(), size=1, timeout=60)
    ((_, _, execution),) = pool.run(iter([GraphCases(compiled, unit.cases[:1])]))
    assert execution.outputs is not None
    assert placement(execution, compiled, CPU) == (
        NodePlacement(CPU) if optimization == "off" else NodePlacement(None, FOLDED.replace("Mish", "Relu"))
    )


def test_no_body_holds_its_own_operator() -> None:
    """A node of the operator is then the operator itself, whatever else ran."""
    bodies = {}
    for name, versions in operator_versions().items():
        for version in versions if signature(name) is None else ():
            schema = defs.get_schema(name, version, "")
            if schema.has_function:
                bodies[name, version] = schema.function_body
    for name in ("CastLike", "Clip", "Gelu", "GroupNormalization", "LogSoftmax", "Softmax", "Attention"):
        unit = next(by_graph(selected(name).cases(valid=True), 0))
        schema = defs.get_schema(name, unit.cases[0].case.opset, "")
        model = ModelProto.FromString(unit.graph.model)
        node = next(each for each in model.graph.node if each.name == "tested")
        types = [model.graph.input[0].type.SerializeToString() if each else b"" for each in node.input]
        if not schema.has_context_dependent_function:
            continue
        bodies[name, schema.since_version] = FunctionProto.FromString(
            schema.get_context_dependent_function(node.SerializeToString(), types)
        )
    for (name, _), body in bodies.items():
        assert body.node
        assert name not in {node.op_type for node in body.node}
    assert len(bodies) > 40


@pytest.mark.parametrize(
    ("query", "functions", "untested"),
    [
        ("LeakyRelu@7:sweep=dtype_rank;X=float16", (), ()),
        ("LeakyRelu@16:sweep=dtype_rank;X=float16", ("LeakyRelu",), ()),
        ("Round@22:sweep=sandwich", (), ("Identity", "Identity")),
        ("SequenceInsert", (), ("Constant",)),
        ("Gelu@20", ("Gelu",), ()),
    ],
)
def test_a_graph_says_which_of_its_operators_are_functions(
    query: str, functions: tuple[str, ...], untested: tuple[str, ...]
) -> None:
    found = {(each.graph.functions, tuple(sorted(set(each.graph.untested)))) for each in chosen(query)}
    assert {each for each, _ in found} == {functions}
    assert tuple(sorted(set(untested))) in {each for _, each in found}


@pytest.mark.parametrize("start", [cpu, older], ids=["assignment", "profile"])
def test_right_outputs_of_a_shape_that_the_session_does_not_declare_are_wrong(
    start: Callable[[], Launch],
) -> None:
    (unit, *_) = chosen("Round@22:case=documented_unchanged")
    model = ModelProto.FromString(unit.graph.model)
    ((prepared, _, right), *_) = WorkerPool(start(), size=1, timeout=60).run(iter([unit]))
    assert right.declared is None
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 5
    given = GraphCases(unit.graph._replace(model=model.SerializeToString()), unit.cases)
    ((_, graph, wrong), *_) = WorkerPool(start(), size=1, timeout=60).run(iter([given]))
    assert wrong.declared == (0, (5,))
    assert wrong.digest != right.digest
    assert judge(prepared, unit.graph, right, CPU).outcome is Outcome.PASS
    found = judge(prepared, graph, wrong, CPU)
    assert (found.outcome, found.error, found.diff) == (
        Outcome.MISMATCH,
        Error("DeclaredShape", "the session declares Y of shape [5]"),
        Diff(None, 7, 7, None, "float32[7]", "float32[5] declared"),
    )
    known = {
        "match": "Round",
        "expect": "mismatch",
        "reason": "as declared",
        "link": "https://github.com/onnx/onnx",
    }
    allowed = {
        text: Given(prepared, wrong.outputs, found, CPU).allows(Entry.model_validate({**known, **stated}))
        for text, stated in {
            "the shape": {"message": "declares Y of shape [5]"},
            "another": {"message": "declares Y of shape [6]"},
            "values": {"difference": {"kind": "value"}},
        }.items()
    }
    assert allowed == {"the shape": True, "another": False, "values": False}
    changed = tuple(Tensor(each.dtype, each.array + 1) for each in wrong.outputs or ())
    other = judge(prepared, graph, wrong._replace(outputs=changed), CPU)
    assert other.error is None
    shape = Entry.model_validate({**known, "message": "declares Y of shape [5]"})
    assert not Given(prepared, changed, other, CPU).allows(shape)
