"""Where the entries of specs are from, as a run file keeps it for its reports."""

from __future__ import annotations

from collections.abc import Iterable

from harness.records import Origin
from harness.specs.family_sweeps import named_sweeps
from harness.specs.load import LoadedSpec


def origins(specs: Iterable[LoadedSpec]) -> dict[str, Origin]:
    """Return source and rule of each entry that gives one, by operator and entry as ids begin: `GatherND:sweep=tuple_empty`."""
    found = {}
    for loaded in specs:
        spec = loaded.model
        for kind, entries in (("case", spec.cases), ("sweep", named_sweeps(spec))):
            for entry in entries:
                if entry.source or entry.rule:
                    found[f"{spec.operator}:{kind}={entry.name}"] = Origin(entry.source, entry.rule)
    return found
