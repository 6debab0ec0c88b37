"""`harness list`: lists the cases that a query selects, as ids or as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harness.model.records import Case
from harness.specs.selection import Selection


def lines(selection: Selection, *, as_json: bool, count: bool) -> Iterator[str]:
    """Yield the lines to print of a selection."""
    if not count:
        for case in selection:
            yield _json(case) if as_json else case.id
        return
    total = sum(1 for _ in selection)
    yield f"{total:,} cases"
    for reason, number in sorted(selection.left_out.items()):
        yield f"{number:,} cases left out: {reason}"
    for reason, number in sorted(selection.plan.left_out.items()):
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
