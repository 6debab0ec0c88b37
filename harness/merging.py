"""`harness merge`: the runs of shards as one run."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from hashlib import blake2b
from pathlib import Path

import msgspec

from harness.counts import Counts
from harness.errors import UsageError
from harness.expectations import TargetExpectations, load_expectations
from harness.hashes import run_hashes
from harness.pipeline import Summary
from harness.records import NOT_EXECUTED, End, Header, conforms, inexpressible
from harness.runfile import RunReader, RunWriter
from harness.selection import OTHER_SHARD, PARTIAL


def merge_runs(runs: Sequence[Path], folder: Path) -> Summary:
    """Write the union of runs of one specification; a case that two of them hold, or a run of other specs, seed or targets is an error."""
    readers = [RunReader(run) for run in runs]
    first = readers[0].header
    for reader in readers[1:]:
        _same(first, reader.header, reader.path)
    path = folder / "run.jsonl"
    if any(reader.path.resolve() == path.resolve() for reader in readers):
        raise UsageError(f"{path}: is one of the runs to merge; choose another folder with -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}") from error
    command = " + ".join(dict.fromkeys(reader.header.command for reader in readers))
    known = _known(first)
    seen: set[bytes] = set()
    counts = Counts()
    left_out: Counter[str] = Counter()
    problems: list[str] = []
    seconds = 0.0
    partial = folder / ".run.jsonl.part"
    after_full = "nothing was merged: free some space, then merge again"
    with RunWriter(partial, after_full=after_full) as writer, _whole_or_none(writer):
        writer.add(msgspec.structs.replace(first, command=command))
        beyond: list[int] = []
        for reader in readers:
            before = counts.inexpressible
            for result in reader:
                key = blake2b(f"{result.case}|{result.target}".encode(), digest_size=10).digest()
                if key in seen:
                    raise UsageError(f"{reader.path}: {result.case} on {result.target} is in an earlier run too: shards do not overlap")
                seen.add(key)
                writer.add(result)
                counts.add(result.validity, result.outcome, result.verdict, inexpressible=inexpressible(result))
                if result.target in known:
                    known[result.target].record(result.case, conforms=conforms(result.validity, result.outcome))
            if reader.end is None:
                raise UsageError(f"{reader.path}: the run is not complete: continue it with --resume before merging")
            beyond.append(counts.inexpressible - before)
            # every shard walks through the whole plan: the reasons that they share are counted once
            left_out |= Counter({why: n for why, n in reader.end.left_out.items() if why != OTHER_SHARD})
            problems += reader.end.problems
            seconds = max(seconds, reader.end.seconds)
        for target, expected in known.items():
            problems += expected.problems(
                date.today(), complete=_whole(readers, beyond, len(seen)) and not first.targets[target].unavailable
            )
        absent = sum(counts.outcomes[outcome.value] for outcome in NOT_EXECUTED)
        end = End(
            selected=len(seen) - counts.inexpressible,
            run=len(seen) - absent,
            left_out=dict(sorted(left_out.items())),
            outcomes=dict(sorted(counts.outcomes.items())),
            verdicts=dict(sorted(counts.verdicts.items())),
            problems=tuple(dict.fromkeys(problems)),
            seconds=seconds,
        )
        writer.close(end)
        os.replace(partial, path)
    return Summary(path, end, counts.exit_code(end.problems, baseline="--baseline" in command))


@contextlib.contextmanager
def _whole_or_none(writer: RunWriter) -> Iterator[None]:
    """Take away what a merge that fails has written."""
    try:
        yield
    except BaseException:
        writer.discard()
        raise


def _known(header: Header) -> dict[str, TargetExpectations]:
    """Return the expectations of each target, to hold the shards' results against together; none if the runs had other files than these."""
    found = load_expectations()
    if run_hashes((), found)["expectations"] != header.hashes.get("expectations"):
        return {}
    return {target: found.for_target(target, info) for target, info in header.targets.items()}


def _whole(readers: Sequence[RunReader], beyond: Sequence[int], results: int) -> bool:
    """Say whether the shards are all of them, and of all cases: each knows how many cases the others have.

    `beyond` are each shard's results that its targets' APIs cannot express, which it does not count as selected.
    """
    for reader, inexpressible_here in zip(readers, beyond, strict=True):
        assert reader.end is not None
        targets = len(reader.header.targets)
        if (
            any(reader.end.left_out.get(why) for why in PARTIAL)
            or reader.end.selected + inexpressible_here + targets * reader.end.left_out.get(OTHER_SHARD, 0) != results
        ):
            return False
    return True


def _same(first: Header, other: Header, path: Path) -> None:
    for what, a, b in (
        ("seed", first.seed, other.seed),
        *((f"hash of the {name}", value, other.hashes.get(name)) for name, value in first.hashes.items()),
        ("targets", first.targets, other.targets),
    ):
        if a != b:
            raise UsageError(f"{path}:1: cannot be merged with the first run: the {what} differs")
