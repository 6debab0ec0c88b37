"""What became of a model's calls on targets, as a file beside the run: `harness model` writes it, and every page of it
is made from it and the run's results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.model.case import BEYOND
from harness.model.facets import facets
from harness.model.header import Expectation, Header
from harness.model.reference.feature_levels import level_key
from harness.model.result import DECLARED_SHAPE, Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import DEFECTS, Reading
from harness.results.support import kernel_of

SCHEMA = 1
COMPARED = "compared"
"""What stands in place of a reading where no formula judges: outputs are held against the unoptimised run on the CPU."""
MOVED_FACTOR = 100.0
"""How many times further than a rounding of every weight and input a level of optimisation may move outputs."""
ENDLESS = 1e300
"""A difference of types, shapes, or of what is finite."""

_SEVERITY = ("crashed", "wrong", "accepted", "not supported", "compared", "not judged", "correct")


class ModelNode(msgspec.Struct, frozen=True):
    """A node, the number of its call, and the numbers of the nodes whose values it takes."""

    name: str
    call: int
    after: tuple[int, ...] = ()


class CallRow(msgspec.Struct, frozen=True):
    """A distinct call. `case` is its case's id, empty where it has none, for the reason `why`; `levels` are those of
    the case."""

    operator: str
    text: str
    case: str
    why: str = ""
    levels: dict[str, str] = {}


class ComparedCall(msgspec.Struct, frozen=True):
    """A call that no formula judges, on a target: `apart` is the largest difference from the unoptimised CPU run as a
    part of the largest element, None if it was not run, with the reason in `error`."""

    call: int
    target: str
    apart: float | None
    error: str = ""


class WholeRun(msgspec.Struct, frozen=True):
    """The whole model on a target at one level of optimisation.

    `apart` is the difference of its outputs from those of the unoptimised CPU run, `moved` from those without
    optimisation on the same target, `noise` what a rounding of every weight and input changes. `elsewhere` counts by
    provider the nodes that ran on another. `repeats` is how far further runs in the session are from the first;
    `resized` how far a run between them, whose free dimensions were one larger, is from one without optimisation in its own
    session; `bound` how far one is whose inputs and outputs the application holds on the device. `culprit` is the
    transformer without which it moves no further than rounding does.
    """

    target: str
    model: str
    level: str
    error: str = ""
    ended: bool = False
    apart: float | None = None
    moved: float | None = None
    noise: float | None = None
    elsewhere: dict[str, int] = {}
    nodes: int = 0
    transformers: tuple[str, ...] = ()
    culprit: tuple[str, ...] = ()
    repeats: float | None = None
    resized: float | None = None
    bound: float | None = None
    seconds: float = 0.0

    @property
    def wrong(self) -> bool:
        """Say whether the run fails, whether a second run or one with bound buffers is further from the first than
        rounding moves it, whether a value that is finite without optimisation is not, or whether outputs of other
        sizes are far from those of a separate session."""
        unsteady = self.far(self.repeats) or self.far(self.bound)
        return bool(self.error) or unsteady or (self.moved or 0.0) >= ENDLESS or self.misfits

    def far(self, difference: float | None) -> bool:
        """Say whether a difference is beyond what rounding may do."""
        return (difference or 0.0) > MOVED_FACTOR * (self.noise or 0.0)

    @property
    def varies(self) -> bool:
        """Say whether a second run, or one with bound buffers, gives other numbers, if no further off than rounding."""
        return bool(self.repeats or self.bound)

    @property
    def misfits(self) -> bool:
        """Say whether other sizes move outputs where the sizes of the session's first run do not."""
        return not self.moves and self.far(self.resized)

    @property
    def moves(self) -> bool:
        """Say whether optimisation moves outputs further than rounding does. A step of a quantiser may do that: whether
        it is wrong, the fused regions say."""
        return self.far(self.moved)


class DefectOfCalls(msgspec.Struct, frozen=True):
    """An entry of a target's provider about calls, in any release; `holds` says whether the target's release has the
    defect, `releases` are the version ranges that have it."""

    target: str
    title: str
    reason: str
    link: str
    calls: int
    releases: dict[str, str]
    holds: bool


