"""Computes the expected outputs of a case, in the arithmetic that applies to a provider; and checks whether
documented results agree with them."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from harness.model.case import Case, Tensor, Validity
from harness.model.diff import compare
from harness.model.expected import Expected
from harness.model.target_info import DIRECTML, DML
from harness.operators import OPERATORS
from harness.operators.base import UNKNOWN, Call, Undefined
from harness.targets.execution import Prepared

_DECLARED = {DML: "d3d", DIRECTML: "d3d"}
"""The arithmetic that a provider is held to; any other to that of a good mathematical library
(`data/arithmetics.yaml`)."""


class OracleError(Exception):
    """The formula of a case gave no result that the case could have."""


@np.errstate(all="ignore")
def oracle(prepared: Prepared, provider: str) -> tuple[Expected, ...] | None:
    """Return what each output that the graph gives is held against, in the arithmetic declared of a provider.

    None for an unspecified case on which the operator's formula says nothing. NumPy warns of no infinity or NaN that a
    formula meets: it would in the terminal of a run. Raises OracleError where the
    formula fails, or gives another shape than the operator's family infers.
    """
    case, call = prepared.case, prepared.call
    operator = OPERATORS[case.operator]
    inputs = {spec.name: tensor for spec, tensor in zip(case.inputs, prepared.inputs, strict=True)}
    try:
        if case.validity is Validity.UNSPECIFIED and operator.broken(call, inputs):
            return None
        expected = operator.oracle(call, inputs, declared_by(provider))
        shapes = prepared.inferred or operator.family.output_shapes(operator, call)
        found_shapes = [each.shape for each in expected]
    except (Exception, SystemExit) as error:  # whatever a formula raises is its error, which a result says
        if isinstance(error, Undefined) and case.validity is Validity.UNSPECIFIED:
            return None
        raise OracleError(f"{case.operator}: {type(error).__name__}: {error}") from error
    for position, (found, shape) in enumerate(zip(found_shapes, shapes, strict=False)):
        if found != shape and (
            tuple(known if known != UNKNOWN else extent for extent, known in zip_longest(found, shape))
            != found
        ):
            raise OracleError(
                f"{case.operator}: output {position} of the formula has shape {list(found)}, inferred is {list(shape)}"
            )
    return expected if call.given is None else tuple(expected[position] for position in call.given)


def declared_by(provider: str) -> str:
    """Return the name of the arithmetic that a provider is held to."""
    return _DECLARED.get(provider, "opencl")


def contradiction(case: Case, call: Call, expected: tuple[Expected, ...]) -> str | None:
    """Say how the formula contradicts a documented result; None if it does not."""
    known = case.documented or ()
    places = range(len(known)) if call.given is None else call.given
    for found, documented in zip(expected, [known[place] for place in places if known], strict=False):
        if documented is None:
            continue
        diff = compare(found, Tensor(found.dtype, np.asarray(documented))).diff
        if diff is None:
            continue
        where = "" if diff.first_index is None else f" at [{', '.join(map(str, diff.first_index))}]"
        more = (
            f"; {diff.differing:,} of {diff.total:,} elements differ"
            if diff.first_index is not None and diff.total > 1
            else ""
        )
        return f"the formula gives {diff.expected}{where}, the spec says {diff.actual}{more}"
    return None
