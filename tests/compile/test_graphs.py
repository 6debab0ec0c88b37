"""Compiled graphs: their bytes, versions and dimensions, onnx's checker, and the three rounding modes on the
real CPU provider."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper

from harness.compile import graphs
from harness.compile.graph_files import check_manifest, manifest_text, verify_existing, write_graphs
from harness.compile.graphs import PRODUCER, compile_case
from harness.compile.prepare import by_graph
from harness.model.case import (
    Case,
    Options,
    TensorSpec,
    Validity,
)
from harness.model.dtypes import DTYPES
from harness.model.errors import UsageError
from harness.model.onnx_schemas import IR_VERSIONS
from harness.model.query import parse_all
from harness.operators import OPERATORS
from harness.operators.binary_floats import halfway_values, special_patterns
from harness.specs.expand import expand
from harness.specs.reading.load import default_folder, load_specs
from harness.targets.execution import Graph
from tests import calling
from tests.operators.brute import round_bits
from tests.plans import PARTS, plan_in_parts, selected
from tests.prepared import compiled, prepared_case
from tests.running import ROUND


@cache
def cases(*queries: str) -> tuple[Case, ...]:
    return tuple(selected(*queries).cases(valid=True))


def model_of(graph: Graph) -> ModelProto:
    return ModelProto.FromString(graph.model)


def gather(
    shape: tuple[int, ...] = (3, 4), dtype: str = "float32", opset: int = 13, axis: int = 0, **options: object
) -> Case:
    specs = (TensorSpec("data", dtype, shape), TensorSpec("indices", "int64", shape, "in_range"))
    return Case(
        f"GatherElements@{opset}:{shape}", "GatherElements", opset, {"axis": axis}, specs, Options(**options)
    )


def dimensions(values: Iterable[onnx.ValueInfoProto]) -> list[list[object]]:
    return [[d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim] for value in values]


class TestBytes:
    def test_the_same_case_gives_the_same_bytes(self) -> None:
        for case in cases("GatherElements@13:sweep=initializer", "Round@22:sweep=variants_rank;X=float16"):
            first = compiled(case)
            graphs._shared.cache_clear()
            graphs._model.cache_clear()
            again = compiled(case)
            assert (first.model, first.digest) == (again.model, again.digest)

    def test_cases_of_other_shapes_and_values_share_one_graph(self) -> None:
        assert compiled(gather((3, 4))) is compiled(gather((7, 1)))
        assert compiled(gather((3, 4))).digest != compiled(gather((3, 4, 5))).digest

    @pytest.mark.parametrize(
        "change", [{"dtype": "int8"}, {"opset": 11}, {"axis": 1}, {"neighbours": True}, {"shapes": "static"}]
    )
    def test_what_makes_another_graph(self, change: dict[str, object]) -> None:
        assert compiled(gather()).digest != compiled(gather(**change)).digest

    def test_run_options_change_how_the_graph_is_run_and_not_the_graph(self) -> None:
        plain, optimized = compiled(gather()), compiled(gather(optimization="all"))
        assert plain.digest == optimized.digest
        assert (plain.optimization, optimized.optimization) == ("off", "all")


class TestModel:
    @pytest.mark.parametrize("opset", [11, 13])
    def test_versions_are_pinned(self, opset: int) -> None:
        model = model_of(compiled(gather(opset=opset)))
        assert (model.ir_version, [(entry.domain, entry.version) for entry in model.opset_import]) == (
            IR_VERSIONS[opset],
            [("", opset)],
        )
        assert (model.producer_name, model.producer_version) == (PRODUCER, "")

    def test_ir_versions_are_those_of_onnx(self) -> None:
        for version, ir, opset, *_ in onnx.helper.VERSION_TABLE:
            if opset in IR_VERSIONS:
                assert IR_VERSIONS[opset] == max(ir, 4), version  # 4: initializers are constants

    def test_symbolic_dimensions_have_names_of_their_own(self) -> None:
        graph = model_of(compiled(gather((3, 4)))).graph
        assert dimensions(graph.input) == [["data_0", "data_1"], ["indices_0", "indices_1"]]
        assert dimensions(graph.output) == [["output_0", "output_1"]]

    def test_static_dimensions(self) -> None:
        graph = model_of(compiled(gather((3, 4), shapes="static"))).graph
        assert dimensions(graph.input) == [[3, 4], [3, 4]]

    @pytest.mark.parametrize("shape", [(1, 1), (127, 3), (128, 3), (3, 300), (0, 200), (70000, 2)])
    def test_static_dimensions_of_any_size_are_as_the_library_writes_them(
        self, shape: tuple[int, int]
    ) -> None:
        """Graphs with small extents are made from a template's bytes."""
        model = model_of(compiled(gather((5, 5), shapes="static")))
        for value in model.graph.input:
            for dimension, extent in zip(value.type.tensor_type.shape.dim, shape, strict=True):
                dimension.dim_value = extent
        graph = compiled(gather(shape, shapes="static"))
        assert graph.model == model.SerializeToString(deterministic=True)
        assert graph.digest == sha256(graph.model).hexdigest()

    def test_static_shapes_leave_the_shared_model_alone(self) -> None:
        symbolic = compiled(gather((2, 5))).digest
        compiled(gather((2, 5), shapes="static"))
        graphs._shared.cache_clear()
        assert compiled(gather((2, 5))).digest == symbolic

    def test_static_empty_dimension_is_a_zero_and_no_unknown(self) -> None:
        graph = model_of(compiled(gather((0, 3), shapes="static"))).graph
        assert [d.WhichOneof("value") for d in graph.input[0].type.tensor_type.shape.dim] == [
            "dim_value",
            "dim_value",
        ]
        assert dimensions(graph.input) == [[0, 3], [0, 3]]

    @pytest.mark.parametrize("name", ["data", "indices"])
    def test_static_shapes_with_an_initializer(self, name: str) -> None:
        static = model_of(compiled(gather((3, 4), shapes="static", initializer=name))).graph
        assert dimensions(static.input) == [[3, 4]]
        symbolic = model_of(compiled(gather((3, 4), initializer=name))).graph
        other = {"data": "indices", "indices": "data"}[name]
        assert dimensions(symbolic.input) == [[f"{other}_0", f"{other}_1"]]

    @pytest.mark.parametrize(("name", "fed"), [("data", 1), ("indices", 0)])
    @pytest.mark.parametrize("dtype", ["float32", "bool", "int8", "bfloat16", "string", "complex64"])
    def test_initializer(self, name: str, fed: int, dtype: str) -> None:
        case = gather((3, 4), dtype, initializer=name)
        _, call, inputs, *_ = prepared_case(case)
        graph = compile_case(case, call, inputs)
        model = model_of(graph)
        assert [value.name for value in model.graph.input] == [("data", "indices")[fed]]
        assert (graph.fed, [entry[0] for entry in graph.inputs]) == ((fed,), [("data", "indices")[fed]])
        (constant,) = model.graph.initializer
        assert (constant.name, tuple(constant.dims)) == (name, (3, 4))
        held = numpy_helper.to_array(constant)
        wanted = inputs[1 - fed]
        if wanted.dtype == "string":
            assert [
                text.decode() if isinstance(text, bytes) else text for text in held.reshape(-1)
            ] == wanted.array.reshape(-1).tolist()
        else:
            assert held.tobytes() == wanted.array.tobytes()

    def test_neighbours(self) -> None:
        graph = model_of(compiled(gather(neighbours=True))).graph
        assert [(node.op_type, list(node.input), list(node.output)) for node in graph.node] == [
            ("Identity", ["data"], ["data_before"]),
            ("GatherElements", ["data_before", "indices"], ["output_after"]),
            ("Identity", ["output_after"], ["output"]),
        ]
        assert compiled(gather(neighbours=True)).tested == ("GatherElements",)

    @pytest.mark.parametrize("variant", OPERATORS["Round"].variants)
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_variants_are_composed_of_other_operators(self, variant: str, dtype: str) -> None:
        case = Case("Round@22:x", "Round", 22, {}, (TensorSpec("X", dtype, (3,)),), Options(variant=variant))
        graph = compiled(case)
        used = {node.op_type for node in model_of(graph).graph.node}
        assert "Round" not in used
        nodes = [node.op_type for node in model_of(graph).graph.node]
        assert graph.tested == tuple(sorted(each for each in nodes if each not in ("Constant", "Identity")))
        assert "Floor" in used

    def test_axis_is_written_as_given(self) -> None:
        (node,) = model_of(compiled(gather(axis=-2))).graph.node
        assert [(a.name, a.i) for a in node.attribute] == [("axis", -2)]

    def test_attributes_that_are_not_given_are_not_written(self) -> None:
        case = Case(
            "GatherND@13:x",
            "GatherND",
            13,
            {},
            (TensorSpec("data", "float32", (3,)), TensorSpec("indices", "int64", (2, 1), "first")),
        )
        (node,) = model_of(compiled(case)).graph.node
        assert not node.attribute


