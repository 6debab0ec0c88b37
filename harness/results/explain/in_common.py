"""Explains the unexpected failures of a run for its reports: the rules of `explain`, for the largest groups.

A run without unexpected failures is not read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.model.errors import HarnessError
from harness.model.verdict import Reading
from harness.results.explain.explanation import explain
from harness.results.explain.failures import FailureGroup
from harness.results.explain.words import elsewhere, statement, verdict_of
from harness.results.runfile import RunReader
from harness.results.summary import count
from harness.results.tables import Tables

GROUPS = 6
"""Groups that reports explain."""
RESULTS = 250_000
"""Results up to which reports explain any: beyond that the rules take longer than the rest of the report."""
_RULES = 3


class InCommon(NamedTuple):
    """The explained groups, largest first; `remark` names the unexplained results and how to explain them,
    empty if there are none."""

    groups: tuple[FailureGroup, ...] = ()
    remark: str = ""

    def __bool__(self) -> bool:
        return bool(self.groups or self.remark)


NOTHING = InCommon()


def in_common(run: Path, tables: Tables) -> InCommon:
    """Explain the unexpected failures of a run whose tables these are; empty without such failures."""
    total = tables.tally()
    if total.unexpected == total.red(Reading.CORRECT):
        return NOTHING
    if total.run > RESULTS:
        return InCommon(
            remark="Too many results to explain in a report: harness explain RUN tells what the failures have in common."
        )
    try:
        found = explain(RunReader(run), most=GROUPS)
    except HarnessError as error:
        return InCommon(remark=f"Not explained: {error}")
    more = (
        f"{count(found.unexplained, 'smaller group')} not explained here: harness explain RUN tells them all."
    )
    groups = (
        replace(group, kind=group.kind._replace(target=tables.names[group.kind.target]))
        for group in found.groups
    )
    return InCommon(tuple(groups), more if found.unexplained else "")


def rules(group: FailureGroup) -> Iterator[str]:
    """Yield what holds for the failures of a group and not for what passes, with counts both ways; or that
    nothing does."""
    found = group.separation.rules
    if not found or not group.population or not group.separation.exact:
        yield verdict_of(group)
    if group.population:
        yield from (statement(group, rule) for rule in found[:_RULES])
        if len(found) > 1:
            more = f"{count(len(found) - _RULES, 'more rule')}; " if len(found) > _RULES else ""
            yield more + elsewhere(group)
