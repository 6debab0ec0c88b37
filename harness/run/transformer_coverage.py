"""Counts which transformers of ONNX Runtime's optimizer change the graphs of specs, by which a case shows that it
tests what it is meant to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.model.case import Case, Validity
from harness.model.transformers import RULES, TRANSFORMERS
from harness.operators import OPERATORS
from harness.run.probe import Probe, Probes
from harness.specs.graphs.operator import FAMILY
from harness.specs.graphs.pattern import Pattern


class TransformerCoverage(NamedTuple):
    """The cases by the transformer or rule that changed their graph, and what `fuses_to` promises and did not come of
    the first case of a sweep."""

    triggered: dict[str, list[str]]
    unfused: list[str]

    @property
    def never(self) -> list[str]:
        """The transformers and rules that changed no graph."""
        names = [name for each in TRANSFORMERS for name in RULES.get(each, (each,))]
        return [name for name in dict.fromkeys(names) if name not in self.triggered]


def transformer_coverage(cases: Iterable[Case], probes: Probes) -> TransformerCoverage:
    """Run the graphs of cases at every optimisation, and those that rules changed once more without each rule."""
    chosen = [
        case
        for case in cases
        if OPERATORS[case.operator].family is FAMILY
        and case.options.optimization == "all"
        and case.validity is Validity.VALID
    ]
    triggered: dict[str, list[str]] = {}
    unfused: list[str] = []
    seen: set[str] = set()
    for probe in probes.run(chosen):
        case = probe.prepared.case
        found = [name for name in probe.execution.transformers if name not in RULES]
        found += _rules(probe, probes, seen)
        for name in found:
            triggered.setdefault(name, []).append(case.id)
        if case.operator not in seen:  # the first case has the first level of each factor
            seen.add(case.operator)
            unfused += _unfused(probe)
    return TransformerCoverage(triggered, unfused)


def _rules(probe: Probe, probes: Probes, seen: set[str]) -> list[str]:
    """Return the rules without which another graph comes out: asked once for the same nodes made of a graph."""
    nodes = _nodes(probe)
    key = f"{probe.prepared.case.operator} {nodes}"
    rules = [rule for each in probe.execution.transformers for rule in RULES.get(each, ())]
    if not rules or key in seen:
        return []
    seen.add(key)
    without = probes.again([(probe.graph._replace(disabled=(rule,)), probe.prepared) for rule in rules])
    return [rule for rule, each in zip(rules, without, strict=True) if _nodes(each) != nodes]


def _nodes(probe: Probe) -> Sequence[str]:
    return probe.execution.graph_nodes


def _unfused(probe: Probe) -> list[str]:
    pattern: Pattern = OPERATORS[probe.prepared.case.operator].options
    nodes = _nodes(probe)
    made = {*nodes, *(name.rpartition(".")[2] for name in nodes)}
    lost = [name for name in pattern.spec.fuses_to if name not in made]
    case = probe.prepared.case.id
    became = ", ".join(nodes) or "nothing else"
    return [f"{case}: {', '.join(lost)} expected, the graph became {became}"] if lost else []
