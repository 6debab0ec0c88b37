"""The connection to a Dask scheduler: which nodes there are, and tasks for each. The only module that knows Dask.

Every task is for one node: Dask would run the tasks of a dead worker again by rules of its own, and say of none which
workers died with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, NamedTuple

from harness.model.errors import NodesLost, TargetUnavailable, UsageError, shown
from harness.targets.scratch import Scratch

_CONNECT_SECONDS = 10
_WORKERS_SECONDS = 30
_LOCAL = re.compile(r"local:([1-9][0-9]{0,2})")
_REMOTE = re.compile(r"(?:tcp|tls|ws|wss|ucx)://[^\s/]+:[0-9]{1,5}")
_LOCAL_CONFIG = {
    "distributed.worker.preload": ["harness.run.cluster.apart"],
    "distributed.worker.profile.enabled": False,  # it looks at every stack a hundred times a second
}
_TOPIC = "all"
"""Of the scheduler's events: among others nodes that come and go."""
_MOST = 256


class NodeCame(NamedTuple):
    """A node has joined."""

    node: str


class NodeGone(NamedTuple):
    """A node has left or died."""

    node: str


class TaskEnded(NamedTuple):
    """A task has returned `value`, or Dask could not run it."""

    ticket: object
    value: Any
    error: BaseException | None = None


ClusterEvent = NodeCame | NodeGone | TaskEnded


def check_address(text: str) -> str:
    """Return what follows `--cluster` as it is. Errors: UsageError where it is no address, or the extra is missing."""
    local = _LOCAL.fullmatch(text)
    if not (_REMOTE.fullmatch(text) or (local and int(local[1]) <= _MOST)):
        raise UsageError(
            f"--cluster {shown(text)}: write tls:// or tcp://HOST:PORT of a Dask scheduler, or local:N for N processes here (1 to {_MOST})"
        )
    if find_spec("distributed") is None:
        raise UsageError(
            "--cluster needs Dask: python -m pip install 'onnxruntime-conformance-harness[cluster]'"
        )
    return text


def worker_name() -> str:
    """Return the name of the Dask worker that this process is."""
    from distributed import get_worker

    try:
        return str(get_worker().name)
    except ValueError:
        return "this process"


@contextlib.contextmanager
def connected(text: str) -> Iterator[DaskCluster]:
    """Connect to the scheduler at an address, or start one with its nodes here; both end with the context.

    Errors: UsageError for what is no address, TargetUnavailable for a scheduler out of reach or without nodes, NodesLost
    for one that ends meanwhile.
    """
    check_address(text)
    with _quiet(), contextlib.ExitStack() as stack:
        import distributed

        local = _LOCAL.fullmatch(text)
        wanted = int(local[1]) if local else 1
        cluster = stack.enter_context(_local(wanted)) if local else None
        try:
            if cluster is None:  # a client would wait for ever for the answer of another service
                asyncio.run(asyncio.wait_for(_greeted(text), _CONNECT_SECONDS))
            client = distributed.Client(
                text if cluster is None else cluster, timeout=_CONNECT_SECONDS, set_as_default=False, name="harness"
            )  # fmt: skip
        except (OSError, ValueError, RuntimeError, asyncio.TimeoutError) as error:
            raise TargetUnavailable(
                f"--cluster {text}: no Dask scheduler answers there within {_CONNECT_SECONDS} s: "
                "start one with `dask scheduler`, and name the address that it prints"
            ) from error
        stack.callback(client.close)
        try:
            client.wait_for_workers(wanted, timeout=_WORKERS_SECONDS)
        except (OSError, asyncio.TimeoutError) as error:
            what = "its processes do not start" if local else "the scheduler has no workers"
            raise TargetUnavailable(
                f"--cluster {text}: {what} within {_WORKERS_SECONDS} s"
                + ("" if local else f": start some with `dask worker {text} --nthreads 1`")
            ) from error
        try:
            yield stack.enter_context(DaskCluster(text, client))
        except Exception as error:
            if client.status == "running":
                raise
            raise NodesLost(f"--cluster {text}: the scheduler has ended") from error


async def _greeted(address: str) -> None:
    """Ask a scheduler who it is."""
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as remote:
        await remote.identity()


@contextlib.contextmanager
def _local(number: int) -> Iterator[Any]:
    """Start nodes that know each other by a certificate of their own: whoever reaches a scheduler's port can run code
    as its user."""
    import dask
    import distributed

    scratch = Scratch()
    try:
        with (
            dask.config.set(_LOCAL_CONFIG),
            distributed.LocalCluster(
                n_workers=number, threads_per_worker=1, processes=True, host="127.0.0.1", security=True,
                dashboard_address="127.0.0.1:8787", local_directory=scratch.name, silence_logs=logging.CRITICAL,
            ) as cluster,
        ):  # fmt: skip
            yield cluster
    finally:
        scratch.cleanup()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own messages off stderr; the run reports the nodes itself."""
    import distributed  # makes its loggers, each with a level of its own

    loggers = [
        logging.getLogger(name)
        for name in ("distributed", *logging.root.manager.loggerDict)
        if name.startswith(distributed.__name__)
    ]
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)


class DaskCluster:
    """The nodes behind a scheduler. What happens arrives in `inbox`."""

    def __init__(self, address: str, client: Any) -> None:
        self.address = address
        self.inbox: SimpleQueue[ClusterEvent] = SimpleQueue()
        self._client = client
        self._futures: dict[object, Any] = {}
        client.subscribe_topic(_TOPIC, self._event)

    @property
    def dashboard(self) -> str:
        """Where Dask shows what the nodes do; empty without a dashboard."""
        return str(self._client.dashboard_link or "")

    def nodes(self) -> list[str]:
        """Return the addresses of the nodes that are there."""
        return list(self._client.nthreads())

    def submit(self, node: str, ticket: object, function: Callable[..., Any], *arguments: object) -> None:
        """Have a node call a function; its value arrives in `inbox` with the ticket."""
        future = self._client.submit(
            function, *arguments, key=f"harness-{function.__name__}-{id(self):x}-{ticket}",
            workers=[node], allow_other_workers=False, pure=False,
        )  # fmt: skip
        self._futures[ticket] = future
        asyncio.run_coroutine_threadsafe(self._follow(future, ticket), self._client.loop.asyncio_loop)

    def forget(self, ticket: object) -> None:
        """Want no value of a task any more: of one whose node is gone there will be none."""
        future = self._futures.pop(ticket, None)
        if future is not None:
            future.cancel()

    def everywhere(self, function: Callable[..., Any], *arguments: object) -> None:
        """Have every node call a function, beside its tasks; nodes that cannot are passed over."""
        with contextlib.suppress(OSError, RuntimeError, asyncio.TimeoutError):
            self._client.run(function, *arguments, on_error="ignore")

    async def _follow(self, future: Any, ticket: object) -> None:
        try:
            value, error = await self._client.gather(future, asynchronous=True), None
        except (Exception, asyncio.CancelledError) as failed:  # noqa: BLE001 - what the first process judges
            value, error = None, failed
        if self._futures.pop(ticket, None) is not None:
            self.inbox.put(TaskEnded(ticket, value, error))

    def _event(self, event: tuple[float, Any]) -> None:
        message = event[1]
        kind = message.get("action") if isinstance(message, dict) else None
        if kind == "remove-worker":
            self.inbox.put(NodeGone(message["worker"]))
        elif kind == "add-worker":
            self.inbox.put(NodeCame(message["worker"]))

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.unsubscribe_topic(_TOPIC)
