"""A node's side of a run: plans it, starts the targets, and runs blocks with workers that stay from one to the next.

Dask calls these functions in the node's process, by their names; what a run needs there stays in the process until the
run ends.
"""

from __future__ import annotations

import gc
import pickle
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness.model.errors import HarnessError, HarnessFault, SpecError
from harness.run.artifacts import Artifacts, TensorFile
from harness.run.block_files import make_room
from harness.run.cluster.identity import identity, node_here
from harness.run.cluster.messages import (
    BlockResults,
    BlockTask,
    NodeLacks,
    NodeReady,
    NodeRefused,
    OwnSpec,
    RunOrder,
    TargetHere,
    text_digest,
)
from harness.run.cluster.scheduler import worker_name
from harness.run.numbers import LocalNumbers
from harness.run.processes.process import Fault, Opened, RunProcess, TargetPart, info_of
from harness.run.request import planned
from harness.specs.expand import pieces_of
from harness.specs.reading.load import LoadedSpec, default_folder, load_specs
from harness.specs.selection import BlockWalk, CaseBlock, Selection
from harness.targets.launches import make_ready
from harness.targets.target import Target

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


def work(run_id: str, task: BlockTask) -> BlockResults | NodeLacks | Fault | None:
    """Run a block; None where the run has been stopped."""
    run = _RUNS.get(run_id)
    if run is None:
        return None
    try:
        return run.block(task)
    except Exception as error:  # noqa: BLE001 - whatever it is, the first process reports it
        return Fault.of(error)


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
        self._began = time.time()
        self._lock = threading.Lock()
        selection = _selection(order)
        self._walk = BlockWalk(partial(selection.blocks, order.size))
        gc.freeze()  # the plan stays: the collector need not walk through it again and again
        targets = order.inputs.targets
        make_ready(targets)
        self._process = RunProcess(order.inputs._replace(selection=selection), order.jobs)
        self._opened = [self._process.open(number) for number in range(len(targets))]
        here = tuple(map(_here, targets, self._opened))
        infos = {
            target.name: found.info
            for target, found in zip(targets, here, strict=True)
            if isinstance(found, TargetHere)
        }
        self.ready = NodeReady(node_here(name, infos), here)

    def block(self, task: BlockTask) -> BlockResults | NodeLacks | None:
        """Run a block's cases on its target; None where the run is stopped in the meantime."""
        with self._lock:
            block = self._walk.find(task.number)
            if block.digest() != task.digest:
                raise HarnessFault(
                    f"node {self.ready.node.name} plans other cases than the first process (block {task.number}): {INSTALL}"
                )
            cases = block.cases()
            if task.positions is not None:
                cases = [cases[position] for position in task.positions]
            return self._run(
                task, block._replace(pieces=list(pieces_of(cases, valid=block.valid))), len(cases)
            )

    def _run(self, task: BlockTask, block: CaseBlock, total: int) -> BlockResults | NodeLacks | None:
        opened = self._opened[task.target]
        assert isinstance(opened, Opened)
        tensors, lines = _SentArtifacts(task.used), bytearray()

        def take(data: bytes, _number: int) -> None:
            if self.stopped:
                raise _StoppedError
            lines.extend(data)

        try:
            part = TargetPart(task.target, task.info, opened)
            report = self._process.run(part, [block], tensors, take, keep=True)
        except _StoppedError:
            return None
        if report.problem is not None:
            return NodeLacks(report.problem)
        if len(report.counts) != total:
            raise HarnessFault(f"block {task.number} has {len(report.counts)} results for {total} cases")
        return BlockResults(bytes(lines), report, tuple(tensors.sent))

    def release(self, number: int) -> None:
        """End the workers of a target."""
        with self._lock:
            self._process.release(number)

    def close(self) -> None:
        """End all workers, after the block that is running."""
        with self._lock:
            self._process.close()
        make_room(self._began)


def _here(target: Target, opened: Opened | str) -> TargetHere | str:
    if isinstance(opened, str):
        return opened
    return TargetHere(opened.hello, opened.launch.runtime, info_of(target, opened))


class _StoppedError(Exception):
    """The run was stopped in the middle of a block."""


class _SentArtifacts(Artifacts):
    """Keeps files of tensors for the first process to write."""

    def __init__(self, used: Sequence[int]) -> None:
        numbers = LocalNumbers(len(used))
        numbers.put(*used)
        super().__init__(Path(), numbers)
        self.sent: list[TensorFile] = []

    def _save(self, file: TensorFile) -> None:
        self.sent.append(file)


def _selection(order: RunOrder) -> Selection:
    plan = planned([_spec(each) for each in order.specs], order.queries, order.select)
    selection = Selection(plan, order.queries, order.shard, pairwise=order.select == "pairwise")
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
