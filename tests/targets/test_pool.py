"""The pool with workers that crash, hang, exit and print nonsense: one case is lost each time, and no process
is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from harness.compile.graphs import compile_case
from harness.model.case import Case, Tensor, TensorSpec
from harness.model.errors import TargetUnavailable
from harness.specs.sweeps.calls import call_of
from harness.targets.batches import FAKE
from harness.targets.execution import Execution, GraphCases, Prepared
from harness.targets.frames import tensor_bytes
from harness.targets.launches import launch
from harness.targets.launching import Launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from harness.worker.worker import PROTOCOL
from tests.needs import MISBEHAVING
from tests.prepared import chosen, compiled, prepared_case, right_output
from tests.processes import gone
from tests.running import script_of
from tests.sampled import one_of

WORKERS = Path(__file__).parents[1] / "workers.py"
SERVER = WORKERS.parents[1] / "harness" / "worker" / "fork_server.py"
pytestmark = MISBEHAVING


VALUES = ("GatherND@13:sweep=values;data=float32", "Round@22:sweep=sizes;X=float16")


def fake(script: Path | None = None, **changes: object) -> Launch:
    """The fake target as a program, which is how it starts where nothing can be forked."""
    return launch(parse_target("fake" if script is None else f"fake,script={script}"))._replace(
        forks=(), **changes
    )


def misbehaving(name: str, argument: str = "", **changes: object) -> Launch:
    return fake()._replace(argv=[sys.executable, str(WORKERS), name, argument], **changes)


def run(
    launch: Launch, given: list[GraphCases], size: int = 1, timeout: float = 60
) -> tuple[dict[str, Execution], WorkerPool]:
    """Run units; return what became of each case, which must be answered exactly once."""
    pool = WorkerPool(launch, size=size, timeout=timeout)
    found: dict[str, Execution] = {}
    for prepared, _, execution in pool.run(iter(given)):
        assert prepared.case.id not in found
        found[prepared.case.id] = execution
    assert found.keys() == {prepared.case.id for unit in given for prepared in unit.cases}
    return found, pool


def right(given: list[GraphCases]) -> dict[str, bytes]:
    return {
        prepared.case.id: tensor_bytes(right_output(prepared)) for unit in given for prepared in unit.cases
    }


def assert_only_lost(found: dict[str, Execution], given: list[GraphCases], lost: set[str]) -> None:
    wanted = right(given)
    for case, execution in found.items():
        if case in lost:
            assert execution.outputs is None, case
            assert execution.ended is not None or execution.error is not None
        else:
            assert execution.outputs is not None, case
            assert list(map(tensor_bytes, execution.outputs)) == [wanted[case]], case


@pytest.mark.parametrize("size", [1, 2])
def test_all_cases_are_answered(size: int) -> None:
    given = chosen(*VALUES)
    found, pool = run(fake(), given, size)
    assert_only_lost(found, given, set())
    assert pool.restarts == 0
    assert pool.hello is not None
    assert (pool.hello.providers, pool.hello.onnxruntime) == ((FAKE,), "0.0.0")


@pytest.mark.parametrize(("batches", "workers"), [(2, 1), (3, 2)])
def test_another_worker_starts_when_all_have_two_batches(
    batches: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = chosen(*VALUES)
    number = sum(len(unit.cases) for unit in given)
    monkeypatch.setattr("harness.targets.batches._CASES", -(-number // batches))
    pool = WorkerPool(fake(), size=2, timeout=60)
    seen = {len(pool._slots) for _ in pool.run(iter(given))}
    assert max(seen) == workers


@pytest.mark.slow
def test_a_removed_device_costs_the_case_that_removed_it() -> None:
    """DirectML's device can be gone while Direct3D's is there; all that a worker does from then on says
    nothing of its cases."""
    given = chosen("Round@22:sweep=sizes;X=float16")
    size = {prepared.case.id: prepared.inputs[0].array.size for unit in given for prepared in unit.cases}
    chosen_size = sorted(size.values())[len(size) // 2]
    lost = {case for case, elements in size.items() if elements == chosen_size}
    found, pool = run(misbehaving("removed", str(chosen_size)), given)
    assert 0 < len(lost) < len(found) / 2
    assert_only_lost(found, given, lost)
    assert pool.restarts == len(lost)
    assert {found[case].error.class_ for case in lost if found[case].error} == {"RuntimeError"}


@pytest.mark.parametrize(
    ("size", "action", "ended", "detail"),
    one_of(
        5,
        [
            (1, "crash", "crash", "SIGSEGV"),
            (2, "crash", "crash", "SIGSEGV"),
            (1, "exit", "crash", "exit code 3"),
            (1, "garbage", "crash", "garbled frames: byte 0x00 where a frame should begin"),
            (1, "hang", "timeout", "no answer within 1.5 s"),
            (2, "hang", "timeout", "no answer within 1.5 s"),
        ],
    ),
)
def test_only_the_announced_case_is_lost(
    tmp_path: Path, action: str, ended: str, detail: str, size: int
) -> None:
    given = chosen(*VALUES)
    ids = [prepared.case.id for unit in given for prepared in unit.cases]
    lost = {ids[0], ids[len(ids) // 2], ids[-1]} if action == "crash" else {ids[1], ids[-2]}
    launch = fake(script_of(tmp_path, [(case, action) for case in lost]))
    found, pool = run(launch, given, size, timeout=1.5 if action == "hang" else 60)
    assert_only_lost(found, given, lost)
    assert pool.restarts == len(lost)
    for case in lost:
        assert found[case].ended == ended
        assert found[case].error is not None
        assert found[case].error.class_ == detail
        assert found[case].stage == "run"


def echo_of(folder: Path, doomed: Iterable[str] = (), seconds: float = 0.0, **changes: object) -> Launch:
    (folder / "doomed").write_text("\n".join(doomed), encoding="utf-8")
    (folder / "seconds").write_text(str(seconds), encoding="ascii")
    return misbehaving("echoes", str(folder), **changes)


def assert_echoed(found: dict[str, Execution], given: list[GraphCases], lost: set[str]) -> None:
    assert {case for case, execution in found.items() if execution.outputs is None} == lost
    inputs = {prepared.case.id: prepared.inputs[0] for unit in given for prepared in unit.cases}
    for case, execution in found.items():
        assert execution.outputs is None or tensor_bytes(execution.outputs[0]) == tensor_bytes(inputs[case])


def test_a_crash_at_each_position_of_a_batch_costs_that_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.targets.batches._CASES", 7)
    given = chosen("Round@22:sweep=sizes;X=float16", "Round@22:sweep=sizes;X=float32")
    ids = [prepared.case.id for unit in given for prepared in unit.cases]
    batches = [ids[start : start + 7] for start in range(0, 49, 7)]
    lost = {batch[position] for position, batch in enumerate(batches)}
    assert len(lost) == 7
    found, pool = run(echo_of(tmp_path, lost), given)
    assert_echoed(found, given, lost)
    assert pool.restarts == 7
    assert {(found[case].ended, found[case].stage) for case in lost} == {("crash", "run")}
    begun = Counter((tmp_path / "begun").read_text(encoding="utf-8").splitlines())
    assert set(begun.values()) == {1}, "every answer before the crash was handed over"


def test_a_worker_killed_from_outside_costs_one_case(tmp_path: Path) -> None:
    given = chosen("Round@22:sweep=sizes;X=float16", "Round@22:sweep=sizes;X=float32")
    pool = WorkerPool(echo_of(tmp_path, seconds=0.01), size=2, timeout=60)
    pool.probe()
    killed: list[int] = []

    def kill() -> None:
        for _ in range(3):
            time.sleep(0.2)
            pids = [process.pid for process in pool._slots if process.pid not in killed]
            if pids:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

    killer = Thread(target=kill)
    killer.start()
    found = {}
    for prepared, _, execution in pool.run(iter(given)):
        assert prepared.case.id not in found
        found[prepared.case.id] = execution
    killer.join()
    assert found.keys() == {prepared.case.id for unit in given for prepared in unit.cases}
    lost = {case for case, execution in found.items() if execution.outputs is None}
    assert_echoed(found, given, lost)
    assert killed
    assert len(lost) <= len(killed)
    assert {found[case].error.class_ for case in lost} <= {"SIGKILL"}  # type: ignore[union-attr]


FORKED = """
from pathlib import Path
from harness.worker.worker import Channel, serve
from tests.workers import Echo
def load():
    pass
