"""The frame protocol: any cut of the worker's stream gives the same answers, and anything else is garbled."""

from __future__ import annotations

import json
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from harness.compile.protos import tensor_of, tensor_proto
from harness.model.case import Case, Tensor, TensorSpec
from harness.model.dtypes import DTYPES
from harness.specs.sweeps.calls import call_of
from harness.targets.batches import FAKE, encode_batch
from harness.targets.execution import Execution, Graph, GraphCases, KeptCase, Optimized, Prepared
from harness.targets.frames import FrameReader, GarbledError, tensor_bytes
from harness.targets.launching import Launch
from harness.worker import worker
from tests.operators.brute import elements
from tests.prepared import OPERATOR_DTYPES, prepare

worker.np = np  # a worker imports it after it has limited its memory


def unit_of(*dtypes_and_shapes: tuple[str, tuple[int, ...]]) -> GraphCases:
    """Return a unit of Round-like cases, one a tensor; the graph is not looked at."""
    cases = []
    for number, (dtype, shape) in enumerate(dtypes_and_shapes):
        inputs = (Tensor(dtype, elements(np.random.default_rng(number), dtype, shape)),)
        case = Case(f"Round@22:case=n{number}", "Round", 22, {}, (TensorSpec("X", dtype, shape),))
        cases.append(Prepared(case, call_of(case), inputs))
    first = dtypes_and_shapes[0][0]
    return GraphCases(
        Graph(b"model", "d", (0,), (("X", DTYPES[first].onnx),), (("Y", DTYPES[first].onnx),), ("Round",)),
        cases,
    )


def frame(kind: str, body: bytes) -> bytes:
    return struct.pack("<BI", ord(kind), len(body)) + body


def result(number: int, tensor: Tensor, seconds: float = 0.5) -> bytes:
    return results(number, [tensor], seconds)


def results(number: int, tensors: list[Tensor], seconds: float = 0.5) -> bytes:
    """Return the frame of a case with several outputs."""
    parts = [struct.pack("<IdI", number, seconds, len(tensors))]
    for dtype, array in tensors:
        body = worker.encode_elements(array)
        parts.append(
            struct.pack("<BBI", DTYPES[dtype].onnx, array.ndim, len(body))
            + struct.pack(f"<{array.ndim}q", *array.shape)
            + body
        )
    return frame("R", b"".join(parts))


def one_output(element: int, body: bytes, *shape: int, size: int | None = None) -> bytes:
    """Return the frame of a case with one output, whose parts may contradict each other."""
    head = struct.pack("<IdI", 0, 0.0, 1) + struct.pack(
        "<BBI", element, len(shape), len(body) if size is None else size
    )
    return frame("R", head + struct.pack(f"<{len(shape)}q", *shape) + body)


ANNOUNCED = frame("A", b"")


def failure(number: int, count: int = 1, **changes: object) -> bytes:
    body = {
        "case": number,
        "stage": "run",
        "class": "Fail",
        "message": "no",
        "seconds": 0.1,
        "count": count,
        **changes,
    }
    return frame("E", json.dumps(body).encode())


PLACED = frame("P", b'{"unit":0,"nodes":[["FakeExecutionProvider","Round"]]}')
UNIT = unit_of(
    ("float32", (2, 3)),
    ("string", (4,)),
    ("bfloat16", ()),
    ("complex128", (0, 2)),
    ("bool", (3,)),
    ("int64", (1, 1)),
)
OUTPUTS = [prepared.inputs[0] for prepared in UNIT.cases]
STREAM = b"".join(
    [
        frame("H", b'{"protocol":2}'),
        ANNOUNCED + PLACED,
        *(result(n, OUTPUTS[n]) + ANNOUNCED for n in range(5)),
        failure(5),
        frame("D", b""),
    ]
)


