"""What differs between two runs: regressions, fixes and other changes, case by case and target by target.

Changes are grouped, and all are counted; the first `KEEP` of each kind are kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.facets import Spread
from harness.model.header import Header, differing_inputs
from harness.model.result import Result
from harness.model.signature import Signature, recorded_signature
from harness.model.verdict import NOT_EXECUTED, Outcome, conforms
from harness.results.tables import Tables

KEEP = 50_000
"""Changes kept, of each kind."""
GROUPS = 2000
OWN = "its own provider"


class Change(str, Enum):
    """How a result differs between two runs; worst first."""

    REGRESSION = "regression"
    """It conformed in BASE and does not in HEAD."""
    FIX = "fix"
    """It conforms in HEAD and did not in BASE."""
    CHANGED = "changed"
    """Another signature (outcome, stage, class of error, kind of difference) or placement, or a larger ULP
    distance; all that an unspecified case can do."""
    NEW = "new"
    """It ran only in HEAD."""
    MISSING = "missing"
    """It ran only in BASE."""


class Pair(NamedTuple):
    """A target of BASE and the one of HEAD that it is compared with."""

    base: str
    head: str

    @property
    def name(self) -> str:
        return self.base if self.base == self.head else f"{self.base} → {self.head}"


class ComparedResult(NamedTuple):
    """The compared facts of a case on a target. `placed` is `OWN`, perhaps as a function, another provider's name, or
    empty.

    `flaky` is said of a change and makes none by itself: whether a case is repeated depends on how its run
    was started.
    """

    validity: Validity
    signature: Signature
    placed: str
    flaky: bool = False

    @property
    def outcome(self) -> Outcome:
        return self.signature.outcome

    @property
    def error(self) -> str:
        """The class of the error, empty where there is none."""
        return self.signature.error

    @property
    def brief(self) -> ComparedResult:
        """The same without stage and kind of difference."""
        return self._replace(signature=self.signature._replace(stage="", difference=""))

    @property
    def pooled(self) -> ComparedResult:
        """The same without what one defect can show differently on different inputs."""
        return self._replace(signature=self.signature.pooled)


class ChangeKind(NamedTuple):
    """What the changes of a group have in common: `before` and `after` are None where a run has no such results, `why`
    names what differs."""

    change: Change
    pair: Pair
    operator: str
    validity: Validity
    before: ComparedResult | None
    after: ComparedResult | None
    why: tuple[str, ...]


class Changed(NamedTuple):
    """One result that is not the same in both runs: HEAD's, or BASE's where HEAD has none."""

    kind: ChangeKind
    result: Result
    ulp_before: int | None
    ulp_after: int | None


@dataclass
class ChangeGroup(Spread):
    """Changes of one kind; `example` is the first of them."""

    kind: ChangeKind
    example: Changed = field(init=False)

    @property
    def cases(self) -> str:
        """Write which cases, as far as that fits."""
        return self.which(self.kind.operator)


class ComparedCounts:
    """How many results of a pair of targets, or of some of their cases, are equal or changed."""

    def __init__(self) -> None:
        self.changes: Counter[Change] = Counter()
        self.equal = 0
        self.neither = 0
        """In both runs, and executed in neither, without what the target's API cannot express."""

    @property
    def compared(self) -> int:
        """Results that ran in both runs."""
        return self.equal + sum(
            self.changes[change] for change in (Change.REGRESSION, Change.FIX, Change.CHANGED)
        )

    def include(self, other: ComparedCounts) -> None:
        """Add another's counts."""
        self.changes.update(other.changes)
        self.equal += other.equal
        self.neither += other.neither


