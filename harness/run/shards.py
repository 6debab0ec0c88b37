"""The shards of a run: whether runs are shards of the same one, which of them are present, and how many cases
the others have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from harness.model.errors import UsageError
from harness.model.header import End, Header, Merged, Shard, in_another_order
from harness.results.runfile import RunReader
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
        of = max((shard.of for shard in self._there), default=0)
        return tuple(sorted(set(range(1, of + 1)) - {shard.index for shard in self._there}))

    def why_incomplete(self, absent: int) -> str:
        """Return the missing results and the remedy."""
        of = max((shard.of for shard in self._there), default=0)
        missing = self.missing()
        names = (
            f"shard{'s' if len(missing) > 1 else ''} {', '.join(f'{index}/{of}' for index in missing)}"
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
            raise UsageError(f"{path}:1: cannot be merged with the first run: the {what} differs")
    if in_another_order(first, other):
        raise UsageError(
            f"{path}:1: cannot be merged with the first run: the order of the expectations differs"
        )


def _queries(header: Header) -> Iterable[str] | None:
    return None if header.selection is None else sorted(header.selection.queries)


def _of(header: Header) -> int | None:
    shard = _shard(header)
    return None if shard is None else shard.of
