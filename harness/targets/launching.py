"""How a worker is started, the facts about a worker behind a connection, and its greeting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from harness.model.errors import TargetUnavailable
from harness.worker.worker import PROTOCOL


class Link(Protocol):
    """The facts about workers behind a connection."""

    def refusal(self, how: str, printed: str) -> str:
        """Say in one line why a worker that ended so and printed this never greeted, and what to do."""

    def final(self, how: str, printed: str) -> bool:
        """Say whether a worker that ended so before it greeted would end so again."""

    def broken(self, how: str, printed: str) -> bool:
        """Say whether the connection ended, and not the worker: its case is then not to blame."""


class Launch(NamedTuple):
    """How to start a worker of a runtime, and what every session of the target is made with."""

    argv: Sequence[str]
    env: Mapping[str, str] | None
    provider: str
    provider_options: Mapping[str, str]
    config: Mapping[str, str]
    start_seconds: float = 60.0
    memory_limit: int | None = None
    runtime: str = "this interpreter"
    preamble: bytes = b""
    link: Link | None = None
    threads: int = 1
    forks: Sequence[str] = ()
    """The program that forks its workers, where one can."""


class Hello(msgspec.Struct, frozen=True):
    """A worker's greeting."""

    protocol: int
    onnxruntime: str | None
    providers: tuple[str, ...]
    python: str
    numpy: str
    platform: str
    device: dict[str, object] = {}
    library: str = ""
    """Which file onnxruntime is, by size and time."""


def greeting(body: memoryview) -> Hello:
    """Return the facts in a worker's greeting. Errors: ValueError if it is no greeting, TargetUnavailable if
    the worker is of another version of the harness."""
    try:
        hello = msgspec.json.decode(body, type=Hello)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a greeting: {error}") from error
    if hello.protocol != PROTOCOL:
        raise TargetUnavailable(
            f"worker speaks protocol {hello.protocol}, this harness {PROTOCOL}: the two are of different versions"
        )
    return hello
