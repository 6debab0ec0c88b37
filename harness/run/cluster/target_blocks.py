"""Carries out one target's part of a run on the nodes that have it: hands out its blocks and writes their results, while
nodes come and go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from queue import Empty
from time import monotonic

from harness.model.case import Case
from harness.model.errors import HarnessFault, NodesLost
from harness.model.result import Error
from harness.model.target_info import TargetInfo
from harness.results.counts import Counts
from harness.results.runfile import ResultLines
from harness.run.cluster import node as remote
from harness.run.cluster.assignments import Assignments, PendingBlock
from harness.run.cluster.messages import BlockResults, BlockTask, NodeLacks
from harness.run.cluster.nodes import RunNodes
from harness.run.cluster.scheduler import NodeGone, TaskEnded
from harness.run.job import TargetRun
from harness.run.numbers import LocalNumbers
from harness.run.processes.process import Fault, ProcessReport, Sink
from harness.specs.blocks import BlockWalk, CaseBlock

_PATIENCE_SECONDS = 60.0
"""How long a run waits for a node when all are gone."""
Ticket = tuple[str, int, int]
"""A task: node, target, and the number of the attempt."""


class TargetBlocks:
    """The blocks of a target, from the first that is handed out to the last that is written."""

    def __init__(
        self, nodes: RunNodes, number: int, info: TargetInfo, job: TargetRun, used: LocalNumbers
    ) -> None:
        self._nodes = nodes
        self._number = number
        self._info = info
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
                self._number,
                self._info,
                block.number,
                block.digest,
                block.positions,
                self._used.take(),
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
