"""A node's side of a run: plans it, starts the targets, and runs blocks with workers that stay from one to the next.

Dask calls these functions in the node's process, by their names; what a run needs there stays in the process until the
run ends.
"""

from __future__ import annotations

import gc
import io
import pickle
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.model.dtypes import Array
from harness.model.errors import HarnessError, HarnessFault, SpecError, TargetUnavailable
from harness.model.shares import WHOLE, LocalNumbers
from harness.results.counts import Counts
from harness.results.runfile import ResultLines
from harness.run.artifacts import Artifacts
from harness.run.cluster.blocks import BlockWalk
from harness.run.cluster.identity import identity, node_here
from harness.run.cluster.messages import (
    BlockResults,
    BlockTask,
    NodeFault,
    NodeLacks,
    NodeReady,
    NodeRefused,
    OwnSpec,
    RunOrder,
    SentTensors,
    TargetHere,
    text_digest,
)
from harness.run.cluster.scheduler import worker_name
from harness.run.job import RunInputs, TargetRun
from harness.run.probe import greeting
from harness.run.target_info import target_info
from harness.specs.expand import expand
from harness.specs.load import LoadedSpec, default_folder, load_specs
from harness.specs.selection import ChosenCases, Selection, select
from harness.targets.launches import launch, make_ready
from harness.targets.pool import WorkerPool
from harness.targets.target import greeted

_RUNS: dict[str, NodeRun] = {}
"""The runs that this process has part in, by run id."""
INSTALL = "install the same versions on every node, for instance those of .ci/requirements.lock"


def prepare(run_id: str, theirs: Sequence[str], order: bytes) -> NodeReady | NodeRefused:
    """Plan a run and start its targets; `theirs` is the first process's identity, `order` its pickled RunOrder."""
    differs = identity().against(theirs)
    if differs is not None:
        return NodeRefused(f"{differs}: {INSTALL}")
    if run_id not in _RUNS:
        try:
            _RUNS[run_id] = NodeRun(worker_name(), pickle.loads(order))
        except SpecError as error:
            return NodeRefused(f"{error.problems[0]}: {INSTALL}")
        except HarnessError as error:
            return NodeRefused(str(error))
    return _RUNS[run_id].ready


