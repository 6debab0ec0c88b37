"""A cluster inside this process, whose nodes die when a test says so: what a task returns is in the inbox at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count
from queue import SimpleQueue
from typing import Any

import pytest

from harness.run.cluster import node, scheduler
from harness.run.cluster.messages import BlockTask
from harness.run.cluster.scheduler import ClusterEvent, NodeCame, NodeGone, TaskEnded

Dies = Callable[[str, BlockTask], bool]


class InProcessCluster:
    """Nodes by invented addresses; `dies` says whether a node ends with a block, `comes_back` whether another takes its
    place, `instead` what a node returns in the place of results."""

    address = "tcp://inprocess:1"
    dashboard = ""

    def __init__(
        self,
        nodes: int = 3,
        *,
        dies: Dies = lambda _node, _task: False,
        comes_back: bool = True,
        instead: Callable[[str, BlockTask], Any] = lambda _node, _task: None,
    ) -> None:
        self.inbox: SimpleQueue[ClusterEvent] = SimpleQueue()
        self.numbers = count(1)
        self.there = [f"tcp://node:{next(self.numbers)}" for _ in range(nodes)]
        self.dies = dies
        self.comes_back = comes_back
        self.instead = instead
        self.deaths = 0
        self.tasks: list[tuple[str, BlockTask]] = []
        self.forgotten: set[object] = set()

    def nodes(self) -> list[str]:
        return list(self.there)

    def submit(self, address: str, ticket: object, function: Callable[..., Any], *arguments: Any) -> None:
        if address not in self.there:
            return
        if function is node.work:
            task = arguments[1]
            self.tasks.append((address, task))
            if self.dies(address, task):
                self.end(address)
                return
            value = self.instead(address, task) or function(*arguments)
        else:
            value = function(*arguments)
        self.inbox.put(TaskEnded(ticket, value))

    def end(self, address: str) -> None:
        """Let a node die, and what it has not answered with it."""
        self.deaths += 1
        self.there.remove(address)
        self.inbox.put(NodeGone(address))
        if self.comes_back:
            fresh = f"tcp://node:{next(self.numbers)}"
            self.there.append(fresh)
            self.inbox.put(NodeCame(fresh))

    def forget(self, ticket: object) -> None:
        self.forgotten.add(ticket)

    def everywhere(self, function: Callable[..., Any], *arguments: object) -> None:
        function(*arguments)


def put_in_place(monkeypatch: pytest.MonkeyPatch, cluster: InProcessCluster) -> InProcessCluster:
    """Let `--cluster tcp://…` of this process reach the nodes of this cluster."""

    @contextlib.contextmanager
    def connected(_address: str) -> Iterator[InProcessCluster]:
        yield cluster

    monkeypatch.setattr(scheduler, "connected", connected)
    return cluster
