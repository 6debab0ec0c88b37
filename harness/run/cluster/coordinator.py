"""Coordinates a run on the nodes of a cluster, in the place of processes of this machine.

This process plans the run as every node does, hands out blocks, and alone writes the run file. Only whole blocks are
written, each once.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.header import ClusterNode
from harness.model.target_info import TargetInfo
from harness.run.cluster import node as remote
from harness.run.cluster.messages import RunOrder, spec_sent
from harness.run.cluster.nodes import RunNodes
from harness.run.cluster.scheduler import DaskCluster
from harness.run.cluster.target_blocks import TargetBlocks
from harness.run.job import RunInputs
from harness.run.processes.coordinator import Coordinator
from harness.run.processes.process import Opened, ProcessReport, Sink
from harness.run.request import Request
from harness.run.resume import Done
from harness.specs.blocks import block_size
from harness.specs.reading.load import LoadedSpec
from harness.specs.selection import ChosenCases
from harness.targets.launching import Launch


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

    def run(
        self, number: int, info: TargetInfo, opened: Opened | None, done: Done | None, sink: Sink
    ) -> list[ProcessReport]:
        """Run everything on target `number`. Errors: HarnessError; the blocks that were whole by then have gone to
        `sink`."""
        if opened is None:
            return super().run(number, info, opened, done, sink)
        self._continue(number, done)
        job = self._process.job(number, info, opened, done, self._artifacts(number))
        report = TargetBlocks(self._nodes, number, info, job, self._used[number]).run(sink)
        self._nodes.cluster.everywhere(remote.release, self._nodes.order.run_id, number)
        return [report]

    def close(self) -> None:
        """End the run on every node."""
        super().close()
        self._nodes.cluster.everywhere(remote.stop, self._nodes.order.run_id)
