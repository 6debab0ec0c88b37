"""The nodes that carry out a run: has each plan it and start its targets when it comes, forgets it when it goes."""

from __future__ import annotations

import pickle
from collections.abc import Callable

from harness.model.errors import NodesLost, UsageError
from harness.run.cluster import node as remote
from harness.run.cluster.crew import NodeCrew
from harness.run.cluster.identity import identity
from harness.run.cluster.messages import NodeReady, NodeRefused, RunOrder
from harness.run.cluster.scheduler import ClusterEvent, DaskCluster, NodeCame, NodeGone, TaskEnded

Say = Callable[[str], None]
"""Is told what a user should know of nodes, a line at a time."""


class Members:
    """Connects the nodes behind a scheduler with what is known of them."""

    def __init__(self, cluster: DaskCluster, order: RunOrder, say: Say) -> None:
        self.cluster = cluster
        self.order = order
        self.say = say
        self.crew = NodeCrew(order.targets)
        self._sent = pickle.dumps(order, protocol=5)
        self._preparing: set[str] = set()

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
        if not self.crew.nodes:
            raise NodesLost(f"--cluster {self.cluster.address}: every node ended before it was ready")

    def news(self, event: ClusterEvent) -> None:
        """Take news of a node in mid run: one that can have no part is left out."""
        try:
            self._news(event)
        except UsageError as error:
            self.say(f"{error}; it has no part in the run")

    def _news(self, event: ClusterEvent) -> None:
        if isinstance(event, NodeCame):
            self._prepare(event.node)
        elif isinstance(event, NodeGone):
            self._preparing.discard(event.node)
            self.cluster.forget(event.node)
            name = self.crew.remove(event.node)
            if name is not None:
                self.say(f"{name} ended; what it had runs again")
        elif isinstance(event.ticket, str) and event.ticket in self._preparing:
            self._preparing.remove(event.ticket)
            self._admit(event.ticket, event)

    def _prepare(self, address: str) -> None:
        if address not in self._preparing:
            self._preparing.add(address)
            arguments = self.order.run_id, tuple(identity()), self._sent
            self.cluster.submit(address, address, remote.prepare, *arguments)

    def _admit(self, address: str, event: TaskEnded) -> None:
        if isinstance(event.value, NodeReady):
            self.crew.add(address, event.value)
            return
        if isinstance(event.value, NodeRefused):
            why = event.value.why
        elif isinstance(event.error, ImportError | AttributeError):
            why = f"the harness there is absent or another ({event.error}): {remote.INSTALL}"
        else:
            why = f"it cannot plan the run: {type(event.error).__name__}: {event.error}"
        raise UsageError(f"node {address}: {why}")