class Comparison:
    """What differs between two runs. `base` and `head` count each run alone, by operator, target, level and validity."""

    def __init__(self, base: Header, head: Header) -> None:
        self.pairs = pair_targets(base, head)
        self.base = Tables(base, across_targets=False, whole_names=True)
        self.head = Tables(head, across_targets=False, whole_names=True)
        self.counts = {pair: ComparedCounts() for pair in self.pairs}
        self.by_level: dict[tuple[str, Pair, str], Counter[Change]] = {}
        """Changes of valid cases by operator, pair and level."""
        self.flaky: Counter[Change] = Counter()
        """Changes of cases that were repeated in a run and did not always do the same."""
        self.kept: dict[Change, list[Changed]] = {change: [] for change in Change}
        self._groups: dict[ChangeKind, ChangeGroup] = {}

    @property
    def total(self) -> ComparedCounts:
        """The counts of all pairs."""
        total = ComparedCounts()
        for counts in self.counts.values():
            total.include(counts)
        return total

    @property
    def differing_inputs(self) -> list[str]:
        """The differing settings that decide about the cases: if there are any, only cases in both runs can be
        compared."""
        return [name for name in differing_inputs(self.base.header, self.head.header) if name != "oracle"]

    @property
    def unmatched(self) -> tuple[list[str], list[str]]:
        """Targets of BASE and of HEAD that the other run does not have."""
        bases, heads = {pair.base for pair in self.pairs}, {pair.head for pair in self.pairs}
        return [name for name in self.base.targets if name not in bases], [
            name for name in self.head.targets if name not in heads
        ]

    def groups(self) -> list[ChangeGroup]:
        """Return the groups, worst kind of change first, then the largest."""
        order = {change: place for place, change in enumerate(Change)}
        return sorted(
            self._groups.values(),
            key=lambda g: (order[g.kind.change], -g.number, g.kind.pair, g.example.result.case),
        )

    def left_out(self, change: Change, shown: int = KEEP) -> int:
        """How many changes of a kind are not among the first `shown` that are kept."""
        return self.total.changes[change] - min(shown, len(self.kept[change]))

    def add(self, kind: ChangeKind, level: str, number: int) -> ChangeGroup | None:
        """Count a number of changes whose cases have the same level, and return their group, which counts them by itself;
        None where there are too many groups."""
        change, before, after = kind.change, kind.before, kind.after
        self.counts[kind.pair].changes[change] += number
        self.flaky[change] += number * any(each is not None and each.flaky for each in (before, after))
        if kind.validity is Validity.VALID:
            self.by_level.setdefault((kind.operator, kind.pair, level), Counter())[change] += number
        if before and after and before.outcome is not after.outcome:  # what is said then is the outcome
            kind = kind._replace(before=before.brief, after=after.brief)
        if kind not in self._groups and len(self._groups) >= GROUPS:
            return None
        return self._groups.setdefault(kind, ChangeGroup(kind))


def pair_targets(base: Header, head: Header) -> tuple[Pair, ...]:
    """Pair targets by name; the only target of one run is paired with the only one of the other regardless of their
    names. Errors: UsageError."""
    if len(base.targets) == len(head.targets) == 1:
        return (Pair(next(iter(base.targets)), next(iter(head.targets))),)
    pairs = tuple(Pair(name, name) for name in head.targets if name in base.targets)
    if not pairs:
        names = (", ".join(header.targets) or "none" for header in (base, head))
        remedy = "runs of one target each are compared whatever its name"
        raise UsageError(
            "the runs have no target in common: BASE has {}; HEAD has {}; {}".format(*names, remedy)
        )
    return pairs


def classify(
    before: ComparedResult, after: ComparedResult, *, ulp_grew: bool
) -> tuple[Change | None, tuple[str, ...]]:
    """Name the change between two results of a case, None if they are equal, and what differs."""
    absent = before.outcome in NOT_EXECUTED, after.outcome in NOT_EXECUTED
    if any(absent):
        return (None if all(absent) else Change.NEW if absent[0] else Change.MISSING), ()
    aspects = {
        "validity": before.validity is not after.validity,
        "outcome": before.outcome is not after.outcome,
        "stage": _both_differ(before.signature.stage, after.signature.stage),
        "error class": before.error != after.error,
        "difference": _both_differ(before.signature.difference, after.signature.difference),
        "placement": _both_differ(before.placed, after.placed),
        "ULP": ulp_grew,
    }
    why = tuple(name for name, differs in aspects.items() if differs)
    if not why:
        return None, ()
    if before.validity is after.validity and after.validity is not Validity.UNSPECIFIED:
        was, is_now = conforms(before.validity, before.outcome), conforms(after.validity, after.outcome)
        if was is not is_now:
            return (Change.FIX if is_now else Change.REGRESSION), why
    return Change.CHANGED, why


def compared_result(result: Result, provider: str) -> ComparedResult:
    """Return what of a result is compared, on a target with this provider."""
    placed = OWN if result.placed_on == provider else result.placed_on or ""
    placed += ", as a function" * bool(result.as_function)
    return ComparedResult(result.validity, recorded_signature(result), placed, result.flaky)


def _both_differ(before: str, after: str) -> bool:
    """Say whether two runs tell something and it is not the same: older run files lack some of it."""
    return bool(before and after) and before != after
