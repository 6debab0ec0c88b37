"""Origins of spec entries, as a run file keeps them for its reports."""

from __future__ import annotations

from harness.model.caseid import CaseKey
from harness.model.records import Origin
from harness.specs.expand import Plan


def origins(plan: Plan) -> dict[str, Origin]:
    """Return source and rule of each entry that gives one, by operator and entry as ids begin:
    `GatherND:sweep=tuple_empty`."""
    found = {}
    for spec in plan.specs:
        for case in spec.model.cases:
            if case.source or case.rule:
                found[f"{spec.model.operator}:case={case.name}"] = Origin(case.source, case.rule)
    for one in plan.literals:
        if one.directml is not None and (one.source or one.rule):  # also those that no spec writes out
            found.setdefault(f"{one.operator}:{CaseKey.of(one.id).origin}", Origin(one.source, one.rule))
    for planned in plan.sweeps:
        sweep = planned.sweep
        if sweep.source or sweep.rule:
            found[f"{planned.operator.name}:sweep={sweep.name}"] = Origin(sweep.source, sweep.rule)
    return found
