"""Finds the spec entry from which a case comes: its line, where an editor, pytest or a pull request shows what went
wrong, and its origin, as a run file keeps it for its reports."""

from __future__ import annotations

import msgspec

from harness.model.caseid import CaseKey
from harness.model.header import Origin
from harness.specs.expand import Plan
from harness.specs.reading.entry_schema import Sweep
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.family_sweeps import family_sweeps


def entry_lines(spec: LoadedSpec) -> dict[str, int]:
    """Return the lines, counted from 1, by the term with which ids name an entry, `case=NAME` or
    `sweep=NAME`.

    Of the sweeps of a family it is the line of the `use`.
    """
    lines = spec.source.lines
    if spec.graph is not None:
        found = {f"case={case.name}": lines["cases", number] for number, case in enumerate(spec.model.cases)}
        return found | {
            f"sweep={sweep.name}": lines["sweeps", number]
            for number, sweep in enumerate(spec.graph.spec.sweeps)
        }
    found = {f"case={case.name}": lines["cases", number] for number, case in enumerate(spec.model.cases)}
    for number, entry in enumerate(spec.model.sweeps):
        sweeps = (
            [entry]
            if isinstance(entry, Sweep)
            else [each for each in family_sweeps(entry.use) if each.name not in entry.without]
        )
        found |= {f"sweep={sweep.name}": lines["sweeps", number] for sweep in sweeps}
    return found


def entry_of(case_id: str) -> str:
    """Return the term with which an id names the entry that its case is from."""
    return CaseKey.of(case_id).origin


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