def test_undeclared_shapes_leave_an_element_type_alone() -> None:
    graph = model_of(compiled(gather((3, 4), shapes="undeclared"))).graph
    for value in (*graph.input, *graph.output):
        assert value.type.tensor_type.elem_type
        assert not value.type.tensor_type.HasField("shape")
    other = compiled(gather((5, 2), shapes="undeclared"))
    assert other.digest == compiled(gather((3, 4), shapes="undeclared")).digest


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.slow
def test_onnx_checker_accepts_every_valid_graph(part: str) -> None:
    """Once a graph; only of valid cases, since the checker is native code that may crash on bad attributes.

    It refuses operators that their opset deprecates (GroupNormalization 18), which runtimes may still have.
    """
    seen: set[str] = set()
    for case in plan_in_parts(part).cases(valid=True):
        assert case.validity is Validity.VALID
        key = f"{case.operator}{case.opset}{case.attributes}{[(s.dtype, len(s.shape)) for s in case.inputs]}{case.options}"
        own = onnx.defs.has(case.operator)  # of others ONNX's checker knows nothing
        deprecated = not own or onnx.defs.get_schema(case.operator, case.opset).deprecated
        if key in seen or deprecated or "sweep=large" in case.id or case.directml is not None:
            continue
        if case.options.shapes == "undeclared":  # ONNX asks a main graph for ranks, ONNX Runtime does not
            continue
        seen.add(key)
        onnx.checker.check_model(model_of(compiled(case)), full_check=False)
    assert len(seen) > {PARTS[0]: 500, "the rest": 1000}[part]


