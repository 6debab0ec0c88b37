"""Summarises a bisection in sentences and rows, which every rendering shows."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from harness.model.verdict import Outcome
from harness.results.bisection.search import SIGNATURE, Bisection, Measured, ReleaseChange, Seen, difference
from harness.results.summary import count, some

BAD, GOOD, OTHER = "the first bad release", "the first good release", "the first release that does otherwise"
_WORDS = {BAD: "bad", GOOD: "good", OTHER: "otherwise"}
_SHOWN = 6


class Searched(NamedTuple):
    """A bisection with its request: the releases, the cases, and the remarks made on the way."""

    over: str
    target: str
    asked: str
    cases: tuple[str, ...]
    found: Bisection
    remarks: tuple[str, ...] = ()

    @property
    def single(self) -> str | None:
        """The case where there is one alone."""
        return self.cases[0] if len(self.cases) == 1 else None


class ReleaseRow(NamedTuple):
    """A measured release: how many cases ran and fail, the outcomes, what changed against the
    release before; of a single case also its error."""

    version: str
    ran: int
    failing: int
    outcomes: tuple[tuple[str, int], ...]
    change: str
    error: str
    message: str
    skipped: str


def sentence(searched: Searched) -> str:
    """Name the first release with a change and the change, or say that there is none."""
    found = searched.found
    if found.first is None:
        ran = found.ran
        if len(ran) == 1:
            return f"only {ran[0].version} can run {_what(searched)}: {_state(searched, ran[0])}"
        return f"nothing changes from {ran[0].version} to {ran[-1].version}: {_state(searched, ran[-1])}"
    change = found.first
    before, after = change.before, change.after
    between = ""
    if change.skipped:
        between = f"; {', '.join(change.skipped)} between them cannot run {_what(searched)}"
    if searched.single is not None:
        then, now = before.seen[searched.single], after.seen[searched.single]
        return f"{after.version} is {kind(change)}: {_outcome(searched, now)}; {before.version}: {_outcome(searched, then)}{between}"
    return f"{after.version} is {kind(change)}: {moved(change)}; {before.version}: {_state(searched, before)}{between}"


def kind(change: ReleaseChange) -> str:
    """Classify the release of a change: bad if cases fail anew and none recovers, good if cases recover and
    none fails anew, otherwise neither."""
    worse, better, _ = moves(change)
    return BAD if worse and not better else GOOD if better and not worse else OTHER


def moves(change: ReleaseChange) -> tuple[int, int, int]:
    """Count the cases that fail anew, fail no longer, and fail or do otherwise."""
    pairs = [(change.before.seen[case].conforms, change.after.seen[case].conforms) for case in change.cases]
    worse, better = pairs.count((True, False)), pairs.count((False, True))
    return worse, better, len(pairs) - worse - better


def moved(change: ReleaseChange) -> str:
    """Write those counts."""
    words = (
        ("fails anew", "fails no longer", "does otherwise"),
        ("fail anew", "fail no longer", "do otherwise"),
    )
    counts = moves(change)
    return ", ".join(
        f"{count(number, 'case')} {words[number != 1][place]}"
        for place, number in enumerate(counts)
        if number
    )


def remarks(searched: Searched) -> tuple[str, ...]:
    """List the limits of the finding: later changes, releases that return, releases not examined or not
    compared."""
    found = searched.found
    said = list(searched.remarks)
    if found.returning:
        said.append(
            f"not monotone: {some(found.returning, _SHOWN)} {'does' if len(found.returning) == 1 else 'do'} again "
            f"as {found.ran[0].version} does, "
            f"so {'it changes more than once' if found.complete else 'another release may be the first; --all looks at every release'}"
        )
    for change in found.changes[1:]:
        span = "" if found.complete else f" somewhere after {change.before.version}, at the latest"
        said.append(f"another change{span or ''} in {change.after.version}: {_briefly(searched, change)}")
    if found.by != SIGNATURE and len(found.ran) > 1:
        first, last = found.ran[0], found.ran[-1]
        otherwise = difference(first, last, SIGNATURE)
        same = [case for case in otherwise if first.seen[case].outcome is last.seen[case].outcome]
        if same:
            said.append(_beside_the_outcome(searched, same))
    if found.first is None and not found.complete and len(found.ran) > 1:
        said.append("only the ends were looked at; --all looks at every release between them")
    ran = {len(measured.seen) for measured in found.ran}
    if len(ran) > 1:
        said.append(
            f"not every release can run all of the {len(searched.cases):,} cases: releases are compared on what both can run"
        )
    skipped = [measured.version for measured in found.measured if measured.skipped]
    if skipped:
        said.append(f"skipped, because they cannot run {_what(searched)}: {some(skipped, _SHOWN)}")
    return tuple(said)


def rows(searched: Searched) -> list[ReleaseRow]:
    """Return one row for each release that was measured, oldest first."""
    changes = {change.after.version: change for change in searched.found.changes}
    return [_row(searched, measured, changes.get(measured.version)) for measured in searched.found.measured]


def outcome(seen: Seen) -> str:
    """Write an outcome and whether that is right."""
    if seen.validity.value == "unspecified":
        return f"{seen.outcome.value} (left open by ONNX)"
    wanted = "correct" if seen.conforms else "fails"
    return f"{seen.outcome.value} ({wanted})" if seen.outcome is not Outcome.PASS else "pass"


def _outcome(searched: Searched, seen: Seen) -> str:
    """Describe the outcome of the only case on a release, as far as it is compared."""
    if searched.found.by != SIGNATURE or not (seen.signature.error or seen.signature.difference):
        return outcome(seen)
    return outcome(seen).replace(seen.outcome.value, str(seen.signature), 1)


def _beside_the_outcome(searched: Searched, cases: list[str]) -> str:
    """Name the other differences of cases whose outcome is the same at both ends, and the option that searches for
    them."""
    first, last = searched.found.ran[0], searched.found.ran[-1]
    then, now = first.seen[cases[0]].signature, last.seen[cases[0]].signature
    many = "" if searched.single is not None else f" in {count(len(cases), 'case')}, such as"
    return (
        f"the outcome is the same in {first.version} and {last.version}, but its signature is not{many}: "
        f"{then}, then {now}; --by signature finds the release"
    )


def _row(searched: Searched, measured: Measured, change: ReleaseChange | None) -> ReleaseRow:
    outcomes = Counter(seen.outcome.value for seen in measured.seen.values())
    seen = measured.seen.get(searched.single) if searched.single is not None else None
    shown = "" if change is None else moved(change)
    if change is not None and searched.single is not None:
        shown = f"{'first' if change is searched.found.first else 'then'} {_WORDS[kind(change)]}"
    return ReleaseRow(
        measured.version,
        len(measured.seen),
        measured.failing(),
        tuple(sorted(outcomes.items())),
        shown,
        seen.signature.error if seen is not None else "",
        seen.message if seen is not None else "",
        measured.skipped,
    )


def _briefly(searched: Searched, change: ReleaseChange) -> str:
    if searched.single is not None:
        then, now = change.before.seen[searched.single], change.after.seen[searched.single]
        return f"{_outcome(searched, then)}, then {_outcome(searched, now)}"
    return moved(change)


def _state(searched: Searched, measured: Measured) -> str:
    if searched.single is not None:
        return _outcome(searched, measured.seen[searched.single])
    return f"{measured.failing():,} of {len(measured.seen):,} fail"


def _what(searched: Searched) -> str:
    return "the case" if searched.single is not None else "any of the cases"