class RegionRow(msgspec.Struct, frozen=True):
    """Nodes that an optimizer changed, judged by the composition of their formulas: `case` is the id of its case, `places`
    the nodes of each place where the model has the like, `made` says by target what became of what."""

    case: str
    places: tuple[tuple[str, ...], ...]
    made: dict[str, str]


class ModelReport(msgspec.Struct, frozen=True):
    """Models, their nodes and calls, and the findings beside the results of the run. `growth` has by target the
    difference of each node's outputs from the CPU's in a run of the whole model; `releases` the newest
    onnxruntime-directml by the DirectML feature level of its DirectML.dll; `ended` the reasons why models do not
    run on the CPU."""

    models: tuple[str, ...]
    digests: tuple[str, ...]
    seed: int
    sizes: dict[str, int]
    drawn: tuple[str, ...]
    nodes: tuple[ModelNode, ...]
    calls: tuple[CallRow, ...]
    compared: tuple[ComparedCall, ...] = ()
    whole: tuple[WholeRun, ...] = ()
    regions: tuple[RegionRow, ...] = ()
    growth: dict[str, tuple[float | None, ...]] = {}
    remarks: tuple[str, ...] = ()
    known: tuple[DefectOfCalls, ...] = ()
    releases: dict[str, str] = {}
    ended: tuple[str, ...] = ()
    schema: int = SCHEMA


class OperatorCount(NamedTuple):
    """The calls of an operator on a target by verdict, and the nodes that make them."""

    operator: str
    target: str
    calls: int
    nodes: int
    verdicts: Counter[str]