class TestRounding:
    """Bit for bit on the provider itself, against integer arithmetic."""

    def outputs(self, dtype: str, x: np.ndarray, variant: str | None) -> np.ndarray:
        case = Case(
            "Round@22:x", "Round", 22, {}, (TensorSpec("X", dtype, x.shape),), Options(variant=variant)
        )
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            compiled(case).model, options, providers=["CPUExecutionProvider"]
        )
        return np.asarray(session.run(["Y"], {"X": x})[0])

    def check(self, dtype: str, x: np.ndarray, variant: str | None) -> None:
        width, mantissa = DTYPES[dtype].itemsize * 8, DTYPES[dtype].mantissa
        assert mantissa is not None
        found = self.outputs(dtype, x, variant)
        infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
        for given, y in zip(
            x.view(f"u{width // 8}").tolist(), found.view(f"u{width // 8}").tolist(), strict=True
        ):
            wanted = round_bits(given, width, mantissa, variant)
            if wanted is None:
                assert y & ~(1 << (width - 1)) > infinity, hex(given)
            else:
                assert y == wanted, f"{given:#x}: {y:#x} instead of {wanted:#x}"

    @pytest.mark.parametrize("variant", [None, *OPERATORS["Round"].variants])
    def test_all_patterns_of_float16(self, variant: str | None) -> None:
        self.check("float16", np.arange(1 << 16, dtype=np.uint16).view(np.float16), variant)

    @pytest.mark.parametrize("variant", [None, *OPERATORS["Round"].variants])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_special_and_random_values(self, dtype: str, variant: str | None) -> None:
        call = calling.call_of("Round", calling.shaped((3000,), dtypes=(dtype,)))
        drawn = [
            calling.generated(OPERATORS["Round"], kind, "X", call, np.random.default_rng(7).bytes(24000))
            for kind in ("random", "ordinary", "subnormal")
        ]
        self.check(dtype, np.concatenate([special_patterns(dtype), halfway_values(dtype), *drawn]), variant)