def read(chunks: list[bytes]) -> tuple[list[str], list[Execution]]:
    """Feed a stream in pieces; return the kinds of the frames, and the executions."""
    reader = FrameReader()
    cases = [(prepared, UNIT) for prepared in UNIT.cases]
    kinds: list[str] = []
    found: list[Execution] = []
    for chunk in chunks:
        for kind, body in reader.feed(chunk):
            kinds.append(kind)
            if kind in "PRE":
                found.extend(reader.answers(kind, body, cases, len(found)))
    return kinds, found


def assert_the_answers(kinds: list[str], found: list[Execution]) -> None:
    assert "".join(kinds) == "HAP" + 5 * "RA" + "ED"
    for execution, wanted in zip(found[:5], OUTPUTS[:5], strict=True):
        assert execution.outputs is not None
        (output,) = execution.outputs
        assert output.dtype == wanted.dtype
        assert output.array.shape == wanted.array.shape
        assert output.array.tolist() == wanted.array.tolist() or wanted.dtype not in (
            "string",
            "bool",
            "int64",
        )
        assert tensor_bytes(output) == tensor_bytes(wanted)
        assert (execution.stage, execution.seconds, execution.error, execution.ended) == (
            "compare",
            0.5,
            None,
            None,
        )
    last = found[5]
    assert last.outputs is None
    assert last.error is not None
    assert (last.error.class_, last.error.message, last.stage) == ("Fail", "no", "run")
    assert {execution.nodes for execution in found} == {(("FakeExecutionProvider", "Round"),)}


def test_whole() -> None:
    assert_the_answers(*read([STREAM]))


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
def test_split_at_every_byte(at: int) -> None:
    assert_the_answers(*read([STREAM[:at], STREAM[at:]]))


def test_byte_by_byte() -> None:
    assert_the_answers(*read([bytes([byte]) for byte in STREAM]))


