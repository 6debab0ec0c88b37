"""Judges an execution: derives its outcome, and from the outcome a verdict."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from harness.model.case import Tensor, Validity
from harness.model.diff import compare, describe
from harness.model.expected import Exact, Expected
from harness.model.nan_bits import nan_bits
from harness.model.result import CANNOT_BE_ASKED, DECLARED_SHAPE, ORACLE_ERROR, Accuracy, Diff, Error, NanBits
from harness.model.verdict import Outcome, Verdict, conforms
from harness.operators.products.sampling import Sample, sampled
from harness.run.oracle import OracleError, contradiction, oracle
from harness.targets.execution import Execution, Graph, Nodes, Prepared

_NO_KERNEL = frozenset({"NotImplemented"})
"""Error classes by which onnxruntime says that a provider has no kernel for a node; the class, since wording
changes between releases."""
_NO_OUTPUT = "NoOutputError"
"""The worker's class for an output that was not made although no error was raised: nothing was refused."""
_FUSED = "DmlFusedNode"
"""How the type of a node begins that the DirectML provider compiled of several, where a release cannot be
told not to (before 1.15)."""


class Judgement(NamedTuple):
    """An outcome with what led to it; `expected` is one an output, `accuracy` that of the output with the
    largest ratio."""

    outcome: Outcome
    placed_on: str | None = None
    error: Error | None = None
    diff: Diff | None = None
    expected: tuple[Expected, ...] | None = None
    accuracy: Accuracy | None = None
    empty: bool = False
    """A pass without an element that was compared."""
    nans: NanBits | None = None
    function_nodes: int | None = None
    """The number of nodes that ran in the operator's place."""
    sampled: tuple[int, int] | None = None
    """How many elements were judged of how many, where not all were; a place in `diff` is one among them."""


class NodePlacement(NamedTuple):
    """The provider of the tested nodes, and in `doubt` why that is no proof. `function_nodes` is the number of
    nodes that ran in place of operators without a kernel, by the bodies that ONNX gives these."""

    provider: str | None
    doubt: str | None = None
    function_nodes: int | None = None


def compared(prepared: Prepared, outputs: tuple[Tensor, ...], provider: str) -> Judgement:
    """Hold the outputs of `provider` against the oracle's."""
    case = prepared.case
    if case.validity is Validity.INVALID:
        return Judgement(Outcome.ACCEPTED_INVALID, provider)
    sample = None if case.documented else _sample(prepared)
    if sample is not None:
        of = outputs[0].array.size
        prepared = prepared._replace(call=sample.call, inputs=tuple(sample.inputs.values()), inferred=())
        outputs = (Tensor(outputs[0].dtype, outputs[0].array.take(sample.places, sample.axis)),)
    try:
        expected = oracle(prepared, provider)
    except OracleError as error:
        return Judgement(Outcome.ORACLE_ERROR, provider, Error(ORACLE_ERROR, str(error)))
    if (
        expected is None
    ):  # an unspecified case whose result no source defines: it ran, and that is all that can be said
        return Judgement(Outcome.ACCEPTED_INVALID, provider)
    wrong = contradiction(case, prepared.call, expected)
    if wrong is not None:
        return Judgement(Outcome.ORACLE_ERROR, provider, Error(ORACLE_ERROR, wrong), expected=expected)
    diff, accuracy = compare_all(expected, outputs)
    empty = diff is None and not any(output.array.size for output in outputs)
    return Judgement(
        Outcome.PASS if diff is None else Outcome.MISMATCH,
        provider,
        None,
        diff,
        expected,
        accuracy,
        empty,
        _nans(expected, outputs),
        sampled=None if sample is None else (outputs[0].array.size, of),
    )


def judge(
    prepared: Prepared,
    graph: Graph,
    execution: Execution,
    provider: str,
) -> Judgement:
    """Compare the outcome of a case on a target with the expected one.

    A pass needs all tested nodes on `provider`, as the session itself reports them; the oracle is asked only
    where there is an output.
    """
    if execution.ended is not None:
        outcome = Outcome.TIMEOUT if execution.ended == "timeout" else Outcome.CRASH
        return Judgement(outcome, None, execution.error)
    placed_on, doubt, function_nodes = placement(execution, graph, provider)
    if execution.outputs is None:
        assert execution.error is not None
        # the profile of a run that failed lacks the node that failed: misplaced is a node that is known to be
        # elsewhere
        if execution.error.class_ == _NO_OUTPUT and prepared.case.validity is Validity.INVALID:
            return Judgement(Outcome.ACCEPTED_INVALID, placed_on, execution.error)
        outcome = _outcome_of_error(execution, doubt is not None and placed_on is not None)
        return Judgement(outcome, None if outcome is Outcome.NOT_RUN else placed_on, execution.error)
    if doubt is not None:
        return Judgement(Outcome.NOT_PLACED, placed_on, Error("NotPlaced", doubt))
    found = compared(prepared, execution.outputs, provider)._replace(function_nodes=function_nodes)
    return _declared(found, execution, graph)


def _declared(judgement: Judgement, execution: Execution, graph: Graph) -> Judgement:
    """Return what becomes of right outputs where the session declares another shape for one of them: an application makes
    room by it, and the optimizer computes with it."""
    if execution.declared is None or execution.outputs is None or judgement.outcome is not Outcome.PASS:
        return judgement
    position, shape = execution.declared
    output, name = execution.outputs[position], graph.outputs[position][0]
    declared = f"[{','.join('?' if extent is None else str(extent) for extent in shape)}]"
    error = Error(DECLARED_SHAPE, f"the session declares {name} of shape {declared}")
    size, actual = output.array.size, f"{output.dtype}{declared} declared"
    diff = Diff(None, size, size, None, describe(output), actual, output=position or UNSET)
    return judgement._replace(outcome=Outcome.MISMATCH, error=error, diff=diff)


