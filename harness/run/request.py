"""The parsed request of a run, from the command line."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from harness.model.header import Asked, Select, Shard
from harness.model.query import Query
from harness.specs.expand import Plan, expand
from harness.specs.reading.load import LoadedSpec
from harness.targets.target import Target


def nobody(_target: str, _done: int, _total: int) -> None:
    """Tell no one how far a run is."""


class Request(NamedTuple):
    """What to run; `out` is the folder of this run, `command` and `run_id` what the header records.

    `targets_left_out` says of the default targets that are not here why; `force` replaces a run that `out`
    holds.
    """

    out: Path
    command: str
    targets: tuple[Target, ...]
    specs: tuple[Path, ...] = ()
    expectations: tuple[Path, ...] = ()
    queries: tuple[Query, ...] = ()
    shard: Shard | None = None
    select: Select = "default"
    jobs: int = 2
    timeout: float = 30.0
    seed: int = 0
    min_cases: int = 1
    resume: bool = False
    force: bool = False
    baseline: Path | None = None
    reruns: int = 0
    run_id: str = ""
    cluster: str | None = None
    """The address of a Dask scheduler whose nodes run the cases, or `local:N`; `jobs` are then those of a node."""
    targets_left_out: Mapping[str, str] = {}
    heavy: bool = False
    """Each case takes so long that a few are worth a process of their own."""
    no_cache: bool = False
    """Every case is made and judged anew, though an earlier run kept what it came to."""
    progress: Callable[[str, int, int], None] = nobody
    watch: Callable[[bytes], None] = lambda _lines: None
    """Is given the lines of results as they are written."""
    say: Callable[[str], None] = lambda _line: None
    """Takes what happens to the nodes of a cluster."""

    def asked(self) -> Asked:
        """Return what the header keeps of it."""
        return Asked(
            specs=tuple(map(str, self.specs)),
            queries=tuple(query.text for query in self.queries),
            select=self.select,
            shard=self.shard,
            expectations=tuple(map(str, self.expectations)),
            baseline=None if self.baseline is None else str(self.baseline),
            timeout=self.timeout,
            reruns=self.reruns,
        )


def planned(
    specs: Sequence[LoadedSpec],
    queries: Sequence[Query],
    chosen: Select,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> Plan:
    """Plan the cases of which a run selects some; `tell` is called with the number of planned specs. Errors: SpecError."""
    return expand(specs, queries, everything=chosen == "all", thorough=chosen == "thorough", tell=tell)


def new_run_id() -> str:
    """Return an id for a run that begins now: the time in UTC, and four digits that tell runs of one second
    apart."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
