"""DirectML's own operators in the worker: right results, refusals with their call, and nothing left
behind."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness.worker.worker
from harness.model.errors import TargetUnavailable
from harness.targets.execution import GraphCases
from harness.targets.launching import Launch
from harness.targets.pool import WorkerPool
from harness.targets.windows import install, runtime
from harness.targets.windows.releases import release_for_level, releases, usable_levels
from tests.windows.directml_units import (
    described,
    execute,
    gather_elements,
    gather_nd,
    graph,
    pool,
    prepared,
    rounding,
    tensor,
)

pytestmark = pytest.mark.windows_runtime
WORKER = Path(harness.worker.worker.__file__)
PROGRAM = Path(__file__).with_name("directml_program.py")
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1.2, -1.7], np.float32)
DATA = np.arange(12, dtype=np.float32).reshape(3, 4)
PLACED = (("DirectML", "DML_OPERATOR_ELEMENT_WISE_ROUND"),)


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerPool]:
    """Return one worker for all tests that leave it as it was."""
    with pool() as opened:
        yield opened


def outputs(worker: WorkerPool, items: dict[str, Any]) -> dict[str, list[Any]]:
    found = execute(worker, items)
    return {
        name: (execution.outputs[0].array.tolist() if execution.outputs else execution.error)
        for name, execution in found.items()
    }


def test_each_element_type_is_gathered_bit_for_bit_with_each_index_type(worker: WorkerPool) -> None:
    random = np.random.default_rng(3)
    items, wanted = {}, {}
    for dtype in (
        "float32",
        "float16",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    ):
        data = np.frombuffer(random.bytes(12 * np.dtype(dtype).itemsize), dtype).reshape(3, 4)
        for index in ("int32", "int64", "uint32", "uint64"):
            indices = np.array([[0, 1, 3], [3, 1, 0], [2, 2, 0]], index)
            items[f"{dtype} {index}"] = gather_elements(data, indices, 1)
            wanted[f"{dtype} {index}"] = np.take_along_axis(data, indices.astype(np.int64), 1)
    for name, execution in execute(worker, items).items():
        assert execution.outputs is not None, (name, execution.error)
        assert execution.outputs[0].dtype == name.split()[0]
        assert execution.outputs[0].array.tobytes() == wanted[name].tobytes(), name


def test_all_three_rounding_modes_also_in_place(worker: WorkerPool) -> None:
    items = {
        f"{mode} {place}": rounding(HALVES, mode, in_place=place)
        for mode in (0, 1, 2)
        for place in (None, "InputTensor")
    }
    found = execute(worker, items)
    wanted = {
        0: np.rint(HALVES),
        1: np.trunc(HALVES),
        2: np.array([-3, -2, -1, 1, 2, 3, 1, -2], np.float32),  # halves away from zero
    }
    for name, execution in found.items():
        assert execution.outputs is not None, (name, execution.error)
        assert execution.outputs[0].array.tobytes() == wanted[int(name[0])].tobytes(), name
        assert execution.nodes == PLACED


def test_gather_nd_beside_nd1(worker: WorkerPool) -> None:
    data = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    pairs = np.array([[0, 1], [1, 2]], np.uint32).reshape(1, 1, 2, 2)
    batch = np.array([[2], [0]], np.int64).reshape(1, 1, 2, 1)
    counts = {"InputDimensionCount": 2, "IndicesDimensionCount": 2}
    found = outputs(
        worker,
        {
            "nd": gather_nd("DML_OPERATOR_GATHER_ND", data, pairs, counts, (1, 1, 1, 2), (2,)),
            "nd1": gather_nd(
                "DML_OPERATOR_GATHER_ND1",
                data,
                pairs,
                {**counts, "BatchDimensionCount": 0},
                (1, 1, 1, 2),
                (2,),
            ),
            "nd1 batch": gather_nd(
                "DML_OPERATOR_GATHER_ND1",
                data,
                batch,
                {**counts, "BatchDimensionCount": 1},
                (1, 1, 1, 2),
                (2,),
            ),
        },
    )
    assert found == {"nd": [1, 5], "nd1": [1, 5], "nd1 batch": [2, 3]}


def test_buffers_are_seen_through_sizes_and_strides(worker: WorkerPool) -> None:
    four = tensor("float32", (4,))
    found = outputs(
        worker,
        {
            "every second": rounding(
                HALVES, 1, source={**four, "strides": [2], "bytes": 32}, output=four, shape=(4,)
            ),
            "one for all": rounding(
                HALVES, 1, source={**four, "strides": [0], "bytes": 4}, output=four, shape=(4,)
            ),
            "spread output": rounding(HALVES, 1, output=tensor("float32", (8,), strides=[2], bytes=60)),
            "transposed": rounding(
                DATA,
                0,
                source=tensor("float32", (4, 3), strides=[1, 4]),
                output=tensor("float32", (4, 3)),
                shape=(4, 3),
            ),
            "aligned": rounding(HALVES, 1, source=tensor("float32", (8,), alignment=65536)),
            "padded": rounding(HALVES.reshape((1,) * 7 + (8,)), 1, shape=(8,)),
        },
    )
    assert found == {
        "every second": np.trunc(HALVES[::2]).tolist(),
        "one for all": [-2.0] * 4,
        "spread output": np.trunc(HALVES).tolist(),
        "transposed": DATA.T.tolist(),
        "aligned": np.trunc(HALVES).tolist(),
        "padded": np.trunc(HALVES).tolist(),
    }


def test_refusals_name_the_call_and_leave_nothing_behind(worker: WorkerPool) -> None:
    good = gather_elements(DATA, np.array([[1], [2], [0]]), 1)
    bad = {
        "rank 9": rounding(HALVES.reshape((1,) * 8 + (8,)), 0),
        "axis": gather_elements(DATA, np.array([[1], [2], [0]]), 2),
        "indices": gather_elements(DATA, np.array([[1], [2], [0]], np.int16), 1),
        "bytes": rounding(HALVES, 0, output=tensor("float32", (8,), bytes=28)),
        "mode": rounding(HALVES, 3),
        "sizes": rounding(
            HALVES, 0, source={**tensor("float32", (8,)), "sizes": [1 << 31, 1 << 31], "bytes": 1 << 40}
        ),
    }
    found = execute(worker, {**bad, "good": good})
    for name in bad:
        execution = found[name]
        assert execution.error is not None, name
        assert (execution.error.class_, execution.stage) == ("CreateOperator E_INVALIDARG", "load"), name
    assert found["good"].outputs is not None
    flags = execute(worker, {"flags": rounding(HALVES, 0, flags=0xFFFF)})["flags"]
    assert flags.error is not None
    assert (flags.error.class_, flags.stage) == ("CompileOperator E_INVALIDARG", "load")


def test_what_no_structure_holds_never_reaches_directml(worker: WorkerPool) -> None:
    tensors = {"InputTensor": tensor("float32", (8,)), "OutputTensor": None}
    items = {
        "axis": gather_elements(DATA, np.array([[1], [2], [0]]), -1),
        "operator": (
            described("DML_OPERATOR_ELEMENT_WISE_ROUND", tensors, {"RoundingMode": 0}, (8,), members=[]),
            [HALVES],
        ),
        "null": (described("DML_OPERATOR_ELEMENT_WISE_ROUND", tensors, {"RoundingMode": 0}, (8,)), [HALVES]),
        "bytes": rounding(HALVES, 0, output=tensor("float32", (8,), bytes=(1 << 30) + 4)),
        "owned": rounding(HALVES, 0, source=tensor("float32", (8,), flags=1)),
    }
    for name, execution in execute(worker, items).items():
        assert execution.error is not None, name
        assert execution.error.class_ == "CannotFeedError", name


def test_bindings_that_directml_refuses_remove_its_device_and_the_next_case_has_another() -> None:
    given, arrays = gather_elements(DATA, np.array([[1], [2], [0]]), 1)
    with pool() as opened:
        found = execute(
            opened, {"without": ({**given, "inputs": ["InputTensor"]}, arrays[:1]), "next": (given, arrays)}
        )
    error = found["without"].error
    assert error is not None
    assert (error.class_, found["without"].stage) == (
        "DeviceRemoved dispatch DXGI_ERROR_DEVICE_REMOVED",
        "run",
    )
    assert found["next"].outputs is not None
    assert found["next"].outputs[0].array.tolist() == [[1.0], [6.0], [8.0]]


def test_an_output_that_its_description_does_not_place_is_never_read(worker: WorkerPool) -> None:
    spread = tensor("float32", (8,), strides=[2], bytes=60)
    error = execute(worker, {"shape": rounding(HALVES, 0, output=spread, shape=(9,))})["shape"].error
    assert error is not None
    assert error.class_ == "OutputError"


def test_cases_of_one_unit_are_told_apart() -> None:
    random = np.random.default_rng(5)
    indices = np.array([[0, 3], [1, 1], [2, 0]], np.int64)
    cases = {str(n): random.standard_normal((3, 4)).astype(np.float32) for n in range(300)}
    given, _ = gather_elements(DATA, indices, 1)
    with pool(size=2) as opened:
        unit = GraphCases(graph(given), [prepared(name, [data, indices]) for name, data in cases.items()])
        for case, _, execution in opened.run(iter([unit])):
            assert execution.outputs is not None
            assert (
                execution.outputs[0].array.tobytes()
                == np.take_along_axis(cases[case.case.id], indices, 1).tobytes()
            )


@pytest.mark.slow
@pytest.mark.parametrize("row", releases(), ids=lambda row: f"{row.onnxruntime}")
def test_each_release_of_a_level_and_each_installed_one_runs(row: Any) -> None:
    of_a_level = row in map(release_for_level, usable_levels())  # fetched when it is not there
    if not of_a_level and install.installed(row.onnxruntime) is None:
        pytest.skip(f"onnxruntime-directml {row.onnxruntime} is not installed here")
    with pool(f"directml@ort-{row.onnxruntime}") as opened:
        hello = opened.probe()
        assert (hello.onnxruntime, hello.providers) == (None, ("DirectML",))
        assert (hello.device["directml"], hello.device["max_feature_level"]) == (row.directml, row.answers)
        given, arrays = gather_elements(
            DATA, np.array([[1], [2], [0]], np.uint32), 1, minimum_feature_level=row.answers
        )
        above, _ = rounding(HALVES, 0, minimum_feature_level="6_4")
        units = [
            GraphCases(graph(given), [prepared("level", arrays)]),
            GraphCases(graph(above), [prepared("above", [HALVES])]),
        ]
        found = {case.case.id: execution for case, _, execution in opened.run(iter(units))}
    assert found["level"].outputs is not None
    assert found["level"].outputs[0].array.tolist() == [[1.0], [6.0], [8.0]]
    assert (found["above"].outputs is not None) is (row.answers == "6_4")
    if found["above"].error is not None:
        assert found["above"].error.class_ == "DMLCreateDevice1 DXGI_ERROR_UNSUPPORTED"


@pytest.mark.slow
def test_a_dll_of_ones_own_is_the_one_that_runs(tool: str, tmp_path: Path) -> None:
    old = release_for_level("5_0")
    found = install.install(old.onnxruntime)
    own = tmp_path / "of my own.dll"
    shutil.copy(found.onnxruntime / "onnxruntime/capi/DirectML.dll", own)
    with pool(f"directml,dll={own}") as opened:
        device = opened.probe().device
        assert (device["directml"], device["max_feature_level"]) == (old.directml, old.answers)
        assert device["directml_path"] == r"Z:\tmp\DirectML.dll"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("device_id=7", "no adapter has this device_id, the first one is 0"),
        ("debug=1", "debug=1 needs Windows' feature Graphics Tools, Wine has none"),
    ],
)
def test_a_device_that_cannot_be_had_is_unavailable_with_the_reason(option: str, message: str) -> None:
    with pytest.raises(TargetUnavailable, match=message), pool(f"directml,{option}"):
        pass


def test_a_dll_that_is_not_directml_is_unavailable_with_the_reason(tmp_path: Path) -> None:
    found = install.installed()
    assert found is not None
    shutil.copy(
        found.onnxruntime / "onnxruntime/capi/onnxruntime_providers_shared.dll", tmp_path / "DirectML.dll"
    )
    with (
        pytest.raises(TargetUnavailable, match="exports no DMLCreateDevice1"),
        pool(f"directml,dll={tmp_path / 'DirectML.dll'}"),
    ):
        pass


def ask(*args: str) -> Any:
    argv, env = runtime.launch(PROGRAM, args=args)
    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_thousand_operators_leave_references_and_memory_as_they_were() -> None:
    got = ask("growth", "2000")
    assert got["wrong"] == 0
    assert got["references"][0] == got["references"][1]
    assert len(got["committed"]) == 5
    assert (
        got["committed"][-1] - got["committed"][1] < 750 * 500
    )  # bytes an operator: a leaked object of DirectML takes more


def test_an_output_that_no_dispatch_wrote_is_not_that_of_the_dispatch_before() -> None:
    assert ask("unwritten", "3") == {"distinct": 1, "last": "cb" * 24}


def test_messages_of_the_debug_layer_are_read_once() -> None:
    assert ask("messages", "2") == {"first": "message 0 é | message 1 é", "second": ""}
    assert ask("messages", "10")["first"].endswith("message 7 é | 2 more")


@pytest.mark.parametrize(
    ("action", "ended", "stage", "error"),
    [
        ("fault", "crash", "load", "exit code 5"),
        ("removed", None, "run", "DeviceRemoved D3D12 DXGI_ERROR_DEVICE_HUNG"),
    ],
)
def test_a_worker_that_cannot_go_on_ends_and_costs_one_case(
    action: str, ended: str | None, stage: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = shutil.copytree(runtime.BOOT.parent, tmp_path / "boot")
    shutil.copy(PROGRAM, boot)
    monkeypatch.setattr(runtime, "BOOT", boot / "boot.py")
    argv, env = runtime.launch(WORKER, args=[action], through=PROGRAM.name)
    given, arrays = rounding(HALVES, 0)
    units = [
        GraphCases(graph(given), [prepared("one", arrays)]),
        GraphCases(graph({**given, "flags": 1}), [prepared("two", arrays)]),
    ]
    opened = WorkerPool(Launch(argv, env, "DirectML", {}, {}), size=1, timeout=30)
    found = [execution for _, _, execution in opened.run(iter(units))]
    assert [(one.ended, one.stage, one.error and one.error.class_) for one in found] == [
        (ended, stage, error)
    ] * 2
    assert opened.restarts == 2