def work(run_id: str, task: BlockTask) -> BlockResults | NodeLacks | NodeFault | None:
    """Run a block; None where the run has been stopped."""
    run = _RUNS.get(run_id)
    if run is None:
        return None
    try:
        return run.block(task)
    except TargetUnavailable as error:
        return NodeLacks(str(error))
    except HarnessError as error:
        return NodeFault(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, the first process tells it
        fault = HarnessFault(f"a fault in the harness: {type(error).__name__}: {error}")
        return NodeFault(fault, traceback.format_exc())


def release(run_id: str, target: int) -> None:
    """End the workers of a target that is done."""
    if (run := _RUNS.get(run_id)) is not None:
        run.release(target)


def stop(run_id: str) -> None:
    """End a node's part in a run: a block that is running breaks off at its next result."""
    run = _RUNS.pop(run_id, None)
    if run is not None:
        run.stopped = True
        threading.Thread(target=run.close).start()  # who calls it serves the node's connections


class NodeRun:
    """A node's part in a run; one block at a time."""

    def __init__(self, name: str, order: RunOrder) -> None:
        """Plan it and start the first worker of each target. Errors: SpecError and UsageError for other specs than the
        first process's."""
        self.stopped = False
        self._order = order
        self._lock = threading.Lock()
        self._pools: dict[int, tuple[bool | None, WorkerPool]] = {}
        self._walk = BlockWalk(_selection(order), order.size)
        gc.freeze()  # the plan stays: the collector need not walk through it again and again
        make_ready(order.targets)
        here = tuple(map(self._open, range(len(order.targets))))
        infos = {
            target.name: found.info
            for target, found in zip(order.targets, here, strict=True)
            if isinstance(found, TargetHere)
        }
        self._here = here
        self.ready = NodeReady(node_here(name, infos), here)

    def _open(self, number: int) -> TargetHere | str:
        target = self._order.targets[number]
        try:
            pool = self._new_pool(number)
            hello = greeting(pool, target)
        except TargetUnavailable as error:
            return str(error)
        self._pools[number] = None, pool
        return TargetHere(hello, pool.runtime, target_info(greeted(target, hello), hello, pool.runtime))

    def block(self, task: BlockTask) -> BlockResults | None:
        """Run a block's cases on its target; None where the run is stopped in the meantime."""
        with self._lock:
            block = self._walk.find(task.number, valid=task.valid)
            if block.digest() != task.digest:
                raise HarnessFault(
                    f"node {self.ready.node.name} plans other cases than the first process (block {task.number}): {INSTALL}"
                )
            cases = block.cases()
            if task.positions is not None:
                cases = [cases[position] for position in task.positions]
            return self._run(task, ChosenCases(cases))

    def _run(self, task: BlockTask, chosen: ChosenCases) -> BlockResults | None:
        order, here = self._order, self._here[task.target]
        assert isinstance(here, TargetHere)
        target = greeted(order.targets[task.target], here.hello)
        known = order.expectations.for_target(target.name, task.info)
        inputs = RunInputs(
            order.targets, chosen, order.expectations, order.baseline, None, order.seed, order.timeout, order.reruns
        )  # fmt: skip
        tensors = _SentArtifacts(task.used)
        job = TargetRun(inputs, target, known, None, tensors, WHOLE, keep=True)
        counts, lines, number = Counts(), bytearray(), 0
        writer = ResultLines(lambda data, _: lines.extend(data))
        for result in job.results(self._pool(task.target, valid=task.valid)):
            if self.stopped:
                return None
            writer.add(result)
            counts.add(result)
            number += 1
        writer.flush()
        return BlockResults(bytes(lines), number, counts, known.findings(), tuple(tensors.sent))

    def _pool(self, number: int, *, valid: bool) -> WorkerPool:
        """Return the target's workers: those that ran valid cases run no others."""
        kind, pool = self._pools.get(number, (None, None))
        if pool is not None and kind in (None, valid):
            self._pools[number] = valid, pool
            return pool
        if pool is not None:
            pool.close()
        fresh = self._new_pool(number)
        self._pools[number] = valid, fresh
        return fresh

    def _new_pool(self, number: int) -> WorkerPool:
        order = self._order
        return WorkerPool(launch(order.targets[number]), size=order.jobs, timeout=order.timeout)

    def release(self, number: int) -> None:
        """End the workers of a target."""
        with self._lock:
            _, pool = self._pools.pop(number, (None, None))
            if pool is not None:
                pool.close()

    def close(self) -> None:
        """End all workers, after the block that is running."""
        for number in list(self._pools):
            self.release(number)


class _SentArtifacts(Artifacts):
    """Keeps tensors as files in memory, for the first process to write."""

    def __init__(self, used: Sequence[int]) -> None:
        numbers = LocalNumbers(len(used))
        numbers.put(*used)
        super().__init__(Path(), numbers)
        self.sent: list[SentTensors] = []

    def _put(self, name: str, arrays: dict[str, Array], *, expected: bool) -> None:
        file = io.BytesIO()
        np.savez(file, **arrays)  # type: ignore[arg-type] # numpy types savez's keywords as its flag
        size = sum(array.nbytes for array in arrays.values())
        self.sent.append(SentTensors(name, file.getvalue(), size, expected))


def _selection(order: RunOrder) -> Selection:
    plan = expand(
        [_spec(each) for each in order.specs],
        order.queries,
        everything=order.select == "all",
        thorough=order.select == "thorough",
    )
    selection = select(plan, order.queries, order.shard, pairwise=order.select == "pairwise")
    if not selection.complete:
        selection.counted()  # which remembers the cases where they are few
    return selection


def _spec(sent: LoadedSpec | OwnSpec) -> LoadedSpec:
    if isinstance(sent, LoadedSpec):
        return sent
    path = default_folder() / sent.name
    if not path.exists() or text_digest(path.read_bytes()) != sent.digest:
        raise HarnessFault(f"its own {sent.name} is another than where the run was started: {INSTALL}")
    (spec,) = load_specs([path])
    return spec
