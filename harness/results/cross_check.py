"""The cross-check: compares the results of ONNX Runtime's DirectML provider and of DirectML's own API on the
same case.

Both compute on the same DLL. A difference between them points at ONNX Runtime's lowering, since the API
received the call that the documents describe; an agreement against the oracle points at DirectML or its
driver. Outputs are compared bit for bit: two passes equal the oracle and so each other, and any other output
has its hash in its result.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from harness.model.case import Validity
from harness.model.facets import facets
from harness.model.header import Header
from harness.model.result import Result, inexpressible
from harness.model.target_info import DIRECTML, DML, TargetInfo
from harness.model.verdict import NOT_EXECUTED, Outcome, conforms

_SILENT = NOT_EXECUTED | {Outcome.CRASH, Outcome.TIMEOUT, Outcome.ORACLE_ERROR}
_RAN = frozenset({Outcome.PASS, Outcome.MISMATCH, Outcome.ACCEPTED_INVALID})


class Suspect(str, Enum):
    """Where the two targets point."""

    NOWHERE = "both are right"
    CHECKED = "neither: ONNX Runtime checks it first"
    LOWERING = "ONNX Runtime's lowering"
    DIRECTML = "DirectML or its driver"
    UNCLEAR = "not comparable"


_ORDER = (Suspect.LOWERING, Suspect.DIRECTML, Suspect.UNCLEAR, Suspect.CHECKED, Suspect.NOWHERE)


class Agreement(NamedTuple):
    """What the two say together; `why` is one sentence."""

    points: Suspect
    why: str


COMPOSED = Agreement(
    Suspect.UNCLEAR, "the provider composes this mode of several operators, DirectML has it in one"
)
"""What two results say that are not of the same call."""


class CheckedResult(NamedTuple):
    """The compared facts of a result."""

    validity: Validity
    outcome: Outcome
    output: str | UnsetType = UNSET


class CrossCheckGroup(NamedTuple):
    """Cases of one operator on which the two say the same together."""

    operator: str
    validity: Validity
    provider: Outcome
    api: Outcome
    agreement: Agreement
    number: int
    example: str


def compare(provider: CheckedResult, api: CheckedResult) -> Agreement:
    """Hold the two against each other."""
    if provider.outcome in _SILENT or api.outcome in _SILENT:
        return Agreement(Suspect.UNCLEAR, "one of the two did not finish")
    if provider.outcome is Outcome.REJECTED and provider.validity is Validity.INVALID and api.outcome in _RAN:
        return Agreement(
            Suspect.CHECKED, "ONNX Runtime refuses what ONNX forbids, DirectML by itself would take it"
        )
    if (provider.outcome in _RAN) != (api.outcome in _RAN):
        taken = "DirectML takes the call that ONNX Runtime's provider refuses or does not make"
        refused = "ONNX Runtime's provider makes another call than the one that DirectML refuses, or none"
        return Agreement(Suspect.LOWERING, taken if api.outcome in _RAN else refused)
    if (
        provider.outcome not in _RAN
        and conforms(api.validity, api.outcome)
        and not conforms(provider.validity, provider.outcome)
    ):
        return Agreement(
            Suspect.LOWERING,
            "DirectML refuses the call as it should, ONNX Runtime's provider never comes to it",
        )
    if provider.outcome not in _RAN:
        return _agreement(provider, api, "both refuse it")
    if provider.outcome is api.outcome is Outcome.PASS:
        return Agreement(Suspect.NOWHERE, "both outputs equal the oracle's bit for bit")
    if Outcome.PASS not in (provider.outcome, api.outcome) and UNSET in (provider.output, api.output):
        return Agreement(Suspect.UNCLEAR, "the run does not say what the outputs were")
    if provider.output == api.output:
        return _agreement(provider, api, "both outputs are the same bit for bit")
    return Agreement(Suspect.LOWERING, "the outputs differ")


def _agreement(provider: CheckedResult, api: CheckedResult, why: str) -> Agreement:
    if conforms(provider.validity, provider.outcome) and conforms(api.validity, api.outcome):
        return Agreement(Suspect.NOWHERE, why)
    return Agreement(Suspect.DIRECTML, f"{why}, against the oracle")


def composed(case: str) -> bool:
    """Say whether a case is another call for the provider, where several ONNX operators stand for it."""
    return bool(facets(case).variant)


def checked(result: Result) -> CheckedResult:
    """Return the compared facts of a result."""
    return CheckedResult(result.validity, result.outcome, result.output)


def checked_pair(header: Header) -> tuple[str, str] | None:
    """Return the provider's target and the API's of a run: the first two with the same DirectML.dll; None
    where there are none."""
    by_provider: dict[str, list[tuple[str, TargetInfo]]] = {DML: [], DIRECTML: []}
    for target, info in header.targets.items():
        if info.provider in by_provider and info.unavailable is None:
            by_provider[info.provider].append((target, info))
    return next(
        (
            (target, other)
            for target, info in by_provider[DML]
            for other, its in by_provider[DIRECTML]
            if (info.directml_sha256, info.adapter) == (its.directml_sha256, its.adapter)
        ),
        None,
    )


class CrossCheck:
    """Collects the results of both targets of a run; `pair` is None where a run has not both."""

    def __init__(self, header: Header) -> None:
        self.pair = checked_pair(header)
        self._known: dict[CheckedResult, CheckedResult] = {}
        self._first: dict[str, CheckedResult] = {}
        self._groups: dict[tuple[str, Validity, Outcome, Outcome, Agreement], tuple[int, str]] = {}

    def add(self, result: Result) -> None:
        """Take one result of either target."""
        if self.pair is None or result.target not in self.pair or inexpressible(result):
            return
        if composed(result.case):
            return
        mine = checked(result)
        mine = self._known.setdefault(mine, mine)
        other = self._first.pop(result.case, None)
        if other is None:
            self._first[result.case] = mine
            return
        provider, api = (other, mine) if result.target == self.pair[1] else (mine, other)
        self.count(result.operator, provider, api, 1, result.case)

    def count(
        self, operator: str, provider: CheckedResult, api: CheckedResult, number: int, example: str
    ) -> None:
        """Take a number of cases on which the two did this; the example is the first by name."""
        key = (operator, provider.validity, provider.outcome, api.outcome, compare(provider, api))
        before, other = self._groups.get(key, (0, example))
        self._groups[key] = (before + number, min(other, example))

    @property
    def compared(self) -> int:
        """Cases that both express and ran."""
        return sum(number for number, _ in self._groups.values())

    def groups(self) -> list[CrossCheckGroup]:
        """Return what the two say together, by operator and outcomes; what points somewhere first, then the
        largest."""
        order = {points: place for place, points in enumerate(_ORDER)}
        groups = [CrossCheckGroup(*kind, number, example) for kind, (number, example) in self._groups.items()]
        return sorted(
            groups,
            key=lambda group: (order[group.agreement.points], -group.number, group.operator, group.example),
        )
