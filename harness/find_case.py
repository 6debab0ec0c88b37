"""One case of the specs by what a user types: its id, or a query that only one case matches."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from harness.errors import UsageError
from harness.query import Query, explain_no_match
from harness.records import Case
from harness.specs.expand import Plan, expand
from harness.specs.load import LoadedSpec

_LISTED = 3


class Found(NamedTuple):
    """A case and the spec that it comes from."""

    case: Case
    spec: LoadedSpec


def find_case(specs: Sequence[LoadedSpec], text: str) -> Found:
    """Return the case that `text` names; UsageError where it is none or more than one, with what is near."""
    query = Query.parse(text)
    plan = expand(specs, (query,))
    matching: list[Case] = []
    near: list[str] = []
    for case in plan:
        if case.id == text:
            return Found(case, spec_of(plan, case))
        if query.matches(case.id):
            matching.append(case)
        elif case.id.startswith(text.partition(";")[0] + ";"):
            near.append(case.id)
    if len(matching) == 1:
        return Found(matching[0], spec_of(plan, matching[0]))
    if matching:
        ids = ", ".join(case.id for case in matching[:_LISTED])
        raise UsageError(f"{len(matching):,} cases match {text!r}: name one of them, for example {ids}")
    closest = difflib.get_close_matches(text, near[:2000], n=1, cutoff=0.0)
    if closest:
        raise UsageError(f"no case has the id {text!r}; the nearest is {closest[0]!r}")
    keys = {term.partition("=")[0] for case in plan for term in case.id.partition(":")[2].split(";")}
    operators = {spec.model.operator for spec in plan.specs}
    raise UsageError(f"no case has the id {text!r}: {explain_no_match([query], operators, keys)}")


def spec_of(plan: Plan, case: Case) -> LoadedSpec:
    """Return the spec of a case's operator."""
    return next(spec for spec in plan.specs if spec.model.operator == case.operator)
