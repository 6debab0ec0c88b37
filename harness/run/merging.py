"""`harness merge`: merges the runs of shards into one run.

`Shards` says whether runs are shards of the same one, which of them are present, and how many cases the others have.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import msgspec

from harness.model.errors import UsageError
from harness.model.header import End, Header, Merged, Shard, in_another_order
from harness.model.result_key import artifact_name
from harness.results.counts import Counts
from harness.results.runfile import RunReader, RunWriter
from harness.run.folders import check_own, check_vacant, clear, make
from harness.run.hashes import hash_files, run_hashes
from harness.run.pipeline import RunOutcome
from harness.run.request import new_run_id
from harness.specs.expectations.expectations import load_expectations
from harness.specs.expectations.target_expectations import ExpectationScope, TargetExpectations
from harness.specs.reading.load import spec_files
from harness.specs.selection import OTHER_SHARD


class Shards:
    """Runs that are shards of one run; each says at its end how many cases it selected and how many the
    others have."""

    def __init__(self, readers: Sequence[RunReader]) -> None:
        """Hold the headers against each other. Errors: UsageError where two are not of one run."""
        self._first = readers[0]
        for reader in readers[1:]:
            _same(self._first.header, reader.header, reader.path)
        self._there = [shard for reader in readers if (shard := _shard(reader.header)) is not None]
        self._cases = 0
        self._all = 0
        self._of = max((shard.of for shard in self._there), default=0)
        self.selected = 0
        """Results that the shards were to have, without those that a target's API cannot express."""

    def ended(self, reader: RunReader, end: End, results: int, inexpressible: int) -> bool:
        """Take the last line of a shard; return whether results are missing."""
        cases = (end.selected + inexpressible) // len(reader.header.targets)
        self._cases += cases
        self._all = max(self._all, cases + end.left_out.get(OTHER_SHARD, 0))
        self.selected += end.selected
        return results < end.selected + inexpressible

    def absent_cases(self) -> int:
        """Return how many cases are in none of the shards."""
        return max(0, self._all - self._cases)

    def missing(self) -> tuple[int, ...]:
        """Return the numbers of the shards that are not there; of files that are older than these numbers
        none."""
        return tuple(sorted(set(range(1, self._of + 1)) - {shard.index for shard in self._there}))

    def why_incomplete(self, absent: int) -> str:
        """Return the missing results and the remedy."""
        missing = self.missing()
        names = (
            f"shard{'s' if len(missing) > 1 else ''} {', '.join(f'{index}/{self._of}' for index in missing)}"
            if missing
            else "a shard"
        )
        what = (
            f"{names} {'are' if len(missing) > 1 else 'is'} missing, with {absent:,} of {self._all:,} cases"
        )
        return f"{self._first.path}: {what}: merge all shards, or what is there with --partial"


def merged_header(readers: Sequence[RunReader], missing: tuple[int, ...], run_id: str) -> Header:
    """Return the header of the merged run: a run of its own, with room for the tensors of all."""
    first = readers[0].header
    targets = {
        name: msgspec.structs.replace(
            info, artifact_limit_bytes=info.artifact_limit_bytes and info.artifact_limit_bytes * len(readers)
        )
        for name, info in first.targets.items()
    }
    return msgspec.structs.replace(
        first,
        run_id=run_id,
        command=" + ".join(dict.fromkeys(reader.header.command for reader in readers)),
        targets=targets,
        selection=None if first.selection is None else msgspec.structs.replace(first.selection, shard=None),
        expectations=dict(
            sorted(chain.from_iterable(reader.header.expectations.items() for reader in readers))
        ),
        merged=Merged(tuple(reader.header.run_id for reader in readers), missing),
    )


def _shard(header: Header) -> Shard | None:
    return None if header.selection is None else header.selection.shard


def _same(first: Header, other: Header, path: Path) -> None:
    for what, a, b in (
        ("seed", first.seed, other.seed),
        *((f"hash of the {name}", value, other.hashes.get(name)) for name, value in first.hashes.items()),
        ("targets", first.targets, other.targets),
        ("baseline", first.baseline, other.baseline),
        ("-k", _queries(first), _queries(other)),
        ("--select", first.selection and first.selection.select, other.selection and other.selection.select),
        ("N of --shard I/N", _of(first), _of(other)),
    ):
        if a != b:
            raise UsageError(
                f"{path}:1: cannot be merged with the first run: the {what} {'differ' if what == 'targets' else 'differs'}"
            )
    if in_another_order(first, other):
        raise UsageError(
            f"{path}:1: cannot be merged with the first run: the order of the expectations differs"
        )