def main():
    serve(Channel(), lambda: Echo(Path(__file__).parent))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")
def test_a_killed_process_that_forks_costs_no_case(tmp_path: Path) -> None:
    """Its workers end with it: not by the cases that they are at, which run again."""
    given = chosen("Round@22:sweep=sizes;X=float16")
    server = shutil.copy(SERVER, tmp_path)
    (tmp_path / "worker.py").write_text(FORKED, encoding="utf-8")
    launch = echo_of(tmp_path, seconds=0.05)._replace(
        env={"PYTHONPATH": str(WORKERS.parents[1]), "OPENBLAS_NUM_THREADS": "1"},
        forks=[sys.executable, server],
    )
    pool = WorkerPool(launch, size=2, timeout=60)
    assert pool._server is not None
    found, killed = {}, set()
    with closing(pool.run(iter(given))) as answers:
        for prepared, _, execution in answers:
            found[prepared.case.id] = execution
            process = pool._server._process
            # often, since on a busy machine its workers may be between two cases
            if len(found) % 7 == 5 and process is not None and process.poll() is None:
                killed.add(process.pid)
                process.kill()
    assert len(killed) > 1
    assert_echoed(found, given, set())
    assert found.keys() == {prepared.case.id for unit in given for prepared in unit.cases}
    begun = (tmp_path / "begun").read_text(encoding="utf-8").splitlines()
    assert len(begun) > len(found), "the cases that ran then are begun again"


