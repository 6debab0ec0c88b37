"""Finds the spec entry from which a case comes: its line, where an editor, pytest or a pull request shows what went
wrong, and its origin, as a run file keeps it for its reports."""

from __future__ import annotations

import msgspec

from harness.model.caseid import CaseKey
from harness.model.header import Origin
from harness.specs.expand import Plan
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.family_sweeps import sweeps_in


def entry_lines(spec: LoadedSpec) -> dict[str, int]:
    """Return the lines, counted from 1, by the term with which ids name an entry, `case=NAME` or
    `sweep=NAME`.

    Of the sweeps of a family it is the line of the `use`.
    """
    lines = spec.source.lines
    found = {f"case={case.name}": lines["cases", number] for number, case in enumerate(spec.model.cases)}
    names = (
        [[sweep.name for sweep in sweeps_in(entry)] for entry in spec.model.sweeps]
        if spec.graph is None
        else [[sweep.name] for sweep in spec.graph.spec.sweeps]
    )
    return found | {
        f"sweep={name}": lines["sweeps", number] for number, each in enumerate(names) for name in each
    }


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
    """Name a spec's file: a file of the harness by its path in the repository, any other by the path that the user
    gave."""
    folder = "specs" if spec.graph is None else "specs/graphs"
    return f"{folder}/{spec.path.name}" if spec.built_in else spec.source.label