class ModelView:
    """A model's report with the results of its run, counted for every writer."""

    def __init__(self, report: ModelReport, header: Header, results: list[Result], folder: Path) -> None:
        self.report = report
        self.header = header
        self.folder = folder
        self.targets = list(header.targets)
        self.results = {(each.target, each.case): each for each in results}
        self._compared = {(each.target, each.call): each for each in report.compared}

    def verdict(self, target: str, call: int) -> str:
        """Return what became of a call on a target."""
        row = self.report.calls[call]
        if row.case:
            found = self.results.get((target, row.case))
            return found.reading.value if found is not None else "not judged"
        compared = self._compared.get((target, call))
        if compared is None:
            return "not judged"
        return "not supported" if compared.apart is None else COMPARED

    def verdicts(self, target: str) -> list[str]:
        """Return what became of each call on a target."""
        return [self.verdict(target, call) for call in range(len(self.report.calls))]

    @cached_property
    def uses(self) -> Counter[int]:
        """How many nodes make each call."""
        return Counter(node.call for node in self.report.nodes)

    def nodes_of(self, call: int) -> list[str]:
        """Return the names of the nodes that make a call."""
        return [node.name for node in self.report.nodes if node.call == call]

    def counts(self) -> Iterator[OperatorCount]:
        """Yield counts by operator and target."""
        by_operator: dict[str, list[int]] = {}
        for number, row in enumerate(self.report.calls):
            by_operator.setdefault(row.operator, []).append(number)
        for operator, calls in sorted(by_operator.items()):
            for target in self.targets:
                verdicts = Counter(self.verdict(target, call) for call in calls)
                yield OperatorCount(
                    operator, target, len(calls), sum(self.uses[call] for call in calls), verdicts
                )

    def calls_that(self, target: str, *verdicts: str) -> list[int]:
        """Return the calls with one of some verdicts on a target: first what no entry knows, last what is right but for its
        declared shape, and of each those within others, then those of the most nodes first."""

        def rank(call: int) -> tuple[bool, bool, bool, int]:
            result = self.results.get((target, self.report.calls[call].case))
            around = bool(self.within(call, found))
            if result is None:
                return False, False, around, -self.uses[call]
            declared = isinstance(result.error, Error) and result.error.class_ == DECLARED_SHAPE
            return self.known(result) is not None, declared, around, -self.uses[call]

        found = [call for call, said in enumerate(self.verdicts(target)) if said in verdicts]
        return sorted(found, key=rank)

    def within(self, call: int, others: Iterable[int]) -> list[str]:
        """Return the nodes of other calls that stand in graphs of the first node of a call."""
        begins = f"{self.nodes_of(call)[0]}/"
        return [name for each in others for name in self.nodes_of(each) if name.startswith(begins)]

    def wrong_calls(self, target: str) -> list[int]:
        """Return the calls that are wrong on a target or end it, in the same order."""
        return self.calls_that(target, "wrong", "crashed", "accepted")

    def judged(self, target: str) -> bool:
        """Say whether something is known of a call on a target that is here."""
        said = {*self.verdicts(target)} - {"not judged"}
        return bool(said) or self.header.targets[target].unavailable is not None

    def known(self, result: Result) -> Expectation | None:
        """Return the entry by which a result is judged."""
        return self.header.entry(result.expectation)

    def wrong_levels(self, target: str) -> list[WholeRun]:
        """Return the levels of optimisation at which the whole model is wrong on a target."""
        return [each for each in self.report.whole if each.target == target and each.wrong]

    def wrong_regions(self, target: str) -> list[RegionRow]:
        """Return the regions of a target that are wrong on it."""
        found = (
            (each, self.results.get((target, each.case)))
            for each in self.report.regions
            if target in each.made
        )
        return [region for region, result in found if result is not None and result.reading in DEFECTS]

    def against_entries(self, target: str) -> list[Result]:
        """Return the results of a target that are correct where an entry expects otherwise."""
        baseline = self.header.baseline is not None
        return [
            each
            for (where, _), each in self.results.items()
            if where == target and each.reading is Reading.CORRECT and each.unexpected(baseline=baseline)
        ]

    def wrong_nodes(self, target: str, region: RegionRow) -> list[str]:
        """Return the nodes of a wrong region that are wrong alone, if no transformer is at fault."""
        culprit = self.results[target, region.case].culprit
        if isinstance(culprit, tuple) and culprit:
            return []
        wrong = {name for call in self.wrong_calls(target) for name in self.nodes_of(call)}
        return [name for name in region.places[0] if name in wrong]

    def worst(self, call: int) -> str:
        """Return the worst that became of a call on any target."""
        found = {self.verdict(target, call) for target in self.targets} or {"not judged"}
        return next(each for each in _SEVERITY if each in found)

    @cached_property
    def levels(self) -> list[str]:
        """The DirectML feature levels at which some call is allowed first, and `beyond`."""
        found = {level for row in self.report.calls for level in row.levels.values()}
        return sorted(found - {BEYOND}, key=level_key)

    def allowed(self, level: str) -> list[bool]:
        """Return which nodes the documents of a feature level allow."""
        allows = []
        for row in self.report.calls:
            first = row.levels.get("directml", BEYOND)
            allows.append(first != BEYOND and level_key(first) <= level_key(level))
        return [allows[node.call] for node in self.report.nodes]

    def registered(self, info: TargetInfo) -> list[bool]:
        """Return for which nodes a target's provider registers a kernel, on a device that has its element types."""
        has = []
        for row in self.report.calls:
            found = facets(row.case)
            others = {name: dtype for name, dtype, _ in found.others()}
            kernel = kernel_of(info, found.operator, found.opset, found.dtype, others)
            has.append(bool(found.dtype) and kernel in ("yes", "device"))
        return [has[node.call] for node in self.report.nodes]

    def ran(self, target: str) -> list[bool]:
        """Return the nodes that a target executed, right or wrong."""
        takes = [said not in ("not supported", "not judged") for said in self.verdicts(target)]
        return [takes[node.call] for node in self.report.nodes]

    def operators_where(self, chosen: Iterable[bool]) -> str:
        """Count the operators of some nodes, the eight most frequent ones."""
        found = Counter(
            self.report.calls[node.call].operator
            for node, wanted in zip(self.report.nodes, chosen, strict=True)
            if wanted
        )
        return ", ".join(f"{operator} {number}" for operator, number in found.most_common(8))

    def transfers(self, allowed: list[bool]) -> int:
        """Return how many values cross between the device and the CPU where some nodes fall back."""
        return sum(
            allowed[source] != allowed[number]
            for number, node in enumerate(self.report.nodes)
            for source in node.after
        )

    @property
    def bad(self) -> bool:
        """Say whether anything is wrong that no entry knows."""
        baseline = self.header.baseline is not None
        unexpected = any(each.unexpected(baseline=baseline) for each in self.results.values())
        return unexpected or bool(self.report.ended) or any(each.wrong for each in self.report.whole)
