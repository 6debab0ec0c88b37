"""What became of outputs over memory that held patterns: unwritten, read from outside, different, harmless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec
import numpy as np
from msgspec import UNSET

from harness.model.case import Tensor, Validity
from harness.model.result import Memory, Result
from harness.model.verdict import Outcome, Verdict
from harness.render.terminal import describe
from harness.results.memory import in_words, kind
from harness.run.held_back import PATTERNS, PatternRuns, examine
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from harness.worker import worker
from tests.prepared import graph_of, prepare
from tests.worker.test_placement import chosen

worker.np = np


def outputs(*rows: int) -> tuple[Tensor, ...]:
    return (Tensor("uint16", np.array(rows, np.uint16)),)


def test_the_elements_are_told_apart() -> None:
    fill, around = ([pattern * 0x0101 for pattern in each] for each in zip(*PATTERNS, strict=True))
    runs = [outputs(7, fill[n], around[n], 20 + n, 9) for n in (0, 1)]
    assert examine(outputs(7, 0, 0, 0, 9), runs) == Memory(unwritten=1, outside=1, unstable=1, total=5)
    assert examine(outputs(7, 9), [outputs(7, 9)] * 2) == Memory(0, 0, 0, 2)
    half = [outputs(fill[n] & 0xFF | 0x1200) for n in (0, 1)]
    assert examine(outputs(0x1200), half) == Memory(0, 0, 1, 1)  # a part of an element is no unwritten one


def test_runs_that_lack_an_output_say_nothing() -> None:
    assert examine(outputs(1, 2), [outputs(1, 2), ()]) is None
    assert examine(outputs(1, 2), [outputs(1, 2), outputs(1)]) is None


def result(outcome: Outcome, memory: Memory) -> Result:
    found = Result("Round@22:a=b", "Round", "cpu", Validity.INVALID, {}, outcome, Verdict.EXPECTED)
    return msgspec.structs.replace(found, memory=memory)


def test_words() -> None:
    accepted = result(Outcome.ACCEPTED_INVALID, Memory(2, 1, 0, 1200))
    assert in_words(accepted) == "of 1,200 elements 2 left unwritten, 1 read from outside of the inputs"
    assert in_words(accepted) in describe(accepted)
    harmless = Memory(0, 0, 0, 5)
    assert in_words(result(Outcome.ACCEPTED_INVALID, harmless)).startswith("every element is written")
    assert in_words(result(Outcome.MISMATCH, harmless)) == ""
    assert [kind(each) for each in (Memory(1, 1, 1, 3), Memory(0, 0, 1, 3), harmless)] == [
        "left unwritten",
        "different from run to run",
        "with every element written",
    ]


def test_a_worker_runs_over_patterns() -> None:
    """The CPU provider writes every element, so that a right result stays the same over both patterns."""
    given = chosen(
        "GatherElements@13:sweep=dtype_rank;data=bfloat16[3,4];axis=0", "Round@22:sweep=rank;X=float16[3,4]"
    )
    pool = WorkerPool(launch(parse_target("cpu")), size=1, timeout=60)
    held = PatternRuns("CPUExecutionProvider")
    number = 0
    for prepared, graph, execution in pool.run(iter(given), keep=True):
        wrong = Result(prepared.case.id, "x", "cpu", Validity.VALID, {}, Outcome.MISMATCH, Verdict.NEW)
        number += held.hold(prepared, graph, execution, wrong)
    found = [each for _, _, each in held.results(pool)]
    pool.close()
    assert len(found) == number > 3
    for each in found:
        assert isinstance(each.memory, Memory), each.case
        assert (each.memory.unwritten, each.memory.outside, each.memory.unstable) == (0, 0, 0)
        assert each.memory.total == 12


class _Binding:
    """What an InferenceSession's binding is asked for; it writes all elements but the first, and the second
    from before its input."""

    def __init__(self) -> None:
        self.bound: dict[str, int] = {}

    def bind_input(self, name: str, _device: str, _id: int, _type: object, _shape: object, at: int) -> None:
        self.bound[name] = at

    bind_output = bind_input


class _Session:
    def io_binding(self) -> _Binding:
        return _Binding()

    def run_with_iobinding(self, binding: _Binding) -> None:
        source, target = binding.bound["X"], binding.bound["Y"]
        worker.ctypes.memmove(target + 4, source - 4, 8)


def test_what_is_not_written_and_what_is_read_outside_shows() -> None:
    runtime = worker.OnnxRuntime()
    first = np.array([1, 2, 3], np.float32)
    unit = {
        "provider": "CPUExecutionProvider",
        "inputs": [["X", 1]],
        "outputs": [["Y", 1]],
        "in_place": False,
    }
    runs = []
    for patterns in PATTERNS:
        over = dict(unit, patterns=patterns, output_shapes=[[[3]]])
        ((array, _),) = runtime.run(_Session(), over, [first], 0)
        runs.append((Tensor("float32", array),))
    assert examine((Tensor("float32", np.array([0, 0, 1], np.float32)),), runs) == Memory(1, 1, 0, 3)


def test_what_is_not_examined() -> None:
    prepared = prepare("Round", "float32")
    graph, held = graph_of(prepared), PatternRuns("CPUExecutionProvider")
    wrong = Result(prepared.case.id, "x", "cpu", Validity.VALID, {}, Outcome.MISMATCH, Verdict.NEW)
    answered = Execution(outputs(1), None, "compare", None, 0.0)
    assert held.hold(prepared, graph, answered, wrong)
    assert not held.hold(prepared, graph._replace(in_place=True), answered, wrong)
    assert not held.hold(prepared, graph, answered, msgspec.structs.replace(wrong, outcome=Outcome.REJECTED))
    assert not held.hold(prepared, graph, answered._replace(outputs=outputs()), wrong)
    assert not held.hold(
        prepared, graph, answered._replace(outputs=(Tensor("string", np.array(["a"], object)),)), wrong
    )
    assert not PatternRuns("FakeExecutionProvider").hold(prepared, graph, answered, wrong)


class _Ending:
    """A pool whose workers end over each call of Round, and answer others."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, units: Iterator[GraphCases], *, keep: bool) -> Iterator[tuple[Prepared, Graph, Execution]]:
        for unit in units:
            for prepared in unit.cases:
                self.ran.append(prepared.case.operator)
                ends = prepared.case.operator == "Round"
                answer = Execution(None if ends else outputs(1), None, "compare", None, 0.0)
                yield prepared, unit.graph, answer._replace(ended="crash" if ends else None)


def test_workers_that_end_over_one_operator_leave_others_to_be_examined() -> None:
    held, pool = PatternRuns("CPUExecutionProvider"), _Ending()
    for number, operator in enumerate(["Round"] * 9 + ["GatherND"]):
        prepared = prepare(operator, "float32")
        graph = graph_of(prepared)._replace(digest=str(number))
        wrong = Result(prepared.case.id, operator, "cpu", Validity.VALID, {}, Outcome.MISMATCH, Verdict.NEW)
        assert held.hold(prepared, graph, Execution(outputs(1), None, "compare", None, 0.0), wrong)
    found = [result.memory for _, _, result in held.results(cast("WorkerPool", pool))]
    assert found == [UNSET] * 9 + [Memory(0, 0, 0, 1)]
    assert pool.ran == ["Round"] * 4 + ["GatherND"] * 2
