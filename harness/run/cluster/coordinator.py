"""Coordinates a run on the nodes of a cluster, in the place of processes of this machine.

This process plans the run as every node does, hands out blocks, and alone writes the run file. Only whole blocks are
written, each once.

`RunNodes` has each node plan the run and start its targets when it comes, forgets it when it goes, and knows which targets
each has and what the run file says of it. `TargetBlocks` carries out one target's part of a run on the nodes that have
it: it hands out its blocks and writes their results, while nodes come and go.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from queue import Empty
from time import monotonic

from harness.model.case import Case
from harness.model.errors import HarnessFault, NodesLost, UsageError
from harness.model.header import ClusterNode
from harness.model.result import Error
from harness.model.target_info import TargetInfo
from harness.results.counts import Counts
from harness.results.runfile import ResultLines
from harness.run.cluster import node as remote
from harness.run.cluster.assignments import Assignments, PendingBlock
from harness.run.cluster.identity import identity
from harness.run.cluster.messages import (
    BlockResults,
    BlockTask,
    NodeLacks,
    NodeReady,
    NodeRefused,
    RunOrder,
    TargetHere,
    spec_sent,
)
from harness.run.cluster.scheduler import ClusterEvent, DaskCluster, NodeCame, NodeGone, TaskEnded
from harness.run.job import RunInputs, TargetRun
from harness.run.numbers import LocalNumbers
from harness.run.processes.coordinator import Coordinator
from harness.run.processes.process import Fault, Opened, ProcessReport, Sink, TargetPart
from harness.run.request import Request
from harness.run.resume import alike, in_common
from harness.specs.reading.load import LoadedSpec
from harness.specs.selection import BlockWalk, CaseBlock, ChosenCases, block_size
from harness.targets.launching import Launch

_PATIENCE_SECONDS = 60.0
"""How long a run waits for a node when all are gone."""
Ticket = tuple[str, int, int]
"""A task: node, target, and the number of the attempt."""
Say = Callable[[str], None]
"""Takes what a user should know of nodes, a line at a time."""


class RunNodes:
    """The nodes behind a scheduler, by their addresses. A target is the same on all of them, but for what belongs to a
    machine alone."""

    def __init__(self, cluster: DaskCluster, order: RunOrder, say: Say) -> None:
        self.cluster = cluster
        self.order = order
        self.say = say
        self._sent = pickle.dumps(order, protocol=5)
        self._preparing: set[str] = set()
        self._ready: dict[str, NodeReady] = {}
        self._lacking: dict[tuple[str, int], str] = {}
        self._known: list[ClusterNode] = []

    @property
    def known(self) -> tuple[ClusterNode, ...]:
        """All nodes that have had part so far, by name."""
        return tuple(sorted(self._known, key=lambda node: (node.host, node.name)))

    def gather(self) -> None:
        """Wait until all nodes that are there are ready. Errors: UsageError for one that can have no part, NodesLost
        where none is left."""
        nodes = self.cluster.nodes()
        where = f"; dashboard: {self.cluster.dashboard}" if self.cluster.dashboard else ""
        self.say(f"cluster {self.cluster.address}: {len(nodes)} node{'s' * (len(nodes) != 1)}{where}")
        for address in nodes:
            self._prepare(address)
        while self._preparing:
            self._news(self.cluster.inbox.get())
        if not self._known:
            raise NodesLost(f"--cluster {self.cluster.address}: every node ended before it was ready")

    def news(self, event: ClusterEvent) -> None:
        """Take news of a node in mid run: one that can have no part is left out."""
        try:
            self._news(event)
        except UsageError as error:
            self.say(f"{error}; it has no part in the run")

    def lacks(self, address: str, number: int, why: str) -> None:
        """Note that a node has a target no longer."""
        if address in self.having(number):
            self._lacking[address, number] = why
            target = self.order.inputs.targets[number].name
            self.say(f"{_name(self._ready[address])} has {target} no longer: {why}")

    def why_none(self, number: int) -> str | None:
        """Say why the nodes that are there have a target no longer; None where those that had it are gone."""
        lacking = self._lacking.items()
        return next((why for (node, which), why in lacking if which == number and node in self._ready), None)

    def having(self, number: int) -> list[str]:
        """Return the addresses of the nodes that have a target."""
        return [node for node, *_ in self._having(number) if (node, number) not in self._lacking]

    def here(self, number: int) -> TargetHere | str:
        """Return a target as some node has it; where none has, why."""
        for _, _, here in self._having(number):
            return here
        reasons = {str(ready.targets[number]): _name(ready) for ready in self._ready.values()}
        if len(reasons) == 1:
            return next(iter(reasons))
        return "; ".join(f"{name}: {reason}" for reason, name in reasons.items()) or "no node is there"

    def info(self, number: int) -> TargetInfo:
        """Describe a target by what all nodes that have it have in common."""
        return reduce(in_common, (here.info for _, _, here in self._having(number)))

    def _having(self, number: int) -> Iterator[tuple[str, NodeReady, TargetHere]]:
        for address, ready in self._ready.items():
            here = ready.targets[number]
            if isinstance(here, TargetHere):
                yield address, ready, here

    def _news(self, event: ClusterEvent) -> None:
        if isinstance(event, NodeCame):
            self._prepare(event.node)
        elif isinstance(event, NodeGone):
            self._preparing.discard(event.node)
            self.cluster.forget(event.node)
            ready = self._ready.pop(event.node, None)
            if ready is not None:
                self.say(f"{_name(ready)} ended; what it had runs again")
        elif isinstance(event.ticket, str) and event.ticket in self._preparing:
            self._preparing.remove(event.ticket)
            self._admit(event.ticket, event)

    def _prepare(self, address: str) -> None:
        if address not in self._preparing:
            self._preparing.add(address)
            arguments = self.order.run_id, tuple(identity()), self._sent
            self.cluster.submit(address, address, remote.prepare, *arguments)

    def _admit(self, address: str, event: TaskEnded) -> None:
        """Let a node have part. Errors: UsageError where it cannot plan the run, or has another version of a target than
        the others."""
        if not isinstance(event.value, NodeReady):
            if isinstance(event.value, NodeRefused):
                why = event.value.why
            elif isinstance(event.error, ImportError | AttributeError):
                why = f"the harness there is absent or another ({event.error}): {remote.INSTALL}"
            else:
                why = f"it cannot plan the run: {type(event.error).__name__}: {event.error}"
            raise UsageError(f"node {address}: {why}")
        ready = event.value
        for number, here in enumerate(ready.targets):
            for _, other, theirs in self._having(number):
                if isinstance(here, TargetHere) and (field := alike(here.info, theirs.info)) is not None:
                    target = self.order.inputs.targets[number].name
                    mine, its = (getattr(each.info, field) or "none" for each in (here, theirs))
                    raise UsageError(
                        f"{_name(ready)} has {target} with {field} {mine}, {_name(other)} with {its}: a run describes "
                        "a target once, so run each kind of node with a scheduler of its own"
                    )
        self._ready[address] = ready
        if ready.node not in self._known:  # one that was started again under its name
            self._known.append(ready.node)


def _name(ready: NodeReady) -> str:
    return f"node {ready.node.name} on {ready.node.host}"


class TargetBlocks:
    """The blocks of a target, from the first that is handed out to the last that is written."""

    def __init__(self, nodes: RunNodes, part: TargetPart, job: TargetRun, used: LocalNumbers) -> None:
        self._nodes = nodes
        self._number = part.number
        self._info = part.info
        self._job = job
        self._used = used
        self._all = partial(job.work.selection.blocks, nodes.order.size)
        self._counts = Counts()
        self._blocks = Assignments(self._pending(), self._positions)

    def run(self, sink: Sink) -> ProcessReport:
        """Run everything; lines go to `sink` a block at a time. Errors: HarnessFault from a node, NodesLost where no
        node is left."""
        problem, end = None, None
        while True:
            having = self._nodes.having(self._number)
            for node in having:
                self._hand_out(node)
            if self._blocks.done:
                break
            if having or self._blocks.waiting:
                end = None
            elif why := self._nodes.why_none(self._number):
                problem = why
                self._counts.lost += 1
                break
            elif end is None:
                end = monotonic() + _PATIENCE_SECONDS
                self._nodes.say(f"no node is left; waiting {_PATIENCE_SECONDS:g} s for one to come")
            self._take(sink, end)
        return ProcessReport(self._counts, self._job.known.findings(), problem)

    def _pending(self) -> Iterator[PendingBlock]:
        for block in self._all():
            positions = self._left(block)
            if positions != ():
                yield PendingBlock(block.number, block.digest(), positions)

    def _left(self, block: CaseBlock) -> tuple[int, ...] | None:
        """Return the positions of the cases that an interrupted run has not done; None for all."""
        if self._job.done is None:
            return None
        cases = block.cases()
        left = {id(case) for case in self._job.left(iter(cases))}
        return tuple(position for position, case in enumerate(cases) if id(case) in left)

    def _cases(self, block: PendingBlock) -> Sequence[Case]:
        return BlockWalk(self._all).find(block.number).cases()

    def _positions(self, block: PendingBlock) -> Sequence[int]:
        return range(len(self._cases(block))) if block.positions is None else block.positions

    def _hand_out(self, node: str) -> None:
        while (found := self._blocks.next_for(node)) is not None:
            attempt, block = found
            task = BlockTask(
                self._number, self._info, block.number, block.digest, block.positions, self._used.take()
            )
            ticket = (node, self._number, attempt)
            self._nodes.cluster.submit(node, ticket, remote.work, self._nodes.order.run_id, task)

    def _take(self, sink: Sink, end: float | None) -> None:
        """Wait for the next event, at most until `end`, and act on it."""
        try:
            event = self._nodes.cluster.inbox.get(timeout=end and max(0.0, end - monotonic()))
        except Empty:
            where = self._nodes.cluster.address
            raise NodesLost(f"no node of {where} is left; start some again") from None
        if isinstance(event, TaskEnded) and isinstance(event.ticket, tuple):
            self._ended(event.ticket, event, sink)
            return
        self._nodes.news(event)
        if isinstance(event, NodeGone):
            self._lost(event.node, sink)

    def _ended(self, ticket: Ticket, event: TaskEnded, sink: Sink) -> None:
        node, number, attempt = ticket
        if number != self._number:
            return
        value = event.value
        if isinstance(value, BlockResults):
            if self._blocks.finished(node, attempt) is not None:
                self._write(value, sink)
        elif isinstance(value, NodeLacks):
            self._blocks.returned(node, attempt)
            self._nodes.lacks(node, self._number, value.why)
        elif isinstance(value, Fault):
            value.reraise()
        elif self._blocks.finished(node, attempt) is not None:
            raise HarnessFault(f"node {node} gave up a block: {event.error or 'the run was stopped there'}")

    def _write(self, results: BlockResults, sink: Sink) -> None:
        if self._job.artifacts is not None:
            for file in results.tensors:
                self._job.artifacts.keep_file(file)
        sink(results.lines, len(results.report.counts))
        self._counts.merge(results.report.counts)
        self._job.known.merge(results.report.findings)

    def _lost(self, node: str, sink: Sink) -> None:
        """Run the blocks of a node that ended again; record the cases that ended it."""
        for attempt in self._blocks.tickets(node):
            self._nodes.cluster.forget((node, self._number, attempt))
        lines = ResultLines(sink)
        for block in self._blocks.lost(node):
            found = self._cases(block)
            for position in self._positions(block):
                why = Error("NodeEnded", "two nodes that ran this case alone ended with it")
                result = self._job.ended_with(found[position], why)
                lines.add(result)
                self._counts.add(result)
        lines.flush()


def on_cluster(
    cluster: DaskCluster,
    request: Request,
    run_id: str,
    specs: Sequence[LoadedSpec],
    work: RunInputs,
    total: int,
) -> ClusterCoordinator:
    """Return the nodes of a cluster for a run of `total` cases, ready for it. Errors: those of
    `ClusterCoordinator`."""
    order = RunOrder(
        run_id=run_id,
        inputs=work._replace(selection=ChosenCases(()), artifacts=None),
        specs=tuple(map(spec_sent, specs)),
        queries=request.queries,
        select=request.select,
        shard=request.shard,
        jobs=request.jobs,
        size=block_size(total, len(cluster.nodes())),
    )
    return ClusterCoordinator(RunNodes(cluster, order, request.say), work)


class ClusterCoordinator(Coordinator):
    """Nodes of a cluster that carry out a run together."""

    def __init__(self, nodes: RunNodes, work: RunInputs) -> None:
        """Have every node plan the run and start its targets. Errors: UsageError for a node with other versions,
        NodesLost."""
        super().__init__(work, 1)
        self._nodes = nodes
        try:
            nodes.gather()
        except BaseException:
            self.close()
            raise

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """The nodes that have had part so far."""
        return self._nodes.known

    def open(self, number: int) -> Opened | str:
        """Return how target `number` is on the nodes that have it; where none has, why."""
        found = self._nodes.here(number)
        if isinstance(found, str):
            return found
        launched = Launch((), None, found.info.provider, {}, {}, runtime=found.runtime)
        return Opened(found.hello, launched)

    def info(self, number: int, opened: Opened | str) -> TargetInfo:
        """Describe target `number` by what its nodes have in common."""
        return super().info(number, opened) if isinstance(opened, str) else self._nodes.info(number)

    def run(self, part: TargetPart, sink: Sink) -> list[ProcessReport]:
        """Run everything on a target. Errors: HarnessError; the blocks that were whole by then have gone to `sink`."""
        if part.opened is None:
            return super().run(part, sink)
        self._continue(part)
        job = self._process.job(part, self._artifacts(part.number))
        report = TargetBlocks(self._nodes, part, job, self._used[part.number]).run(sink)
        self._nodes.cluster.everywhere(remote.release, self._nodes.order.run_id, part.number)
        return [report]

    def close(self) -> None:
        """End the run on every node."""
        super().close()
        self._nodes.cluster.everywhere(remote.stop, self._nodes.order.run_id)
