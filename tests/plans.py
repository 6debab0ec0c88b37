"""The plan of the default specs, and the ids of its cases: made once for all tests of a process."""

from __future__ import annotations

from functools import cache

from harness.specs.expand import Plan, expand
from harness.specs.load import load_specs


@cache
def default_plan() -> Plan:
    """Return the plan of the default specs, for whoever does not ask it what was left out: going through it counts that."""
    return expand(load_specs(()))


@cache
def default_ids() -> tuple[str, ...]:
    """Return the id of every case, in the plan's order."""
    return tuple(case.id for case in default_plan())
