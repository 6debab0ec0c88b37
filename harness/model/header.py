"""The first and the last line of a run file: cases, targets and specs of the run, and how it ended."""

from __future__ import annotations

import re
import textwrap
from typing import Annotated, Literal

import msgspec

from harness.model.limits import Count, Seconds
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome

SCHEMA = 1
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-")


def moment(run_id: str) -> str:
    """Write the time that a run id begins with, in UTC: `2026-11-25 07:57`; empty for an id that has none."""
    time = _TIME.match(run_id)
    return "{}-{}-{} {}:{}".format(*time.groups()) if time else ""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of a spec's entry: its source document, the rule that its cases break or that is left open, and its
    place (`specs/Gather.yaml:14`)."""

    source: str | None = None
    rule: str | None = None
    spec: str | None = None


class Against(msgspec.Struct, frozen=True):
    """The earlier run that a run is judged against.

    `targets` names for each target of the run the earlier one's, `differing` what is not the same: `specs`,
    `oracle`, `seed`.
    """

    run_id: str
    targets: dict[str, str]
    differing: tuple[str, ...] = ()


class Shard(msgspec.Struct, frozen=True):
    """A shard of a run: number `index` of `of`, counted from 1. It has every `of`-th block, so cases that share a graph
    stay together."""

    index: Annotated[int, msgspec.Meta(ge=1)]
    of: Annotated[int, msgspec.Meta(ge=1)]

    def holds(self, block: int) -> bool:
        """Say whether a block is this shard's, by its number."""
        return block % self.of == self.index - 1


Select = Literal["default", "all", "pairwise", "thorough"]
"""Which cases of the sweeps: what the specs say, the whole product also where they keep as few as show every
pair, few of each sweep, or every triple where a spec asks for pairs of its factors."""


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a run beside targets and seed, with which `--resume` continues. Paths are as on the
    command line.

    Without `specs` and `expectations` it is the harness's own ones; `reruns` is how often unexpected results
    are repeated.
    """

    specs: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    select: Select = "default"
    shard: Shard | None = None
    expectations: tuple[str, ...] = ()
    baseline: str | None = None
    timeout: Seconds = 30.0
    reruns: Count = 0


class Merged(msgspec.Struct, frozen=True, omit_defaults=True):
    """The runs that a merged run is made of, by run id, and the numbers of the shards that it lacks."""

    runs: tuple[str, ...]
    missing: tuple[Count, ...] = ()


class ClusterNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node of a cluster that carried out a part of a run: the name that Dask has for it, its machine, the versions
    of what prepares and judges, and each target as the node itself has it, or why it has not."""

    name: str
    host: str
    harness: str
    python: str
    numpy: str
    onnx: str
    platform: str
    targets: dict[str, TargetInfo] = {}


class Expectation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reviewed entry as the run's header states it, for reports to show why a deviation is known.

    `expect` are the outcomes that it allows; of a `pending` one, which nobody has reviewed yet, any is. `releases`
    are the version ranges in which it holds, by what has the version: `{onnxruntime: ">=1.24,<1.28"}`; none in every
    release, None in files that are older than this key.
    """

    expect: tuple[Outcome, ...]
    reason: str
    link: str
    title: str | None = None
    documents: str | None = None
    pending: bool = False
    releases: dict[str, str] | None = None

    @property
    def name(self) -> str:
        """Its title, or the first words of its reason."""
        return self.title or textwrap.shorten(self.reason, 60, placeholder="…")


class Header(msgspec.Struct, frozen=True, tag_field="type", tag="run", omit_defaults=True):
    """The first line of a run file.

    `origins` are by operator and entry as ids begin, for instance `GatherND:sweep=tuple_empty`.
    `targets_left_out` are those that a run of the default targets does without,
    each with the reason. `selection` is None in files that are older than this key. `expectations` are the
    entries that hold on one of the targets and speak of one of the run's operators, by their place among all
    entries. `nodes` are those of a cluster that were there when the run began or was continued.
    """

    schema: int
    run_id: str
    command: str
    seed: Count
    hashes: dict[str, str]
    targets: dict[str, TargetInfo]
    origins: dict[str, Origin] = {}
    baseline: Against | None = None
    selection: Asked | None = None
    targets_left_out: dict[str, str] = {}
    merged: Merged | None = None
    expectations: dict[Count, Expectation] = {}
    nodes: tuple[ClusterNode, ...] = ()

    def entry(self, number: object) -> Expectation | None:
        """Return the entry by which a result was judged; None where it has no number of one."""
        return self.expectations.get(number) if isinstance(number, int) else None


def of_other_files(one: Header, other: Header) -> bool:
    """Say whether the specs of two runs differ because the runs were started with other files."""
    asked = one.selection, other.selection
    differ = one.hashes.get("specs") != other.hashes.get("specs")
    return differ and None not in asked and asked[0].specs != asked[1].specs  # type: ignore[union-attr] # neither is None


def differing_inputs(one: Header, other: Header) -> tuple[str, ...]:
    """Return which of `specs`, `oracle` and `seed` differ between two runs. Specs do not count if both runs
    were started with other files."""
    hashes = [name for name in ("specs", "oracle") if one.hashes.get(name) != other.hashes.get(name)]
    found = (*hashes, *["seed"] * (one.seed != other.seed))
    return found[of_other_files(one, other) :]


def in_another_order(one: Header, other: Header) -> bool:
    """Say whether two headers give an entry's number to different ones, so that their results cannot stand in
    one file."""
    return any(other.expectations.get(number, entry) != entry for number, entry in one.expectations.items())


class End(msgspec.Struct, frozen=True, tag_field="type", tag="end"):
    """The last line of a complete run file.

    `selected` and `run` count results (cases x targets, without those that a target's API cannot express);
    `left_out` counts cases by reason; `problems` are stale, unmatched or expired expectations, which fail the
    run. `nodes` are those of a cluster that joined after the header was written.
    """

    selected: Count
    run: Count
    left_out: dict[str, Count]
    outcomes: dict[str, Count]
    verdicts: dict[str, Count]
    problems: tuple[str, ...] = ()
    seconds: Seconds = 0.0
    nodes: tuple[ClusterNode, ...] | msgspec.UnsetType = msgspec.UNSET
