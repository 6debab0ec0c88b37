"""Bisects releases: finds the release from which cases fail differently than before, with as few measured
releases as possible.

Two releases differ if a case that ran on both fails on one alone, or fails on both with different outcomes;
an unspecified case counts by its outcome. By `SIGNATURE` they also differ where the outcome is the same and
stage, class of error or kind of difference are not, whether that conforms or fails. The search finds the
first change after the older end: it splits the releases at those that behave like the older end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from harness.model.case import Validity
from harness.model.signature import Signature
from harness.model.verdict import Outcome, conforms

By = Literal["outcome", "signature"]
OUTCOME: By = "outcome"
SIGNATURE: By = "signature"


class Seen(NamedTuple):
    """The result of a case on a release; `message` is its error's, or the difference in words."""

    validity: Validity
    signature: Signature
    message: str = ""

    @property
    def outcome(self) -> Outcome:
        return self.signature.outcome

    @property
    def conforms(self) -> bool:
        """Say whether the case conforms."""
        return conforms(self.validity, self.outcome)

    @property
    def failure(self) -> Outcome | None:
        """The outcome of a case that does not conform or is unspecified; None of any other."""
        return self.outcome if self.validity is Validity.UNSPECIFIED or not self.conforms else None


class Measured(NamedTuple):
    """The outcomes of the cases that a release can run, by id.

    `skipped` says why there are none, `left_out` counts by reason those that it cannot run.
    """

    version: str
    seen: Mapping[str, Seen] = {}
    skipped: str = ""
    left_out: Mapping[str, int] = {}

    def failing(self) -> int:
        """Count the cases that fail."""
        return sum(not seen.conforms for seen in self.seen.values())


class ReleaseChange(NamedTuple):
    """Two releases with nothing measured between them that ran, and the cases on which they differ; `skipped`
    lie between."""

    before: Measured
    after: Measured
    cases: tuple[str, ...]
    skipped: tuple[str, ...] = ()


class Bisection(NamedTuple):
    """The measured releases in their order, and the changes between them: all changes if `complete`, otherwise the
    first one, and the others as unsplit ranges."""

    versions: tuple[str, ...]
    measured: tuple[Measured, ...]
    changes: tuple[ReleaseChange, ...]
    complete: bool
    by: By = OUTCOME

    @property
    def first(self) -> ReleaseChange | None:
        return self.changes[0] if self.changes else None

    @property
    def ran(self) -> tuple[Measured, ...]:
        """The releases that ran a case."""
        return tuple(found for found in self.measured if not found.skipped)

    @property
    def returning(self) -> tuple[str, ...]:
        """The releases after the first change that do again as the oldest does: the search is then not sure
        to have found the first."""
        if self.first is None:
            return ()
        ran = self.ran
        after = ran[ran.index(self.first.after) :]
        return tuple(found.version for found in after if not difference(ran[0], found, self.by))


def difference(a: Measured, b: Measured, by: By = OUTCOME) -> tuple[str, ...]:
    """Return the cases that ran on both and fail otherwise on one than on the other, or have another signature,
    sorted."""
    common = a.seen.keys() & b.seen.keys()
    if by == SIGNATURE:
        return tuple(sorted(case for case in common if a.seen[case].signature != b.seen[case].signature))
    return tuple(sorted(case for case in common if a.seen[case].failure is not b.seen[case].failure))


def bisect(
    versions: Sequence[str], measure: Callable[[str], Measured], *, everything: bool = False, by: By = OUTCOME
) -> Bisection:
    """Measure the newest and the oldest release that can run the cases, then the releases of a binary search,
    or `everything`.

    `versions` are oldest first. A release that cannot run any case is passed over for its nearest neighbour.
    """
    known: dict[int, Measured] = {}

    def at(place: int) -> Measured:
        if place not in known:
            known[place] = measure(versions[place])
        return known[place]

    if everything:
        for place in range(len(versions)):
            at(place)
    else:
        newest = len(versions) - 1
        while newest >= 0 and at(newest).skipped:
            newest -= 1
        if newest > 0:
            oldest = _oldest(at, newest)
            _split(at, known, oldest, by)
    measured = tuple(known[place] for place in sorted(known))
    return Bisection(tuple(versions), measured, _changes(measured, by), everything, by)


def _oldest(at: Callable[[int], Measured], newest: int) -> int:
    """Return the oldest release that runs, which is searched too: releases lack an opset up to the one that
    brings it."""
    if not at(0).skipped:
        return 0
    skipped, runs = 0, newest
    while runs - skipped > 1:
        middle = (skipped + runs) // 2
        if at(middle).skipped:
            skipped = middle
        else:
            runs = middle
    return runs


def _split(at: Callable[[int], Measured], known: Mapping[int, Measured], oldest: int, by: By) -> None:
    """Measure until nothing that runs lies between the first release that is known to do otherwise than the
    oldest and the one before."""
    ran = sorted(place for place, measured in known.items() if not measured.skipped)
    others = [place for place in ran if difference(at(oldest), at(place), by)]
    if not others:
        return
    other = others[0]
    same = max(place for place in ran if place < other)
    while True:
        left = [place for place in range(same + 1, other) if place not in known or not known[place].skipped]
        if not left:
            return
        middle = min(left, key=lambda place: abs(2 * place - same - other))
        if at(middle).skipped:
            continue
        if difference(at(oldest), at(middle), by):
            other = middle
        else:
            same = middle


def _changes(measured: Sequence[Measured], by: By) -> tuple[ReleaseChange, ...]:
    """Return the changes from each release that ran to the next that ran."""
    found: list[ReleaseChange] = []
    before: Measured | None = None
    skipped: list[str] = []
    for after in measured:
        if after.skipped:
            skipped.append(after.version)
            continue
        if before is not None and (cases := difference(before, after, by)):
            found.append(ReleaseChange(before, after, cases, tuple(skipped)))
        before, skipped = after, []
    return tuple(found)
