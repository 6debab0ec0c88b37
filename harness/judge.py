"""From an execution to an outcome, and from an outcome to a verdict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.diff import compare
from harness.execution import Execution, Graph, Prepared
from harness.operators import OPERATORS
from harness.records import CANNOT_BE_ASKED, Case, Diff, Error, Outcome, Tensor, Validity, Verdict, conforms

_NO_KERNEL = frozenset({"NotImplemented"})
"""Error classes by which onnxruntime says that a provider has no kernel for a node; the class, since wording changes between releases."""
_FUSED = "DmlFusedNode"
"""How the type of a node begins that the DirectML provider compiled of several, where a release cannot be told not to (before 1.15)."""


class Judgement(NamedTuple):
    """An outcome with what led to it."""

    outcome: Outcome
    placed_on: str | None = None
    error: Error | None = None
    diff: Diff | None = None
    expected: Tensor | None = None


def judge(prepared: Prepared, graph: Graph, execution: Execution, provider: str) -> Judgement:
    """Compare what a target did with what the case asks for.

    A pass needs all tested nodes on `provider`, as the session itself reports them; the oracle is asked only where there is an output.
    """
    case = prepared.case
    if execution.ended is not None:
        outcome = Outcome.TIMEOUT if execution.ended == "timeout" else Outcome.CRASH
        return Judgement(outcome, None, execution.error)
    placed_on, doubt = placement(execution, graph, provider)
    if execution.output is None:
        assert execution.error is not None
        # the profile of a run that failed lacks the node that failed: misplaced is a node that is known to be elsewhere
        return Judgement(_outcome_of_error(execution, doubt is not None and placed_on is not None), placed_on, execution.error)
    if doubt is not None:
        return Judgement(Outcome.NOT_PLACED, placed_on, Error("NotPlaced", doubt))
    if case.validity is Validity.INVALID:
        return Judgement(Outcome.ACCEPTED_INVALID, placed_on)
    expected = oracle(prepared)
    if expected is None:  # an unspecified case whose result no source defines: it ran, and that is all that can be said
        return Judgement(Outcome.ACCEPTED_INVALID, placed_on)
    contradiction = _contradiction(case, expected)
    if contradiction is not None:
        return Judgement(Outcome.ORACLE_ERROR, placed_on, None, contradiction, expected)
    diff = compare(expected, execution.output)
    return Judgement(Outcome.PASS if diff is None else Outcome.MISMATCH, placed_on, None, diff, expected)


def _outcome_of_error(execution: Execution, misplaced: bool) -> Outcome:
    assert execution.error is not None
    if execution.error.class_ in CANNOT_BE_ASKED:
        return Outcome.NOT_RUN
    if execution.error.class_ in _NO_KERNEL:
        return Outcome.UNSUPPORTED
    return Outcome.NOT_PLACED if misplaced else Outcome.REJECTED


def placement(execution: Execution, graph: Graph, provider: str) -> tuple[str | None, str | None]:
    """Return (provider that is proven to run the tested nodes, None), or (what is known, why it is no proof).

    With optimisation off nothing is folded or left out, so a tested node that is not listed under its own type is inside a node that the
    provider fused, if there is one.
    """
    nodes = execution.nodes
    if nodes is None:
        return None, "the runtime did not say where the node was placed"
    if len(nodes) == 1 and nodes[0][0] == provider and nodes[0][1] == graph.tested[0] and len(graph.tested) == 1:
        return provider, None
    elsewhere = sorted({where for where, operator in nodes if operator in graph.tested and where != provider})
    if elsewhere:
        return ", ".join(elsewhere), f"{', '.join(graph.tested)} ran on {', '.join(elsewhere)}"
    if graph.optimization == "off" and any(where == provider and operator.startswith(_FUSED) for where, operator in nodes):
        return provider, None
    absent = [operator for operator in graph.tested if operator not in {found for _, found in nodes}]
    if absent:
        return None, f"{', '.join(absent)} is not in the graph that ran: folded or fused"
    return provider, None


def oracle(prepared: Prepared) -> Tensor | None:
    """Return the expected output; None for an unspecified case on which the operator's formula says nothing."""
    case = prepared.case
    operator = OPERATORS[case.operator]
    if case.validity is Validity.UNSPECIFIED:
        shapes = tuple(tensor.array.shape for tensor in prepared.inputs)
        if operator.broken_rule(shapes, case.attributes) or operator.broken_by_values(prepared.inputs, case.attributes):
            return None
    return operator.oracle(prepared.inputs, case.attributes, case.options.variant)


def _contradiction(case: Case, expected: Tensor) -> Diff | None:
    if case.documented is None:
        return None
    return compare(Tensor(expected.dtype, np.asarray(case.documented)), expected)


def verdict(validity: Validity, outcome: Outcome, expected: Outcome | None) -> Verdict:
    """Hold an outcome against a reviewed expectation: `expected` is the outcome other than conforming that is known, None where none is.

    What a release cannot be asked contradicts no expectation.
    """
    if outcome is expected or outcome is Outcome.NOT_RUN:
        return Verdict.EXPECTED
    if conforms(validity, outcome):
        return Verdict.EXPECTED if expected is None else Verdict.IMPROVEMENT
    return Verdict.REGRESSION if expected is None else Verdict.CHANGED