def test_a_case_has_its_whole_time_whatever_ran_before(tmp_path: Path) -> None:
    """The deadline is that of the case that runs, and not that of the first one of its batch."""
    given = chosen("Round@22:sweep=sizes;X=float16")
    found, pool = run(echo_of(tmp_path, seconds=0.1), given, timeout=2)
    assert_echoed(found, given, set())
    assert len(found) > 20
    assert pool.restarts == 0


@pytest.mark.slow
def test_neighbouring_crashes_cost_one_case_each(tmp_path: Path) -> None:
    given = chosen("Round@22:sweep=sizes;X=float16;values=ordinary")
    ids = [prepared.case.id for unit in given for prepared in unit.cases]
    lost = set(ids[3:6])
    found, pool = run(fake(script_of(tmp_path, [(case, "crash") for case in lost])), given)
    assert_only_lost(found, given, lost)
    assert pool.restarts == 3


def test_an_error_is_no_loss_of_the_worker(tmp_path: Path) -> None:
    given = chosen("Round@22:sweep=sizes;X=float16")
    found, pool = run(fake(script_of(tmp_path, [("Round@22:values=ordinary", "raise")])), given)
    lost = {case for case in found if "values=ordinary" in case}
    assert_only_lost(found, given, lost)
    assert pool.restarts == 0
    errors = {(found[case].error.class_, found[case].stage, found[case].ended) for case in lost}  # type: ignore[union-attr]
    assert errors == {("RuntimeError", "run", None)}


@pytest.mark.slow
def test_a_graph_that_crashes_at_load_twice_is_lost_whole(tmp_path: Path) -> None:
    """Creating its session is a step that all its cases share; the other graphs are not affected."""
    given = chosen(
        "GatherElements@13:sweep=extent;data=float32;indices=int64", "Round@22:sweep=sizes;X=float16"
    )
    doomed = max(
        (unit for unit in given if unit.graph.tested == ("GatherElements",)), key=lambda unit: len(unit.cases)
    )
    lost = {
        prepared.case.id
        for unit in given
        if unit.graph.digest == doomed.graph.digest
        for prepared in unit.cases
    }
    assert len(lost) > 3
    found, pool = run(fake(script_of(tmp_path, [(case, "crash_at_load") for case in lost])), given)
    assert_only_lost(found, given, lost)
    assert pool.restarts == 2
    assert {(found[case].ended, found[case].stage, found[case].nodes) for case in lost} == {
        ("crash", "load", None)
    }
    assert {found[case].error.class_ for case in lost} == {"SIGSEGV"}  # type: ignore[union-attr]


def test_no_kernel_is_one_answer_for_all_cases_of_a_graph(tmp_path: Path) -> None:
    given = chosen("Round@22:sweep=sizes;X=float16", "Round@22:sweep=sizes;X=float32")
    found, pool = run(fake(script_of(tmp_path, [("Round@22:X=float16", "unsupported")])), given)
    lost = {case for case in found if "X=float16" in case}
    assert_only_lost(found, given, lost)
    assert {(found[case].stage, found[case].error.class_) for case in lost} == {("load", "NotImplemented")}  # type: ignore[union-attr]
    assert pool.restarts == 0


def test_no_kernel_for_a_string_input_skips_its_bytes_rightly(tmp_path: Path) -> None:
    """The payload of the cases that are not decoded has elements of varying length."""
    given = chosen("GatherND@13:sweep=values;data=string", "GatherND@13:sweep=values;data=int8")
    found, _ = run(fake(script_of(tmp_path, [("GatherND@13:data=string", "unsupported")])), given)
    assert_only_lost(found, given, {case for case in found if "data=string" in case})


def test_stray_prints_do_not_reach_the_protocol() -> None:
    given = chosen("GatherND@13:sweep=values;data=float32", "GatherND@13:sweep=values;data=string")
    found, pool = run(misbehaving("noisy"), given)
    assert_only_lost(found, given, set())
    assert pool.restarts == 0


