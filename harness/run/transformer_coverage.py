"""Counts which transformers of ONNX Runtime's optimizer change the graphs of specs, which shows that a case
tests its fusion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from harness.model.case import Case, Validity
from harness.model.transformers import RULES, TRANSFORMERS
from harness.operators import OPERATORS
from harness.run.probe import Probe, Probes
from harness.specs.graphs.operator import FAMILY
from harness.specs.graphs.pattern import Pattern
from harness.specs.graphs.variations import combined, made, with_option


class TransformerCoverage(NamedTuple):
    """The cases by the transformer or rule that changed their graph, and the promises of `fuses_to` that the first
    case of a sweep did not keep."""

    triggered: dict[str, list[str]]
    unfused: list[str]

    @property
    def never(self) -> list[str]:
        """The transformers and rules that changed no graph."""
        names = [name for each in TRANSFORMERS for name in RULES.get(each, (each,))]
        return [name for name in dict.fromkeys(names) if name not in self.triggered]


def transformer_coverage(
    cases: Iterable[Case], probes: Probes, tell: Callable[[int, int], None]
) -> TransformerCoverage:
    """Run the graphs of cases at every optimisation, and those that rules changed once more without each rule; `tell`
    how many specs of how many are done."""
    chosen: dict[str, list[Case]] = {}
    for case in cases:
        if (
            OPERATORS[case.operator].family is FAMILY
            and case.options.optimization == "all"
            and case.validity is Validity.VALID
        ):
            chosen.setdefault(case.operator, []).append(case)
    triggered: dict[str, list[str]] = {}
    unfused: list[str] = []
    seen: set[str] = set()
    tell(0, len(chosen))
    for done, (name, of_one) in enumerate(chosen.items(), start=1):
        pattern: Pattern = OPERATORS[name].options
        claimed = _claimed(pattern)
        for probe in probes.run(of_one):
            case = probe.prepared.case
            found = [name for name in probe.execution.transformers if name not in RULES]
            found += _rules(probe, probes, seen)
            for name in found:
                triggered.setdefault(name, []).append(case.id)
            if case.id == claimed:
                unfused += _unfused(probe, pattern.spec.fuses_to)
        tell(done, len(chosen))
    return TransformerCoverage(triggered, unfused)


def _claimed(pattern: Pattern) -> str | None:
    """Return the case that `fuses_to` speaks of: the first level of each factor, optimised; None without a sweep."""
    for sweep in pattern.spec.sweeps:
        return with_option(made(pattern, sweep, next(combined(pattern, sweep))), "optimization", "all").id
    return None


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
    return sorted(probe.execution.graph_nodes)  # their order differs between sessions


def _unfused(probe: Probe, wanted: Sequence[str]) -> list[str]:
    nodes = _nodes(probe)
    became = {*nodes, *(name.rpartition(".")[2] for name in nodes)}
    lost = [name for name in wanted if name not in became]
    case = probe.prepared.case.id
    listed = ", ".join(nodes) or "nothing else"
    return [f"{case}: {', '.join(lost)} expected, the graph became {listed}"] if lost else []
