"""`harness list`: the cases that a query selects, as ids or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.model.query import Query
from harness.model.records import Case
from harness.specs.expand import expand
from harness.specs.load import load_specs
from harness.specs.selection import select


def lines(
    specs: Sequence[Path], queries: tuple[Query, ...], *, as_json: bool, count: bool, everything: bool = False
) -> Iterator[str]:
    """Yield the lines to print; NothingRan if no case is selected."""
    loaded = load_specs(specs)
    plan = expand(loaded, queries, everything=everything)
    selection = select(plan, queries)
    total = selection.total()
    cases = (case for valid in (True, False) for case in selection.cases(valid=valid))
    if not count:
        for case in cases:
            yield _json(case) if as_json else case.id
        return
    for _ in cases:
        pass
    yield f"{total:,} cases"
    for reason, number in sorted(selection.left_out.items()):
        yield f"{number:,} cases left out: {reason}"
    for reason, number in sorted(plan.left_out.items()):
        yield f"{number:,} combinations left out: {reason}"


def _json(case: Case) -> str:
    described = {
        "case": case.id,
        "operator": case.operator,
        "opset": case.opset,
        "attributes": case.attributes,
        "inputs": case.inputs,
        "options": case.options,
        "validity": case.validity,
        "rule": case.rule,
        "source": case.source,
        "levels": case.levels,
    }
    return msgspec.json.encode(described).decode()