def _sample(prepared: Prepared) -> Sample | None:
    """Return the part of a call that is judged in place of all."""
    names = (spec.name for spec in prepared.case.inputs)
    return sampled(prepared.case.operator, prepared.call, dict(zip(names, prepared.inputs, strict=True)))


def _nans(expected: tuple[Expected, ...], outputs: tuple[Tensor, ...]) -> NanBits | None:
    """Return the bits of NaNs in the first output that has any: one with a bound has none of its own."""
    for wanted, output in zip(expected, outputs, strict=False):
        if isinstance(wanted, Exact):
            found = nan_bits(wanted.tensor, output)
            if found is not None:
                return found
    return None


def compare_all(
    expected: tuple[Expected, ...], outputs: tuple[Tensor, ...]
) -> tuple[Diff | None, Accuracy | None]:
    """Return how the first output that differs does so, and the accuracy of the output that is farthest from
    its value."""
    diff = accuracy = None
    for position, (wanted, output) in enumerate(zip(expected, outputs, strict=True)):
        found, near = compare(wanted, output, outputs)
        if found is not None and diff is None:
            diff = found if position == 0 else msgspec.structs.replace(found, output=position)
        if near is not None and (
            accuracy is None or (near.claims, near.ratio) > (accuracy.claims, accuracy.ratio)
        ):
            accuracy = near
    return diff, accuracy


def _outcome_of_error(execution: Execution, misplaced: bool) -> Outcome:
    assert execution.error is not None
    if execution.error.class_ in CANNOT_BE_ASKED:
        return Outcome.NOT_RUN
    if execution.error.class_ in _NO_KERNEL:
        return Outcome.UNSUPPORTED
    return Outcome.NOT_PLACED if misplaced else Outcome.REJECTED


def placement(execution: Execution, graph: Graph, provider: str) -> NodePlacement:
    """Return where the tested nodes ran.

    A graph composed of several nodes needs all of them: as many of each type as it has, unless optimisation
    merged some. With optimisation off nothing is folded or left out, so a tested node that is not listed
    under its own type is inside a node that the provider fused, if there is one and the release cannot be
    told to keep nodes apart.

    An operator that is absent and a function ran as its body, if any node ran beside the graph's others; then
    all nodes must be on `provider`. No body of ONNX's holds its own operator.
    """
    nodes = execution.nodes
    if nodes is None:
        return NodePlacement(None, "the runtime did not say where the node was placed")
    if graph.composed:
        return _placement_of_all(nodes, graph, provider)
    if nodes == ((provider, graph.tested[0]),) and len(graph.tested) == 1:
        return NodePlacement(provider)
    found = Counter(operator for _, operator in nodes)
    wanted = Counter(graph.tested)
    absent = [operator for operator in wanted if not found[operator]]
    bodies = [operator for operator in absent if operator in graph.functions]
    astray = [node for node in nodes if node[0] != provider and (bodies or node[1] in wanted)]
    if astray:
        where, operators = (", ".join(sorted(set(each))) for each in zip(*astray, strict=True))
        whose = f" of the function {', '.join(bodies)}" if bodies else ""
        return NodePlacement(where, f"{operators}{whose} ran on {where}")
    off = graph.optimization == "off"
    if (
        off
        and execution.fuses
        and any(where == provider and operator.startswith(_FUSED) for where, operator in nodes)
    ):
        return NodePlacement(provider)
    own = Counter(graph.untested) + Counter({each: wanted[each] for each in wanted if each not in absent})
    function_nodes = (found - own).total() if bodies else 0
    lost = [operator for operator in absent if not (function_nodes and operator in bodies)]
    if lost:
        return NodePlacement(None, f"{', '.join(lost)} is not in the graph that ran: folded or fused")
    few = [f"{found[each]} of {count} {each}" for each, count in wanted.items() if 0 < found[each] < count]
    if off and few:
        return NodePlacement(None, f"only {', '.join(few)} are in the graph that ran")
    return NodePlacement(provider, None, function_nodes or None)


def _placement_of_all(nodes: Nodes, graph: Graph, provider: str) -> NodePlacement:
    """Return the providers of the nodes of a graph of several operators, including all that an optimizer made of
    them. With optimisation off no node may be missing, except a function that was replaced by its body, and nodes
    that a saved model lacks."""
    astray = [node for node in nodes if node[0] != provider]
    if astray:
        where, operators = (", ".join(sorted(set(each))) for each in zip(*astray, strict=True))
        return NodePlacement(where, f"{operators} ran on {where}")
    absent = Counter(graph.tested) - Counter(operator for _, operator in nodes)
    lost = [operator for operator in absent if operator not in graph.functions]
    whole = graph.optimization == "off" and "saved" not in dict(graph.deployed)
    if lost and whole and not any(name.startswith(_FUSED) for _, name in nodes):
        return NodePlacement(None, f"{', '.join(lost)} is not in the graph that ran")
    return NodePlacement(provider)


def verdict(validity: Validity, outcome: Outcome, expected: Outcome | None) -> Verdict:
    """Hold an outcome against a reviewed expectation: `expected` is the outcome other than conforming that is
    known, None where none is.

    What a release cannot be asked contradicts no expectation.
    """
    if outcome is expected or outcome is Outcome.NOT_RUN:
        return Verdict.EXPECTED
    if conforms(validity, outcome):
        return Verdict.EXPECTED if expected is None else Verdict.IMPROVEMENT
    return Verdict.REGRESSION if expected is None else Verdict.CHANGED
