"""The nodes that carry out a run: has each plan it and start its targets when it comes, forgets it when it goes, and knows
which targets each has and what the run file says of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import reduce

from harness.model.errors import NodesLost, UsageError
from harness.model.header import ClusterNode
from harness.model.target_info import TargetInfo
from harness.run.cluster import node as remote
from harness.run.cluster.identity import identity
from harness.run.cluster.messages import NodeReady, NodeRefused, RunOrder, TargetHere
from harness.run.cluster.scheduler import ClusterEvent, DaskCluster, NodeCame, NodeGone, TaskEnded
from harness.run.resume import alike, in_common

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