def _queries(header: Header) -> Iterable[str] | None:
    return None if header.selection is None else sorted(header.selection.queries)


def _of(header: Header) -> int | None:
    shard = _shard(header)
    return None if shard is None else shard.of


def merge_runs(
    runs: Sequence[Path], folder: Path, *, partial: bool = False, force: bool = False
) -> RunOutcome:
    """Write the union of all shards of one run, with their tensors; `partial` takes some of them for now.

    Errors: UsageError for a case that two of them hold, for a run of other specs, seed, targets or queries,
    and where a shard is missing.
    """
    readers = [RunReader(run) for run in runs]
    shards = Shards(readers)
    path = folder / "run.jsonl"
    if any(reader.path.resolve() == path.resolve() for reader in readers):
        raise UsageError(f"{path}: is one of the runs to merge; choose another folder with -o")
    check_own(folder)
    check_vacant(folder, force=force)
    make(folder)
    first = readers[0].header
    known = _known(first)
    seen: set[bytes] = set()
    counts = Counts()
    left_out: Counter[str] = Counter()
    problems: list[str] = []
    seconds = 0.0
    operators: set[str] = set()
    unfinished = folder / ".run.jsonl.part"
    tensors: list[Path] = []
    full = "nothing was merged: free some space, then merge again"
    with RunWriter(unfinished, after_full=full, whole=True) as writer:
        writer.add(merged_header(readers, shards.missing(), new_run_id()))
        for reader in readers:
            held, before = len(seen), counts.inexpressible
            there = {path.name: path for path in (reader.path.parent / "artifacts").glob("*.npz")}
            for result in reader:
                key = blake2b(f"{result.case}|{result.target}".encode(), digest_size=10).digest()
                if key in seen:
                    raise UsageError(
                        f"{reader.path}: {result.case} on {result.target} is in an earlier run too: name each shard once"
                    )
                seen.add(key)
                writer.add(result)
                operators.add(result.operator)
                tensors += filter(None, [there.get(artifact_name(result.case, result.target))])
                counts.add(result)
                if result.target in known:
                    known[result.target].record(
                        result.case,
                        result.outcome,
                        conforms=result.conforms,
                        beyond=result.beyond,
                        allows=known[result.target].named(result.expectation),
                    )
            if reader.end is None:
                raise UsageError(
                    f"{reader.path}: the run is not complete: continue it with --resume before merging"
                )
            counts.lost += shards.ended(reader, reader.end, len(seen) - held, counts.inexpressible - before)
            # every shard walks through the whole plan: the reasons that they share are counted once
            left_out |= Counter({why: n for why, n in reader.end.left_out.items() if why != OTHER_SHARD})
            problems += reader.end.problems
            seconds = max(seconds, reader.end.seconds)
        absent = shards.absent_cases()
        if absent and not partial:
            raise UsageError(shards.why_incomplete(absent))
        asked = first.selection
        every = asked is not None and not asked.queries and asked.select != "pairwise"
        whole = every and not absent and not counts.lost
        of_own_specs = first.hashes.get("specs") == hash_files(spec_files())
        scope = ExpectationScope(operators, of_own_specs)
        for target, expected in known.items():
            problems += expected.problems(
                date.today(), scope if whole and not first.targets[target].unavailable else None
            )
        end = counts.end(shards.selected + absent * len(first.targets), left_out, problems, seconds)
        writer.close(end)
        clear(folder)
        _copy(tensors, folder / "artifacts")
        os.replace(unfinished, path)
    return RunOutcome(path, end, counts.exit_code(end.problems, baseline=first.baseline is not None))


def _copy(tensors: Iterable[Path], folder: Path) -> None:
    """Copy files of tensors. Errors: UsageError if that is impossible."""
    for path in tensors:
        try:
            folder.mkdir(exist_ok=True)
            shutil.copyfile(path, folder / path.name)
        except OSError as error:
            raise UsageError(f"{path}: cannot be copied: {error.strerror}; nothing was merged") from error


def _known(header: Header) -> dict[str, TargetExpectations]:
    """Return the expectations of each target, to hold the shards' results against together; none if the runs
    had other files than these."""
    paths = () if header.selection is None else tuple(map(Path, header.selection.expectations))
    try:
        found = load_expectations(paths)
    except UsageError:
        return {}
    if run_hashes((), found)["expectations"] != header.hashes.get("expectations"):
        return {}
    return {target: found.for_target(target, info) for target, info in header.targets.items()}
