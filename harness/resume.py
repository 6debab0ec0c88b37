"""Continues an interrupted run: which results it has, and whether the present one may be added to them."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from pathlib import Path

from harness.artifacts import Kept
from harness.counts import Counts
from harness.errors import UsageError
from harness.records import Header, Outcome, Result, Validity, Verdict, conforms, inexpressible
from harness.runfile import RunReader


class Done:
    """The results of an interrupted run; `keep` are the bytes of its file that stay, `kept` the tensors beside it."""

    def __init__(self, keep: int, kept: Kept) -> None:
        self.keep = keep
        self.kept = kept
        self._conforming: dict[bytes, bool] = {}
        self._refused: set[bytes] = set()
        self._counts: Counter[tuple[Validity, Outcome, Verdict, bool]] = Counter()

    def conforming(self, case_id: str, target: str) -> bool | None:
        """Return whether the result of a case conformed, None if it did not run."""
        return self._conforming.get(_key(case_id, target))

    def refused(self, case_id: str, target: str) -> bool:
        """Say whether the run has a case that the target's API cannot express."""
        return _key(case_id, target) in self._refused

    def count(self, counts: Counts) -> None:
        """Count every earlier result again."""
        for (validity, outcome, verdict, beyond), number in self._counts.items():
            for _ in range(number):
                counts.add(validity, outcome, verdict, inexpressible=beyond)

    def note(self, result: Result) -> None:
        beyond = inexpressible(result)
        if beyond:
            self._refused.add(_key(result.case, result.target))
        else:
            self._conforming[_key(result.case, result.target)] = conforms(result.validity, result.outcome)
            self.kept.add(result)
        self._counts[result.validity, result.outcome, result.verdict, beyond] += 1


def read_done(path: Path, header: Header) -> Done:
    """Read the run file to continue; raise UsageError where it is of other specs, seed, targets or versions."""
    reader = RunReader(path)
    for what, then, now in (
        ("seed", reader.header.seed, header.seed),
        *((f"hash of the {name}", reader.header.hashes.get(name), value) for name, value in header.hashes.items()),
        ("targets", reader.header.targets, header.targets),
        ("baseline", reader.header.baseline, header.baseline),
    ):
        if then != now:
            raise UsageError(f"{reader.path}:1: cannot be continued: the {what} changed since; start a new run without --resume")
    done = Done(0, Kept(reader.path.parent / "artifacts"))
    for result in reader:
        if result.outcome is Outcome.UNAVAILABLE:
            raise UsageError(
                f"{reader.path}: cannot be continued: {result.target} was not available then; start a new run without --resume"
            )
        done.note(result)
    done.keep = reader.bytes_read
    return done


def _key(case_id: str, target: str) -> bytes:
    return blake2b(f"{case_id}|{target}".encode(), digest_size=10).digest()
