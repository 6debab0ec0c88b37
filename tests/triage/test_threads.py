"""The target option `threads=N`: from the name of a target to the threads of a session, and into its
repro."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from harness.compile.graphs import compile_case
from harness.model.case import Case, Tensor, TensorSpec
from harness.results.runfile import RunReader, run_file
from harness.specs.sweeps.calls import call_of
from harness.targets.batches import encode_batch
from harness.targets.execution import GraphCases, Prepared
from harness.targets.launches import launch
from harness.targets.registry import parse_target
from harness.targets.target import session_config
from harness.triage.repro.failure import SessionSettings
from harness.triage.repro.issue import issue
from harness.triage.repro.script import script
from harness.worker import worker
from tests.running import harness
from tests.triage.test_repro import failure_of


def rows_of(count: int) -> GraphCases:
    """Return one case of GatherElements with so many rows of 4 elements."""
    specs = (TensorSpec("data", "float32", (count, 4)), TensorSpec("indices", "int64", (count, 4), "first"))
    case = Case(f"GatherElements@13:case=rows{count}", "GatherElements", 13, {"axis": 1}, specs)
    inputs = (
        Tensor("float32", np.ones((count, 4), np.float32)),
        Tensor("int64", np.zeros((count, 4), np.int64)),
    )
    call = call_of(case)
    return GraphCases(compile_case(case, call, inputs), [Prepared(case, call, inputs)])


def busy(before: set[str]) -> list[int]:
    """Return the nanoseconds that each thread of this process has run, of those that are not in `before`."""
    tasks = set(map(str, Path("/proc/self/task").iterdir())) - before
    return [int((Path(task) / "schedstat").read_text().split()[0]) for task in sorted(tasks)]


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads in /proc")
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_session_has_so_many_threads_and_they_work(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = launch(parse_target("cpu" if threads == 1 else f"cpu,threads={threads}"))
    given = rows_of(200_000)
    header, _ = encode_batch([given], start)
    unit = {**header["kinds"][0], **header["units"][0]}
    monkeypatch.setattr(worker, "np", np)
    backend = worker.OnnxRuntime()
    before = set(map(str, Path("/proc/self/task").iterdir()))
    session = backend.session(unit, given.graph.model)
    assert len(busy(before)) == threads - 1
    idle = sum(busy(before))
    ((_, _, inputs, *_),) = given.cases
    for _ in range(20):
        ((output, _),) = backend.run(session, unit, [tensor.array for tensor in inputs], 0)
        assert np.array_equal(output, inputs[0].array)
    time.sleep(0.05)
    assert (sum(busy(before)) - idle > 100_000) == (threads > 1)


def test_a_target_sets_entries_of_the_configuration_but_none_that_proves_placement() -> None:
    given = "config.session.disable_quant_qdq=1,config.session.record_ep_graph_assignment_info=0"
    assert session_config(parse_target(f"cpu,{given}")) == {
        "session.disable_quant_qdq": "1",
        "session.record_ep_graph_assignment_info": "1",
    }


def test_one_thread_is_the_default_and_changes_no_configuration() -> None:
    start = launch(parse_target("cpu"))
    assert start.threads == 1
    assert start == launch(parse_target("cpu,threads=1"))
    assert session_config(parse_target("cpu")) == {"session.record_ep_graph_assignment_info": "1"}
    assert start.env is not None
    assert start.env["OMP_NUM_THREADS"] == "1"
    several = launch(parse_target("cpu,threads=256"))
    assert several.env is not None
    assert (several.threads, several.env["OMP_NUM_THREADS"]) == (256, "256")


def test_the_header_of_a_run_says_the_threads(tmp_path: Path) -> None:
    asked = ("-t", "cpu,threads=2", "-k", "GatherElements@13:sweep=axis;data=float32")
    done = harness("run", *asked, "-o", str(tmp_path / "run"))
    assert done.code == 0, done.err
    (info,) = RunReader(run_file(tmp_path / "run")).header.targets.values()
    assert info.options == {"threads": "2"}


def test_a_repro_has_the_threads_of_the_report() -> None:
    ((prepared, *_),) = [rows_of(4).cases]
    one = failure_of(prepared)
    several = one._replace(session=SessionSettings("CPUExecutionProvider", {}, {}, 4))
    assert "\nTHREADS = 1\n" in script(one)
    assert "threads of the session" not in issue(one, "", None)
    assert "| threads of the session | 4 |" in issue(several, "", None)
    text = script(several)
    assert "\nTHREADS = 4\n" in text
    names: dict[str, object] = {"__name__": "repro"}
    exec(compile(text, "repro.py", "exec"), names)
    import onnxruntime

    assert names["session_options"](onnxruntime, {}).intra_op_num_threads == 4  # type: ignore[operator]
