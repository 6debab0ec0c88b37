"""Plans of the default specs of the operators that a test needs, made once for all tests of a process."""

from __future__ import annotations

from functools import cache

import pytest

from harness.model.query import parse_all
from harness.operators import COLLECTED
from harness.specs.expand import Plan, expand
from harness.specs.reading.load import load_specs, own_spec
from harness.specs.selection import Selection

DEEPEST = ("GatherElements", "GatherND", "Round")
"""The operators whose cases are more various than any others': where a test needs many cases and not every
operator."""
OF_EACH_FAMILY = (
    "Add",
    "Cast",
    "Concat",
    "Conv",
    "CumSum",
    "Gather",
    "LayerNormalization",
    "QuantizeLinear",
    "Range",
    "ReduceSum",
    "Round",
    "Softmax",
    "Split",
    "TopK",
    "Transpose",
)
"""Where every operator is asked about, a test asks these, and those that are left as `slow`."""


def plan_in_parts(part: str) -> Plan:
    """Return the plan of `OF_EACH_FAMILY`, or of `the rest`."""
    return plan_of(
        *(OF_EACH_FAMILY if part == "one of each family" else sorted(set(COLLECTED) - set(OF_EACH_FAMILY)))
    )


PARTS = ("one of each family", pytest.param("the rest", marks=pytest.mark.slow))


@cache
def plan_of(*operators: str) -> Plan:
    """Return the plan of some operators' default specs."""
    return expand(load_specs([own_spec(operator) for operator in operators]))


def selected(*queries: str) -> Selection:
    """Return what queries that name an operator each select."""
    parsed = parse_all(queries)
    return Selection(plan_of(*sorted({query.operator or "" for query in parsed})), parsed)
