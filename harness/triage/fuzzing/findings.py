"""Findings of a fuzzer: failing calls grouped so that one defect is one finding, each with its smallest call
and the rule that separates its calls from those that pass."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from harness.model.case import Case
from harness.model.signature import Signature
from harness.results.rules.feature_table import FeatureTable
from harness.results.rules.separation import Population
from harness.results.rules.terms import say
from harness.specs.reading.load import LoadedSpec
from harness.triage.reduction.candidate import changed_options

_ENOUGH = 3
"""Calls of a kind that are shrunk to the same end before others of this kind count as the same defect."""
_FOR_A_RULE = 3
"""Failing calls from which a rule says something."""


Kind = tuple[object, ...]
"""What failing calls have in common before any is shrunk (`kind_of`)."""
Defect = tuple[object, ...]
"""What stays of a call that is shrunk (`defect_of`)."""


@dataclass
class FuzzFinding:
    """One defect: its smallest call with its spec, whether that is shrunk at all, and the numbers of the calls that
    show it.

    `remark` is what is to be known beside it; `culprit` are the transformers that make a graph fail, `like` the known
    deviations that it may be another face of.
    """

    case: Case
    spec: LoadedSpec
    signature: Signature
    calls: list[int] = field(default_factory=list)
    remark: str = ""
    culprit: tuple[str, ...] = ()
    like: list[str] = field(default_factory=list)

    @property
    def kernels(self) -> str:
        """Of a graph that no transformer makes fail: the known deviation of one of its operators, or its only operator,
        whose own spec is to judge it; empty for any other finding."""
        if self.spec.graph is None or self.culprit:
            return ""
        nodes = self.spec.graph.spec.nodes
        return self.like[0].partition(" ")[0] if self.like else nodes[0].operator if len(nodes) == 1 else ""


class FuzzFindings:
    """Everything that ran, and the findings in the order in which they were made."""

    def __init__(self) -> None:
        self.found: dict[Defect, FuzzFinding] = {}
        self._ids: list[str] = []
        self._levels: list[str] = []
        self._passing: list[int] = []
        self._ends: dict[Kind, list[Defect]] = defaultdict(list)

    @property
    def new(self) -> list[FuzzFinding]:
        """The findings that are not a kernel's, in the order in which they were made."""
        return [each for each in self.found.values() if not each.kernels]

    def ran(self, alias: str, level: str) -> int:
        """Take a call that ran; return its number."""
        self._ids.append(alias)
        self._levels.append(level)
        return len(self._ids) - 1

    def passed(self, number: int) -> None:
        """Take a call that failing ones are held against."""
        self._passing.append(number)

    def settled(self, kind: Kind) -> FuzzFinding | None:
        """Return the finding that calls of a kind belong to, None as long as one more is to be shrunk."""
        ends = self._ends[kind]
        return self.found[ends[-1]] if len(ends) >= _ENOUGH and len(set(ends[-_ENOUGH:])) == 1 else None

    def add(self, kind: Kind, number: int, shrunk: FuzzFinding) -> FuzzFinding | None:
        """Take the reduced form of a failing call; return the finding if it is new."""
        defect = defect_of(shrunk)
        self._ends[kind].append(defect)
        new = defect not in self.found
        finding = self.found.setdefault(defect, shrunk)
        finding.calls.append(number)
        return finding if new else None

    def rule(self, finding: FuzzFinding) -> str:
        """Say what separates the calls of a finding from those that pass, as `harness explain` does; empty
        where there are too few."""
        if len(finding.calls) < _FOR_A_RULE or not self._passing or finding.spec.graph is not None:
            return ""
        table = FeatureTable()
        for case_id, level in zip(self._ids, self._levels, strict=True):
            table.add(case_id, level)
        separation = Population(table, np.array(self._passing, np.intp)).separate(
            np.array(finding.calls, np.intp), 1
        )
        if len(separation.rules) != 1:
            return ""
        (rule,) = separation.rules
        return f"{say(rule.terms)}: {rule.failing:,} of {rule.failing + rule.passing:,} such calls fail in this way"


def kind_of(case: Case, signature: Signature, culprit: tuple[str, ...] = ()) -> Kind:
    """Return the kind of a failing call: how it fails, and what decides the kernel; of a graph the transformers at fault
    decide it."""
    return (
        signature,
        0 if culprit else case.opset,
        culprit or tuple(spec.dtype for spec in case.inputs),
        case.options.optimization != "off",
        () if culprit else tuple(sorted(case.attributes)),
    )


def defect_of(finding: FuzzFinding) -> Defect:
    """Return what stays of a call that is shrunk, but for extents and elements: equal for calls of one defect; of a graph
    the operators, and the transformers at fault."""
    case, graph = finding.case, finding.spec.graph
    nodes = () if graph is None else sorted({node.operator for node in graph.spec.nodes})
    return (
        finding.signature,
        tuple(dict.fromkeys(spec.dtype for spec in case.inputs)) if graph is None else finding.culprit,
        (
            *(f"{name}={value}" for name, value in sorted(case.attributes.items()) if isinstance(value, str)),
            *nodes,
        ),
        tuple(changed_options(case.options)),
    )
