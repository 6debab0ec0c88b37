"""Finds where targets differ: cases whose outcome is not the same on every target that ran them, grouped.

It costs one dictionary entry per case, and nothing if a run has a single target.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.model.case import Validity
from harness.model.facets import Facets, dtype_key, telling
from harness.model.reference.feature_levels import level_key
from harness.model.result import Result
from harness.model.verdict import NOT_EXECUTED, Outcome

_CODES = {outcome: number for number, outcome in enumerate(Outcome, start=1)}
_OUTCOMES: dict[int, Outcome] = {number: outcome for outcome, number in _CODES.items()}
_BITS = 4


class Difference(NamedTuple):
    """The cases of an operator on which the targets disagree in one way; `outcomes` is by target, None for
    one that has no such case.

    The tuples name everything that occurs among these cases, sorted.
    """

    operator: str
    validity: Validity
    outcomes: tuple[Outcome | None, ...]
    opsets: tuple[int, ...]
    dtypes: tuple[str, ...]
    types: tuple[str, ...]
    ranks: tuple[int, ...]
    levels: tuple[str, ...]
    number: int
    example: str


class Differences:
    """Collects what each target made of each case."""

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.targets = targets
        self.needed = len(targets) > 1
        self._shift = {target: place * _BITS for place, target in enumerate(targets)}
        self._seen: dict[str, int] = {}
        self._kind: dict[str, tuple[Facets, str, Validity]] = {}
        self._kinds: dict[tuple[Facets, str, Validity], tuple[Facets, str, Validity]] = {}

    def add(self, result: Result, read: Facets, level: str) -> None:
        """Note one result; not needed where there is one target."""
        case = result.case
        before = self._seen.get(case, 0)
        self._seen[case] = before | _CODES[result.outcome] << self._shift[result.target]
        if not before:
            kind = (read, level, result.validity)
            self._kind[case] = self._kinds.setdefault(kind, kind)

    def _outcomes(self, packed: int) -> tuple[Outcome | None, ...]:
        return tuple(
            _OUTCOMES.get(packed >> place * _BITS & (1 << _BITS) - 1) for place in range(len(self.targets))
        )

    def groups(self) -> list[Difference]:
        """Group the cases whose outcomes differ between targets that ran them; the largest groups first."""
        unpacked = {packed: self._outcomes(packed) for packed in set(self._seen.values())}
        differing = {
            packed: outcomes
            for packed, outcomes in unpacked.items()
            if len({outcome for outcome in outcomes if outcome is not None and outcome not in NOT_EXECUTED})
            > 1
        }
        found: dict[tuple[str, Validity, tuple[Outcome | None, ...]], dict[tuple[Facets, str], int]] = {}
        examples: dict[tuple[str, Validity, tuple[Outcome | None, ...]], str] = {}
        names = telling(read for read, _, validity in self._kinds if validity is Validity.VALID)
        for case, packed in self._seen.items():
            outcomes = differing.get(packed)
            if outcomes is None:
                continue
            read, level, validity = self._kind[case]
            read = read.shown(names.get(read.operator, ()))
            key = (read.operator, validity, outcomes)
            kinds = found.setdefault(key, {})
            kinds[read, level] = kinds.get((read, level), 0) + 1
            examples[key] = min(examples.get(key, case), case)
        groups = [_group(key, kinds, examples[key]) for key, kinds in found.items()]
        return sorted(groups, key=lambda group: (-group.number, group.operator, group.example))


def _group(
    key: tuple[str, Validity, tuple[Outcome | None, ...]], kinds: dict[tuple[Facets, str], int], example: str
) -> Difference:
    return Difference(
        *key,
        opsets=tuple(sorted({read.opset for read, _ in kinds})),
        dtypes=tuple(sorted({read.dtype for read, _ in kinds if read.dtype}, key=dtype_key)),
        types=tuple(sorted({read.types for read, _ in kinds if read.types})),
        ranks=tuple(sorted({read.rank for read, _ in kinds if read.rank >= 0})),
        levels=tuple(sorted({level for _, level in kinds}, key=level_key)),
        number=sum(kinds.values()),
        example=example,
    )