@settings(max_examples=200)
@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_split_anywhere(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert_the_answers(*read([STREAM[a:b] for a, b in pairwise(edges)]))


@given(st.binary(min_size=1, max_size=64))
def test_garbage_is_garbled_or_waits_for_more_but_is_never_an_answer(data: bytes) -> None:
    try:
        kinds, found = read([STREAM[: STREAM.index(PLACED)], data])
    except GarbledError:
        return
    assert not found
    assert set(kinds) <= {*"HAPD"}


@pytest.mark.parametrize(
    ("frames", "complaint"),
    [
        (b"not a frame", "byte 0x6e where a frame should begin"),
        (b"\x00" * 8, "byte 0x00 where a frame should begin"),
        (struct.pack("<BI", ord("R"), 2**31 + 1), "byte 0x52 where a frame should begin"),
        (result(1, OUTPUTS[1]), "an answer out of order"),
        (failure(3), "an answer out of order"),
        (failure(0, count=7), "an answer out of order"),
        (failure(0, count=0), "an answer out of order"),
        (failure(0, stage="later"), "Invalid enum value 'later'"),
        (frame("E", b"{}"), "missing required field"),
        (frame("E", b"\xff\xfe"), ""),
        (frame("P", b'{"unit":0,"nodes":[["a"]]}'), "Expected `array` of length 2"),
        (frame("R", b"\x00"), "unpack_from requires a buffer"),
        (one_output(99, b""), "99"),
        (one_output(1, b"\x00" * 8, 3), "cannot reshape array of size 2"),
        (one_output(1, b"\x00" * 7, 1), "buffer size must be a multiple"),
        (one_output(8, b"\x09\x00\x00", 1), "unpack_from requires a buffer"),
        (one_output(8, b"\x09\x00\x00\x00\x09\x00\x00\x00ab", 1), "a string is cut off"),
        (one_output(1, b"\x00" * 8, -1), "a negative dimension"),
        (one_output(1, b"\x00" * 4, 1, size=8), "an output is cut off"),
        (one_output(1, b"\x00" * 8, 1, size=4), "bytes behind the last output"),
        (
            frame("R", struct.pack("<IdI", 0, 0.0, 2) + one_output(1, b"\x00" * 4, 1)[21:]),
            "unpack_from requires a buffer",
        ),
    ],
)
def test_malformed(frames: bytes, complaint: str) -> None:
    with pytest.raises(GarbledError) as caught:
        read([frames])
    assert complaint in str(caught.value)


def test_one_failure_for_all_cases_of_a_unit() -> None:
    kinds, found = read([ANNOUNCED, failure(0, count=6, stage="load")])
    assert kinds == ["A", "E"]
    assert [(e.stage, e.nodes, e.error and e.error.class_) for e in found] == [("load", None, "Fail")] * 6


def test_placement_belongs_to_one_unit() -> None:
    """The placement that the worker told of one graph is no proof for the next one."""
    second = GraphCases(UNIT.graph, UNIT.cases[1:])
    cases = [(UNIT.cases[0], UNIT), *((prepared, second) for prepared in second.cases)]
    reader = FrameReader()
    found: list[Execution] = []
    for kind, body in reader.feed(PLACED + result(0, OUTPUTS[0]) + result(1, OUTPUTS[1])):
        found.extend(reader.answers(kind, body, cases, len(found)))
        if len(found) == 1:
            assert reader.nodes_of(UNIT) is not None
            assert reader.nodes_of(second) is None
    assert [execution.nodes is None for execution in found] == [False, True]
    assert reader.nodes_of(UNIT) is None
    assert reader.nodes_of(second) is None


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_worker_decodes_what_the_harness_sends(dtype: str, shape: tuple[int, ...]) -> None:
    tensor = Tensor(dtype, elements(np.random.default_rng(1), dtype, shape))
    data = worker.encode_elements(tensor.array)
    unit = {"inputs": [("X", DTYPES[dtype].onnx)]}
    (array,), size = worker.decode_inputs(unit, memoryview(data + b"more"), 0, [list(shape)])
    assert size == len(data)
    assert array.shape == shape
    assert (
        array.tolist() == tensor.array.tolist()
        if dtype == "string"
        else array.tobytes() == tensor.array.tobytes()
    )
    assert worker.encode_elements(array) == data


@pytest.mark.parametrize(
    "texts", [["a"], ["", "a\0b", ""], ["ä", "", "€", "𝄞z"], ["plain", "\ud800", "\x7f"]], ids=ascii
)
def test_texts_cross_whatever_they_hold(texts: list[str]) -> None:
    data = worker.encode_texts(texts)
    assert worker.decode_texts(memoryview(data + b"more"), len(texts)) == (texts, len(data))
    for damaged in (data[:-1], data[:4] + b"\xff" + data[5:]):
        with pytest.raises(ValueError, match=r"a string is cut off|can't decode"):
            worker.decode_texts(memoryview(damaged), len(texts))


@pytest.mark.parametrize(("operator", "dtype"), OPERATOR_DTYPES)
def test_a_batch_says_what_a_worker_needs(operator: str, dtype: str) -> None:
    """Only a fake target is told which case it runs: a real one has nothing but the graph and its inputs."""
    prepared = prepare(operator, dtype)
    fed = tuple(range(len(prepared.inputs)))
    graph = Graph(
        b"abc",
        "d",
        fed,
        tuple((spec.name, 1) for spec in prepared.case.inputs),
        (("Y", 1),),
        (operator,),
        "basic",
        in_place=True,
    )
    header, payload = encode_batch(
        [GraphCases(graph, [prepared]), GraphCases(graph, [prepared, prepared])],
        Launch((), None, "P", {"a": "b"}, {"c": "d"}, threads=3),
    )
    assert [unit["first"] for unit in header["units"]] == [0, 1]
    assert [len(unit["cases"]) for unit in header["units"]] == [1, 2]
    assert [unit["kind"] for unit in header["units"]] == [0, 0]
    assert len(header["kinds"]) == 1
    first = header["kinds"][0] | header["units"][0]
    assert (first["provider"], first["provider_options"], first["config"], first["threads"]) == (
        "P",
        {"a": "b"},
        {"c": "d"},
        3,
    )
    assert (first["optimization"], first["in_place"], first["tested"], first["model"]) == (
        "basic",
        True,
        (operator,),
        3,
    )
    assert "fake" not in first
    one = b"".join(worker.encode_elements(tensor.array) for tensor in prepared.inputs)
    assert b"".join(payload) == b"abc" + one + b"abc" + one + one
    told, _ = encode_batch([GraphCases(graph, [prepared])], Launch((), None, FAKE, {}, {}))
    assert told["kinds"][0]["threads"] == 1
    assert told["units"][0]["fake"] == [(prepared.case.id, "valid")]


def test_what_units_have_in_common_is_said_once() -> None:
    prepared = prepare("GatherElements", "float32")
    graph = Graph(b"m", "d", (0,), (("data", 1),), (("output", 1),), ("GatherElements",))
    others = [
        graph._replace(optimization="all"),
        graph._replace(model=b"n"),
        graph._replace(inputs=(("data", 2),)),
    ]
    header, _ = encode_batch(
        [GraphCases(one, [prepared]) for one in (graph, *others)], Launch((), None, "P", {}, {})
    )
    assert [unit["kind"] for unit in header["units"]] == [0, 1, 0, 2]
    assert [kind["optimization"] for kind in header["kinds"]] == ["off", "all", "off"]
    assert [kind["inputs"] for kind in header["kinds"]] == [(("data", 1),), (("data", 1),), (("data", 2),)]


def test_sessions_do_not_log_only_where_every_answer_is_expected() -> None:
    prepared = prepare("GatherElements", "float32")
    graph = Graph(
        b"m", "d", (0,), (("data", 1),), (("output", 1),), ("GatherElements",), "all", composed=True
    )
    first = KeptCase(0, 0, "ab", optimized=Optimized("1 2", ("A",), ("Gather",), ()))

    def sent(*kept: KeptCase | None) -> tuple[object, object]:
        cases = [prepared._replace(kept=each) for each in kept]
        header, _ = encode_batch([GraphCases(graph, cases)], Launch((), None, "P", {}, {}))
        (kind,), (unit,) = header["kinds"], header["units"]
        return kind["tells_transformers"], unit.get("optimized")

    assert sent(first, KeptCase(0, 1, "cd")) == (False, (("A",), ("Gather",), ()))
    assert sent(first, KeptCase(0, 1)) == (True, None)
    assert sent(first, None) == (True, None)
    assert sent(KeptCase(0, 0, "ab")) == (True, None)
    assert sent(None) == (True, None)


def test_initializers_are_not_fed() -> None:
    prepared = prepare("GatherElements", "float32")
    graph = Graph(b"m", "d", (0,), (("data", 1),), (("output", 1),), ("GatherElements",))
    header, payload = encode_batch([GraphCases(graph, [prepared])], Launch((), None, "P", {}, {}))
    assert header["units"][0]["cases"] == [((2, 3),)]
    assert b"".join(payload) == b"m" + worker.encode_elements(prepared.inputs[0].array)


@pytest.mark.parametrize("dtype", [name for name, entry in DTYPES.items() if entry.narrow])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 3), (4,), (17,), (0,)])
def test_packed_elements_are_those_of_onnx(dtype: str, shape: tuple[int, ...]) -> None:
    entry = DTYPES[dtype]
    assert worker.PACKED.get(entry.onnx, 8) == entry.narrow
    array = entry.wrapped(np.random.default_rng(5).integers(0, 256, shape))
    proto = numpy_helper.from_array(array.view(helper.tensor_dtype_to_np_dtype(entry.onnx)))
    held = worker.packed(array, entry.onnx)
    assert held.tobytes() == proto.raw_data
    assert np.array_equal(worker.unpacked(held, entry.onnx, shape), array)
    assert worker.unpacked(held, entry.onnx, shape).dtype == array.dtype
    assert tensor_proto("x", Tensor(dtype, array)).raw_data == proto.raw_data
    assert np.array_equal(tensor_of(entry.onnx, proto).array, array)
