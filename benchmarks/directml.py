"""DirectML's own operators: a loop that uses nothing again beside the harness' workers, which do, in the same
run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import statistics
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import Case, Tensor, TensorSpec
from harness.model.dtypes import DTYPES
from harness.operators.base import Call
from harness.targets.execution import Graph, GraphCases, Prepared
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from harness.targets.windows import runtime

_BARE = Path(__file__).with_name("bare_directml.py")
_DTYPES = ("float32", "float16", "int8", "int64")
_UNIT_CASES = 512
_INPUTS = ("InputTensor", "IndicesTensor")


class Cost(NamedTuple):
    """What all cases together took: seconds that passed, and seconds of processor time, wineserver and driver
    threads included."""

    passed: float
    processor: float


Described = tuple[dict[str, Any], list[np.ndarray], np.ndarray]


def table(cases: int, rounds: int) -> Iterator[str]:
    """Yield the lines of a Markdown table: operators a second in one process of the Windows Python, the two
    alternating.

    The worker's count everything between the first answer and the last: frames, descriptions, bytes there and
    back. Processor time holds where other work shares the machine, the rates do not.
    """
    yield "| workload | operators | loop, operators/s | worker, operators/s | worker / loop | loop, processor µs | worker, processor µs |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for name, distinct in (("one operator per case", cases), ("one operator, many cases", 1)):
        described = [_gather(number % distinct, number) for number in range(cases)]
        pairs = [(bare(described), pooled(described)) for _ in range(rounds)]
        loop, worker = (
            cases / statistics.median(cost.passed for cost in costs) for costs in zip(*pairs, strict=True)
        )
        spent = [
            statistics.median(cost.processor for cost in costs) / cases * 1e6
            for costs in zip(*pairs, strict=True)
        ]
        ratio = statistics.median(a.passed / b.passed for a, b in pairs)
        yield f"| {name} | {cases:,} | {loop:,.0f} | {worker:,.0f} | {ratio:.2f} | {spent[0]:,.0f} | {spent[1]:,.0f} |"


def bare(described: list[Described]) -> Cost:
    """Return the cost of the loop."""
    argv, env = runtime.launch(_BARE)
    cases = [
        (given, [array.tobytes() for array in arrays], expected.tobytes())
        for given, arrays, expected in described
    ]
    data = pickle.dumps(cases, protocol=4)
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as loop:
        assert loop.stdin is not None
        assert loop.stdout is not None
        loop.stdin.write(struct.pack("<I", len(data)) + data)
        loop.stdin.flush()
        assert loop.stdout.readline().strip() == b"ready"
        before = _processor_seconds(loop.pid)
        loop.stdin.write(b"\n")
        loop.stdin.flush()
        passed = float(loop.stdout.readline())
        return Cost(passed, _processor_seconds(loop.pid) - before)


def pooled(described: list[Described]) -> Cost:
    """Return the cost of a worker from the first case that it answers to the last, by the pool that a run
    uses."""
    pool = WorkerPool(launch(parse_target("directml")), size=1, timeout=60)
    pool.probe()
    (process,) = pool._slots
    before, started = _processor_seconds(process.pid), time.perf_counter()
    done = 0
    for case, _, execution in pool.run(_units(described)):
        done += 1
        assert execution.outputs is not None, execution.error
        assert execution.outputs[0].array.tobytes() == described[int(case.case.id)][2].tobytes()
        if done == 1:
            before, started = _processor_seconds(process.pid), time.perf_counter()
        if done == len(described):
            return Cost(time.perf_counter() - started, _processor_seconds(process.pid) - before)
    raise SystemExit(f"{done} of {len(described)} cases were answered")


def _processor_seconds(ancestor: int) -> float:
    """Return the processor time of a process and all below it, in seconds, by Linux' /proc."""
    spent: dict[int, float] = {}
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        spent[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(spent[pid] for pid in family if pid in spent)


def _units(described: list[Described]) -> Iterator[GraphCases]:
    collected: list[Prepared] = []
    current = None
    for number, (given, arrays, _) in enumerate(described):
        model = json.dumps(given, sort_keys=True, separators=(",", ":")).encode()
        if current is not None and (model != current.model or len(collected) >= _UNIT_CASES):
            yield GraphCases(current, collected)
            collected = []
        types = tuple((name, DTYPES[given["tensors"][name]["dtype"]].onnx) for name in _INPUTS)
        output = ("OutputTensor", types[0][1])
        current = Graph(
            model, hashlib.sha256(model).hexdigest(), (0, 1), types, (output,), (given["operator"],)
        )
        specs = tuple(
            TensorSpec(name, str(array.dtype), array.shape)
            for name, array in zip(_INPUTS, arrays, strict=True)
        )
        tensors = tuple(Tensor(str(array.dtype), array) for array in arrays)
        collected.append(Prepared(Case(str(number), "GatherElements", 13, {}, specs), Call({}, {}), tensors))
    if current is not None:
        yield GraphCases(current, collected)


def _gather(shape: int, seed: int) -> tuple[dict[str, Any], list[np.ndarray], np.ndarray]:
    """Return a tiny GatherElements: its description, inputs and right output; every `shape` has sizes or an
    element type of its own."""
    dtype = _DTYPES[shape % len(_DTYPES)]
    rows, columns = 2 + shape // len(_DTYPES) // 64, 2 + shape // len(_DTYPES) % 64
    random = np.random.default_rng(seed)
    data = random.integers(0, 100, (rows, columns)).astype(dtype)
    indices = random.integers(0, columns, (rows, 3))
    tensors = {
        "InputTensor": _view(dtype, data.shape),
        "IndicesTensor": _view("int64", indices.shape),
        "OutputTensor": _view(dtype, indices.shape),
    }
    given = {
        "operator": "DML_OPERATOR_GATHER_ELEMENTS", "tensors": tensors, "attributes": {"Axis": 1}, "inputs": list(_INPUTS),
        "output": "OutputTensor", "in_place": None, "output_shape": indices.shape, "flags": 0, "minimum_feature_level": "1_0",
    }  # fmt: skip
    return given, [data, indices], np.take_along_axis(data, indices, 1)


def _view(dtype: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    size = int(np.prod(sizes)) * DTYPES[dtype].itemsize
    return {
        "dtype": dtype,
        "sizes": sizes,
        "strides": None,
        "flags": 0,
        "bytes": (size + 3) & ~3,
        "alignment": 0,
    }