def big(elements: int) -> GraphCases:
    """Return one case of Round with a large tensor each way."""
    case = Case(
        f"Round@22:case=big;X=float32[{elements}]",
        "Round",
        22,
        {},
        (TensorSpec("X", "float32", (elements,), "ordinary"),),
    )
    return GraphCases(compiled(case), [prepared_case(case)])


def test_large_tensors_both_ways() -> None:
    given = [big(6 << 20), *chosen("Round@22:sweep=empty;X=float16"), big((6 << 20) + 1)]
    found, pool = run(fake(), given, size=1)
    assert_only_lost(found, given, set())
    assert pool.restarts == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("exits_at_once", "the worker ended before it started a case (exit code 7): the reason"),
        ("killed_at_start", "the worker ended before it started a case (SIGKILL)"),
        ("hangs_at_start", "the worker ended before it started a case (no greeting within 0.5 s)"),
        (
            "garbage_at_start",
            "the worker ended before it started a case (garbled frames: byte 0x57 where a frame should begin)",
        ),
        ("half_a_greeting", "the worker ended before it started a case (exit code 0)"),
        (
            "malformed_greeting",
            "the worker ended before it started a case (garbled frames: not a greeting: Object missing required field",
        ),
        (
            "other_protocol",
            f"worker speaks protocol {PROTOCOL + 1}, this harness {PROTOCOL}: the two are of different versions",
        ),
    ],
)
@pytest.mark.parametrize("way", ["probe", "run"])
def test_a_target_without_a_greeting_is_unavailable(name: str, message: str, way: str) -> None:
    seconds = 0.5 if name == "hangs_at_start" else 20.0
    pool = WorkerPool(misbehaving(name, start_seconds=seconds), size=2, timeout=60)
    start = (
        pool.probe
        if way == "probe"
        else lambda: list(pool.run(iter(chosen("Round@22:sweep=empty;X=float16"))))
    )
    with pytest.raises(TargetUnavailable) as caught:
        start()
    assert str(caught.value).startswith(message)
    assert pool.restarts == (0 if name == "other_protocol" else 3)


def test_a_target_whose_workers_always_die_after_the_greeting_is_unavailable() -> None:
    pool = WorkerPool(misbehaving("dies_after_the_greeting"), size=1, timeout=60)
    with pytest.raises(TargetUnavailable, match=r"ended before it started a case \(exit code 0\)"):
        list(pool.run(iter(chosen("Round@22:sweep=empty;X=float16"))))
    assert pool.restarts == 3


@pytest.mark.parametrize("way", ["probe", "run"])
def test_a_start_that_fails_is_tried_three_times(tmp_path: Path, way: str) -> None:
    given = chosen("Round@22:sweep=empty;X=float16")
    for failing in (2, 3):
        (tmp_path / "state").write_text(str(failing), encoding="ascii")
        started = misbehaving("dies_at_its_first_starts", str(tmp_path / "state"))
        pool = WorkerPool(started, size=1, timeout=60)
        start = pool.probe if way == "probe" else lambda pool=pool: list(pool.run(iter(given)))
        if failing == 3:
            with pytest.raises(TargetUnavailable, match=r"ended before it started a case \(SIGKILL\)"):
                start()
        else:
            assert start()
        assert pool.restarts == failing
        pool.close()


@pytest.mark.slow
def test_workers_that_are_killed_together_at_their_start_count_once() -> None:
    """Whatever kills four at once is one mishap, and not a target whose start failed three times."""
    given = chosen(*VALUES)
    pool = WorkerPool(fake(), size=4, timeout=60)
    pool.start()
    for process in list(pool._slots):
        os.kill(process.pid, signal.SIGKILL)
    found = {prepared.case.id: execution for prepared, _, execution in pool.run(iter(given))}
    assert_only_lost(found, given, set())
    assert pool.restarts == 4


@pytest.mark.parametrize("way", ["probe", "run"])
def test_starting_is_tried_again(tmp_path: Path, way: str) -> None:
    """Two starts that fail say nothing of the third; one that succeeds begins the count anew."""
    given = chosen(*VALUES)
    launch = misbehaving("is_killed_at_two_starts", str(tmp_path / "state"))
    pool = WorkerPool(launch, size=1, timeout=60)
    if way == "probe":
        assert pool.probe().protocol == PROTOCOL
    assert len(list(pool.run(iter(given)))) == sum(len(unit.cases) for unit in given)
    assert pool.restarts == 2


