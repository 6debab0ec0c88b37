"""Finds the line of the spec entry from which a case comes, where an editor, pytest or a pull request shows
what went wrong."""

from __future__ import annotations

from harness.model.caseid import CaseKey
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.sweep_schema import Sweep
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
