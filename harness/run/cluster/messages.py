"""What the first process and the nodes of a cluster tell each other. All of it is pickled, so each can run code in the
other: only TLS or a network of one's own keeps strangers out."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from harness.model.header import ClusterNode, Select, Shard
from harness.model.query import Query
from harness.model.target_info import TargetInfo
from harness.run.artifacts import TensorFile
from harness.run.job import RunInputs
from harness.run.processes.process import ProcessReport
from harness.specs.reading.load import LoadedSpec
from harness.targets.launching import Hello


class OwnSpec(NamedTuple):
    """A spec that comes with the harness, which every node has itself: the file's name and a digest of its text."""

    name: str
    digest: str


def spec_sent(spec: LoadedSpec) -> LoadedSpec | OwnSpec:
    """Return the harness's own spec by name and digest, which a node has itself, any other whole."""
    return OwnSpec(spec.path.name, text_digest(spec.path.read_bytes())) if spec.built_in else spec


def text_digest(data: bytes) -> str:
    """Return the digest of a file's text, independent of the line endings of a checkout."""
    return sha256(data.replace(b"\r\n", b"\n")).hexdigest()


class RunOrder(NamedTuple):
    """The plan of a run, from which a node makes its blocks and starts its targets. Blocks have at least
    `size` cases; `jobs` is the number of workers per target on a node."""

    run_id: str
    inputs: RunInputs
    """Without a selection, which a node makes itself."""
    specs: tuple[LoadedSpec | OwnSpec, ...]
    queries: tuple[Query, ...]
    select: Select
    shard: Shard | None
    jobs: int
    size: int


class TargetHere(NamedTuple):
    """A target whose worker has greeted on a node."""

    hello: Hello
    runtime: str
    info: TargetInfo


class NodeReady(NamedTuple):
    """A node that has planned a run and started its targets: of each either that, or why it has not."""

    node: ClusterNode
    targets: tuple[TargetHere | str, ...]


class NodeRefused(NamedTuple):
    """Why a node can have no part in a run."""

    why: str


class BlockTask(NamedTuple):
    """A block to run on a target: the chosen cases (None for all), the target's entry in the header, and the used
    part of the limits on tensors."""

    target: int
    info: TargetInfo
    number: int
    digest: str
    positions: tuple[int, ...] | None
    used: tuple[int, ...]


class BlockResults(NamedTuple):
    """The results of a block: lines of the run file, the evidence about entries, and files for `artifacts/`."""

    lines: bytes
    report: ProcessReport
    tensors: tuple[TensorFile, ...]


class NodeLacks(NamedTuple):
    """Why a node's workers for a target no longer start."""

    why: str