def test_a_worker_that_dies_before_a_case_loses_none(tmp_path: Path) -> None:
    given = chosen(*VALUES)
    found, pool = run(misbehaving("dies_once_before_a_case", str(tmp_path / "state")), given)
    assert_only_lost(found, given, set())
    assert pool.restarts == 1


def test_a_lost_device_costs_the_case_that_ran(tmp_path: Path) -> None:
    given = chosen(*VALUES)
    found, pool = run(misbehaving("loses_its_device", str(tmp_path / "state")), given)
    lost = {case for case, execution in found.items() if execution.outputs is None}
    assert len(lost) == 1
    assert_only_lost(found, given, lost)
    assert pool.restarts == 1


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_closing_early_ends_the_workers(tmp_path: Path, taken: int, started: Callable[[], set[int]]) -> None:
    pool = WorkerPool(fake(), size=2, timeout=60)
    pool.probe()
    answers = pool.run(iter(chosen(*VALUES)))
    assert len(list(islice(answers, taken))) == taken
    assert started()
    answers.close()
    if not taken:  # a generator that never began has nothing to clean up; its owner closes the pool
        pool.close()
    assert gone(started(), 1)
    pool.close()


def test_an_error_of_the_consumer_ends_the_workers(started: Callable[[], set[int]]) -> None:
    pool = WorkerPool(fake(), size=2, timeout=60)
    with pytest.raises(ZeroDivisionError), closing(pool.run(iter(chosen(*VALUES)))) as answers:
        raise ZeroDivisionError(next(answers))
    assert gone(started(), 1)


def test_an_error_of_the_supply_ends_the_workers(started: Callable[[], set[int]]) -> None:
    def supply() -> Iterator[GraphCases]:
        yield from chosen(*VALUES)
        raise ZeroDivisionError

    pool = WorkerPool(fake(), size=2, timeout=60)
    with pytest.raises(ZeroDivisionError):
        list(pool.run(supply()))
    assert gone(started(), 1)


def test_what_a_worker_started_ends_with_it(tmp_path: Path) -> None:
    pool = WorkerPool(misbehaving("starts_a_child", str(tmp_path / "child")), size=1, timeout=60)
    pool.probe()
    child = int((tmp_path / "child").read_text())
    pool.close()
    assert gone([child], 2)


def test_a_pool_can_be_run_twice() -> None:
    """Invalid cases get workers of their own, after the valid ones."""
    given = chosen("Round@22:sweep=empty;X=float16")
    pool = WorkerPool(fake(), size=1, timeout=60)
    first = [answer.case.id for answer, _, _ in pool.run(iter(given))]
    second = [answer.case.id for answer, _, _ in pool.run(iter(given))]
    assert first == second


def test_a_slow_consumer_is_no_timeout() -> None:
    """The deadline is the worker's: what it answered in time counts, however late it is read."""
    given = chosen("Round@22:sweep=sizes;X=float16")
    pool = WorkerPool(fake(), size=1, timeout=1.5)
    found = []
    for number, (_, _, execution) in enumerate(pool.run(iter(given))):
        if number in (0, 20):
            time.sleep(1.8)
        found.append(execution)
    assert all(execution.outputs is not None for execution in found)
    assert pool.restarts == 0


def gather_of(rows: int) -> GraphCases:
    """Return one case whose input is 4 MiB and whose output `rows` times that."""
    shapes = ((1, 1 << 20), (rows, 1))
    specs = (TensorSpec("data", "float32", shapes[0]), TensorSpec("indices", "int64", shapes[1], "first"))
    case = Case(f"GatherND@13:case=rows{rows}", "GatherND", 13, {}, specs)
    inputs = (
        Tensor("float32", np.ones(shapes[0], np.float32)),
        Tensor("int64", np.zeros(shapes[1], np.int64)),
    )
    call = call_of(case)
    return GraphCases(compile_case(case, call, inputs), [Prepared(case, call, inputs)])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces a limit of the address space")
def test_memory_limit() -> None:
    """A case that needs more fails alone; those before and after it in the same worker do not notice."""
    given = [gather_of(2), gather_of(1024), gather_of(3)]  # 8 MiB, 4 GiB, 12 MiB
    found, pool = run(launch(parse_target(f"cpu,memory_limit={3 << 30}")), given, timeout=60)
    small, large, last = (found[unit.cases[0].case.id] for unit in given)
    assert small.outputs is not None
    assert last.outputs is not None
    assert [output.array.shape for output in last.outputs] == [(3, 1 << 20)]
    assert large.outputs is None
    assert large.error is not None
    assert large.stage == "run"
    assert large.ended is None, large.error
    assert pool.restarts == 0
