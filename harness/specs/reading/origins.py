"""Origins of spec entries, as a run file keeps them for its reports."""

from __future__ import annotations

import msgspec

from harness.model.caseid import CaseKey
from harness.model.header import Origin
from harness.specs.expand import Plan
from harness.specs.reading.lines import entry_lines
from harness.specs.reading.load import LoadedSpec


def origins(plan: Plan) -> dict[str, Origin]:
    """Return source, rule and place of each entry of the specs, by operator and entry as ids begin:
    `GatherND:sweep=tuple_empty`."""
    found = {}
    for spec in plan.specs:
        if spec.graph is not None:
            for each in spec.graph.spec.sweeps:
                found[f"{spec.model.operator}:sweep={each.name}"] = Origin(spec.graph.spec.source, None)
        for case in spec.model.cases:
            if case.source or case.rule:
                found[f"{spec.model.operator}:case={case.name}"] = Origin(case.source, case.rule)
    for one in plan.literals:
        if one.source or one.rule:  # also those that no spec writes out
            found.setdefault(f"{one.operator}:{CaseKey.of(one.id).origin}", Origin(one.source, one.rule))
    for planned in plan.sweeps:
        sweep = planned.sweep
        if sweep.source or sweep.rule:
            found[f"{planned.operator.name}:sweep={sweep.name}"] = Origin(sweep.source, sweep.rule)
    for spec in plan.specs:
        for entry, line in entry_lines(spec).items():
            key = f"{spec.model.operator}:{entry}"
            found[key] = msgspec.structs.replace(found.get(key, Origin()), spec=f"{_file(spec)}:{line}")
    return found


def _file(spec: LoadedSpec) -> str:
    """Name a spec's file: one that comes with the harness as it is in the repository, another as the user
    did."""
    folder = "specs" if spec.graph is None else "specs/graphs"
    return f"{folder}/{spec.path.name}" if spec.built_in else spec.source.label
