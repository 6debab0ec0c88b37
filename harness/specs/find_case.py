"""Finds one case of the specs from a user's input: its id, or a query that only one case matches."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from harness.model.case import Case
from harness.model.caseid import CaseKey
from harness.model.errors import UsageError
from harness.model.query import Query, explain_no_match
from harness.specs.expand import Plan, expand
from harness.specs.reading.load import LoadedSpec

_LISTED = 3


class Found(NamedTuple):
    """A case and the spec that it comes from."""

    case: Case
    spec: LoadedSpec


def find_case(specs: Sequence[LoadedSpec], text: str) -> Found:
    """Return the case that `text` names. Errors: UsageError, with similar ids, if it names none or more than
    one.

    What no default case is may be one of the whole product of its sweep, of which `run --select all` tells.
    """
    query = Query.parse(text)
    plan = expand(specs, (query,))
    matching, near = _look(plan, text, query)
    if not matching and ":sweep=" in text:
        matching, _ = _look(expand(specs, (query,), everything=True), text, query)
    if len(matching) == 1:
        return Found(matching[0], plan.by_operator[matching[0].operator])
    if matching:
        ids = ", ".join(case.id for case in matching[:_LISTED])
        raise UsageError(f"{len(matching):,} cases match {text!r}: name one of them, for example {ids}")
    closest = difflib.get_close_matches(text, near[:2000], n=1, cutoff=0.0)
    if closest:
        raise UsageError(f"no case has the id {text!r}; the nearest is {closest[0]!r}")
    operators = {spec.model.operator for spec in plan.specs}
    hint = explain_no_match([query], operators, (case.id for case in plan))
    raise UsageError(f"no case has the id {text!r}: {hint}")


def _look(plan: Plan, text: str, query: Query) -> tuple[list[Case], list[str]]:
    """Return the cases that a query matches, the one whose id `text` is alone, and ids of the same sweep."""
    matching: list[Case] = []
    near: list[str] = []
    for case in plan.searched(query):
        if case.id == text:
            return [case], near
        if query.matches(case.id):
            matching.append(case)
        elif case.id.startswith(text.partition(";")[0] + ";"):
            near.append(case.id)
    return matching, near


def problem_of(spec: LoadedSpec, case: Case, what: str, *key: str) -> str:
    """Return a line on a literal case, with its place in the spec: `file:line: path: what`."""
    name = CaseKey.of(case.id).origin.partition("=")[2]
    position = next(number for number, entry in enumerate(spec.model.cases) if entry.name == name)
    return spec.problem(("cases", position, *key), what)
