"""The nodes that have part in a run: which have planned it, which targets each has, and what the run file says of
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness.model.errors import UsageError
from harness.model.header import ClusterNode
from harness.model.target_info import TargetInfo
from harness.run.cluster.messages import NodeReady, TargetHere
from harness.run.resume import alike, in_common
from harness.targets.target import Target


@dataclass
class NodeCrew:
    """Nodes by their addresses. A target is the same on all of them, but for what belongs to a machine alone."""

    targets: Sequence[Target]
    _ready: dict[str, NodeReady] = field(default_factory=dict)
    _lacking: dict[tuple[str, int], str] = field(default_factory=dict)
    _known: list[ClusterNode] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """All that have had part so far, by name."""
        return tuple(sorted(self._known, key=lambda node: (node.host, node.name)))

    def add(self, address: str, ready: NodeReady) -> None:
        """Let a node have part. Errors: UsageError where it has another version of a target than the others."""
        for number, target in enumerate(self.targets):
            here = ready.targets[number]
            for other in self._having(number):
                theirs = other.targets[number]
                if not (isinstance(here, TargetHere) and isinstance(theirs, TargetHere)):
                    continue
                name = alike(here.info, theirs.info)
                if name is not None:
                    mine, its = (getattr(each.info, name) or "none" for each in (here, theirs))
                    raise UsageError(
                        f"{told(ready)} has {target.name} with {name} {mine}, {told(other)} with {its}: "
                        "a run describes a target once, so run each kind of node with a scheduler of its own"
                    )
        self._ready[address] = ready
        if ready.node not in self._known:  # one that was started again under its name
            self._known.append(ready.node)

    def remove(self, address: str) -> str | None:
        """Forget a node that is gone, and return how it is called; None if it had no part."""
        ready = self._ready.pop(address, None)
        return None if ready is None else told(ready)

    def lacks(self, address: str, number: int, why: str) -> str:
        """Note that a node has a target no longer; return how the node is called."""
        self._lacking[address, number] = why
        return told(self._ready[address])

    def why_none(self, number: int) -> str | None:
        """Say why the nodes that are there have a target no longer; None where those that had it are gone."""
        return next(
            (
                why
                for (address, which), why in self._lacking.items()
                if which == number and address in self._ready
            ),
            None,
        )

    def having(self, number: int) -> list[str]:
        """Return the addresses of the nodes that have a target."""
        return [
            address
            for address, ready in self._ready.items()
            if isinstance(ready.targets[number], TargetHere) and (address, number) not in self._lacking
        ]

    def here(self, number: int) -> TargetHere | str:
        """Return a target as some node has it; where none has, why."""
        for ready in self._having(number):
            found = ready.targets[number]
            assert isinstance(found, TargetHere)
            return found
        reasons = {str(ready.targets[number]): told(ready) for ready in self._ready.values()}
        if len(reasons) == 1:
            return next(iter(reasons))
        return "; ".join(f"{name}: {reason}" for reason, name in reasons.items()) or "no node is there"

    def info(self, number: int) -> TargetInfo:
        """Describe a target by what all nodes that have it have in common."""
        infos = [
            found.info
            for ready in self._having(number)
            if isinstance(found := ready.targets[number], TargetHere)
        ]
        common = infos[0]
        for info in infos[1:]:
            common = in_common(common, info)
        return common

    def _having(self, number: int) -> Iterator[NodeReady]:
        return (ready for ready in self._ready.values() if isinstance(ready.targets[number], TargetHere))


def told(ready: NodeReady) -> str:
    """Say which node is meant."""
    return f"node {ready.node.name} on {ready.node.host}"
