"""`harness merge`: merges the runs of shards into one run."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from hashlib import blake2b
from pathlib import Path

from harness.model.errors import UsageError
from harness.model.header import Header
from harness.model.result_key import artifact_name
from harness.results.counts import Counts
from harness.results.runfile import RunReader, RunWriter
from harness.run.folders import check_own, check_vacant, clear, make
from harness.run.hashes import hash_files, run_hashes
from harness.run.pipeline import RunOutcome
from harness.run.request import new_run_id
from harness.run.shards import Shards, merged_header
from harness.specs.expectations.expectations import load_expectations
from harness.specs.expectations.located import ExpectationScope
from harness.specs.expectations.target_expectations import TargetExpectations
from harness.specs.reading.load import spec_files
from harness.specs.selection import OTHER_SHARD


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
    tensors = _Tensors()
    with (
        RunWriter(unfinished, after_full="nothing was merged: free some space, then merge again") as writer,
        _whole_or_none(writer),
    ):
        writer.add(merged_header(readers, shards.missing(), new_run_id()))
        for reader in readers:
            held, before = len(seen), counts.inexpressible
            tensors.begin(reader.path.parent)
            for result in reader:
                key = blake2b(f"{result.case}|{result.target}".encode(), digest_size=10).digest()
                if key in seen:
                    raise UsageError(
                        f"{reader.path}: {result.case} on {result.target} is in an earlier run too: shards do not overlap"
                    )
                seen.add(key)
                writer.add(result)
                operators.add(result.operator)
                tensors.note(artifact_name(result.case, result.target))
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
        scope = ExpectationScope(operators, _own_specs(first))
        for target, expected in known.items():
            problems += expected.problems(
                date.today(), scope if whole and not first.targets[target].unavailable else None
            )
        end = counts.end(shards.selected + absent * len(first.targets), left_out, problems, seconds)
        writer.close(end)
        clear(folder)
        tensors.copy(folder)
        os.replace(unfinished, path)
    return RunOutcome(path, end, counts.exit_code(end.problems, baseline=first.baseline is not None))


class _Tensors:
    """The tensors that the runs kept of their cases."""

    def __init__(self) -> None:
        self._folder = Path()
        self._there: set[str] = set()
        self._found: list[Path] = []

    def begin(self, folder: Path) -> None:
        """Go on with the tensors beside another run."""
        self._folder = folder / "artifacts"
        self._there = {path.name for path in self._folder.glob("*.npz")}

    def note(self, name: str) -> None:
        """Remember a file, if the run kept it."""
        if name in self._there:
            self._found.append(self._folder / name)

    def copy(self, folder: Path) -> None:
        """Copy the recorded tensors. Errors: UsageError if that is impossible."""
        to = folder / "artifacts"
        for path in self._found:
            try:
                to.mkdir(exist_ok=True)
                shutil.copyfile(path, to / path.name)
            except OSError as error:
                raise UsageError(f"{path}: cannot be copied: {error.strerror}; nothing was merged") from error


@contextlib.contextmanager
def _whole_or_none(writer: RunWriter) -> Iterator[None]:
    """Remove the files of a merge that failed."""
    try:
        yield
    except BaseException:
        writer.discard()
        raise


def _own_specs(header: Header) -> bool:
    """Say whether a run was of all specs that come with the harness."""
    return header.hashes.get("specs") == hash_files(spec_files())


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
