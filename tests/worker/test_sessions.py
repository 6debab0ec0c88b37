"""The earlier call of a session: what it is, and that it runs first."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from harness.compile.prepare import by_graph
from harness.model.case import Case, Options, TensorSpec
from harness.operators import OPERATORS
from harness.specs.sweeps.calls import call_of
from harness.specs.sweeps.sessions import earlier, earlier_case, refusal
from harness.targets.batches import encode_batch
from harness.targets.launching import Launch
from harness.worker import worker

worker.np = np


def gather(data: tuple[int, ...], indices: tuple[int, ...], axis: int = 0, **options: Any) -> Case:
    specs = (TensorSpec("data", "float32", data), TensorSpec("indices", "int64", indices, "in_range"))
    case_id = f"GatherElements@13:data={data}"
    return Case(case_id, "GatherElements", 13, {"axis": axis}, specs, Options(**options))


@pytest.mark.parametrize(
    ("data", "indices", "axis", "after", "wanted"),
    [
        ((3, 4), (3, 4), 0, "larger", ((6, 4), (6, 4))),
        ((3, 4), (3, 4), 0, "smaller", ((1, 4), (1, 4))),
        ((3, 4), (2, 4), 1, "same", ((3, 4), (2, 4))),
        ((1, 5), (1, 2), 1, "smaller", ((1, 2), (1, 1))),
        ((1,), (1,), 0, "smaller", None),
    ],
)
def test_the_earlier_call(data: Any, indices: Any, axis: int, after: Any, wanted: object) -> None:
    assert earlier(OPERATORS["GatherElements"], call_of(gather(data, indices, axis)), after) == wanted


def test_a_graph_of_one_size_runs_calls_of_that_size_alone() -> None:
    call, operator = call_of(gather((3, 4), (3, 4))), OPERATORS["GatherElements"]
    for fixed in ({"shapes": "static"}, {"initializer": "data"}):
        assert refusal(operator, call, Options(after="same", **fixed)) is None  # type: ignore[arg-type]
        why = refusal(operator, call, Options(after="larger", **fixed))  # type: ignore[arg-type]
        assert why == "after=larger: a graph with static shapes or an initializer runs calls of one size"
    assert (
        refusal(operator, call_of(gather((1,), (1,))), Options(after="smaller"))
        == "after=smaller: no such call"
    )


def test_its_elements_are_others() -> None:
    case = gather((3, 4), (3, 4), after="same")
    ((_, (prepared,)),) = by_graph([case], 0)
    assert prepared.before is not None
    assert [each.array.shape for each in prepared.before] == [(3, 4), (3, 4)]
    assert prepared.before[0].array.tobytes() != prepared.inputs[0].array.tobytes()
    assert earlier_case(gather((3, 4), (3, 4))) is None


class Backend:
    """A session that notes the shapes of its calls."""

    lost = False

    def __init__(self) -> None:
        self.ran: list[tuple[int, ...]] = []

    def session(self, _unit: object, _model: bytes) -> object:
        return self

    def assignment(self, _session: object) -> list[list[str]]:
        return [["P", "GatherElements"]]

    def after_failure(self, _unit: object, _error: Exception) -> bool:
        return False

    def run(
        self, _session: object, _unit: object, arrays: list[Any], _position: int
    ) -> list[tuple[Any, int]]:
        self.ran.append(arrays[0].shape)
        return [(arrays[0], 1)]


class Channel:
    def __init__(self) -> None:
        self.frames: list[str] = []

    def announce(self) -> None:
        self.frames.append("A")

    def add(self, kind: str, _body: bytes) -> None:
        self.frames.append(kind)

    def add_json(self, kind: str, _body: object) -> None:
        self.frames.append(kind)

    def send(self) -> None:
        pass


def test_the_earlier_call_runs_first_and_has_no_answer() -> None:
    cases = [
        gather((3, 4), (3, 4), after="larger"),
        gather((2, 4), (2, 4)),
        gather((4, 4), (4, 4), after="smaller"),
    ]
    (unit,) = by_graph(cases, 0)
    header, payload = encode_batch([unit], Launch((), None, "P", {}, {}))
    sent = dict(header["kinds"][0], **header["units"][0])
    backend, channel = Backend(), Channel()
    data = memoryview(b"".join(payload))
    worker.run_unit(channel, backend, sent, data, 0)
    assert sent["bytes"] == len(data)
    assert backend.ran == [(6, 4), (3, 4), (2, 4), (2, 4), (4, 4)]
    assert channel.frames == ["A", "P", "R", "A", "R", "A", "R"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted on Linux")
def test_onnxruntime_reports_nothing_to_its_makers() -> None:
    """Its telemetry has a thread of its own as long as the process lives."""
    program = (
        "import os; from harness.worker.worker import load; load()\nprint(len(os.listdir('/proc/self/task')))"
    )
    environment = {
        key: value for key, value in os.environ.items() if key not in ("CI", "ORT_DISABLE_TELEMETRY")
    }
    environment["OPENBLAS_NUM_THREADS"] = "1"
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "1\n"