class TestGeneratedModels:
    QUERY = "Round@22:sweep=empty"

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        write_graphs((ROUND,), parse_all([self.QUERY]), tmp_path / "graphs")
        return tmp_path / "graphs"

    def test_files_are_named_by_their_hash(self, folder: Path) -> None:
        wanted = {graph.digest: graph.model for graph, _ in by_graph(cases(self.QUERY), 0)}
        assert {path.stem: path.read_bytes() for path in folder.glob("*/*.onnx")} == wanted
        verify_existing(folder)

    def test_a_selection_writes_no_manifest(self, folder: Path) -> None:
        assert not (folder / "manifest.txt").exists()

    def test_only_what_is_missing_or_edited_is_written(self, folder: Path) -> None:
        number = len(list(folder.glob("*/*.onnx")))
        assert (
            write_graphs((ROUND,), parse_all([self.QUERY]), folder) == f"{folder}: {number} graphs, 0 written"
        )
        first, second, *_ = sorted(folder.glob("*/*.onnx"))
        original = first.read_bytes()
        first.write_bytes(b"edited")
        second.unlink()
        assert (
            write_graphs((ROUND,), parse_all([self.QUERY]), folder) == f"{folder}: {number} graphs, 2 written"
        )
        assert first.read_bytes() == original
        verify_existing(folder)

    def test_an_edited_file_is_named(self, folder: Path) -> None:
        path = sorted(folder.glob("*/*.onnx"))[0]
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(
            UsageError, match=rf"{path.name}: was edited: its content has the hash [0-9a-f]{{12}}…; delete it"
        ):
            verify_existing(folder, ["Abs", "Round"])
        verify_existing(folder, ["Abs"])

    def test_a_file_that_cannot_be_read_is_named(self, folder: Path) -> None:
        (folder / "Round" / f"{'0' * 64}.onnx").mkdir()
        with pytest.raises(UsageError, match=rf"{'0' * 64}.onnx: cannot be read: Is a directory"):
            verify_existing(folder)

    def test_a_link_to_nothing_is_named(self, folder: Path) -> None:
        verify_existing(folder)
        (folder / "Round" / f"{'0' * 64}.onnx").symlink_to(folder / "nowhere")
        with pytest.raises(UsageError, match=rf"{'0' * 64}.onnx: cannot be read: No such file"):
            verify_existing(folder)

    def test_no_folder_is_nothing_to_verify(self, tmp_path: Path) -> None:
        verify_existing(tmp_path / "nowhere")

    def test_the_manifest(self, tmp_path: Path) -> None:
        """One line for an operator at an opset: its graphs, its cases, and a hash over both that a selection
        of them changes."""
        models: dict[str, bytes] = {}
        text = manifest_text((ROUND,), parse_all([self.QUERY]), models)
        (line,) = text.splitlines()
        name, graphs, _, number, _, digest = line.split()
        assert (name, int(graphs), int(number), len(digest)) == (
            "Round@22",
            len(models),
            len(cases(self.QUERY)),
            64,
        )
        assert digest not in manifest_text((ROUND,), parse_all([f"{self.QUERY};X=float16"]))

    @pytest.mark.slow
    def test_a_stale_manifest(self, tmp_path: Path) -> None:
        (tmp_path / "manifest.txt").write_text(manifest_text((ROUND,)), encoding="utf-8")
        assert check_manifest((ROUND,), tmp_path) is None
        first, second = manifest_text((ROUND,)).splitlines(keepends=True)
        changed = second.replace(second.split()[-1], "0" * 64)
        (tmp_path / "manifest.txt").write_text(
            first + changed + "Ceil@7 1 graphs 1 cases 0\n", encoding="utf-8"
        )
        stale = check_manifest((ROUND,), tmp_path)
        assert (
            stale
            == f"{tmp_path}/manifest.txt: stale: the graphs of Ceil@7, Round@22 are others than it says; run: harness compile"
        )

    def test_no_manifest(self, tmp_path: Path) -> None:
        with pytest.raises(
            UsageError, match=r"manifest.txt: cannot be read: No such file or directory; run: harness compile"
        ):
            check_manifest((ROUND,), tmp_path)

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(UsageError, match=r"file/graphs: cannot be written: Not a directory"):
            write_graphs((ROUND,), parse_all([self.QUERY]), tmp_path / "file" / "graphs")


@pytest.mark.parametrize(("spec", "name"), [("LeakyRelu", "alpha"), ("graphs/WhereConstant", "constant")])
def test_a_zero_of_the_other_sign_is_in_a_graph_of_its_own(spec: str, name: str) -> None:
    """0.0 and -0.0 are equal, and graphs that were made are looked for by what they are made of."""
    plan = expand(load_specs([default_folder() / f"{spec}.yaml"]))
    case = next(case for case in plan.cases(valid=True) if name in case.attributes)
    zeros = [
        msgspec.structs.replace(case, attributes={**case.attributes, name: zero}) for zero in (0.0, -0.0)
    ]
    one, other, again = (compiled(each).model for each in (*zeros, zeros[0]))
    assert one == again != other
