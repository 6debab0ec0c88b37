"""Compares the outputs of a target with the expectation that describes its known deviation."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from msgspec import UnsetType

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.model.result import Diff, Memory
from harness.model.verdict import Outcome
from harness.model.wrong_elements import WrongElements
from harness.operators import OPERATORS
from harness.operators.base import Operator
from harness.operators.deviations import DEVIATIONS, Deviating
from harness.run.judge import Judgement, compare_all
from harness.run.oracle import declared_by
from harness.specs.expectations.expectation_entry import TODO, DifferenceLimit, Entry, formulas
from harness.specs.graphs.composition import composed
from harness.specs.graphs.operator import filled_graph
from harness.targets.execution import Prepared


class Given:
    """The outputs of a target that are not the oracle's."""

    def __init__(
        self, prepared: Prepared, outputs: tuple[Tensor, ...] | None, judgement: Judgement, provider: str
    ) -> None:
        self._prepared = prepared
        self._outputs = outputs
        self._judgement = judgement
        self._provider = provider
        self._known: dict[str, bool] = {}

    def allows(self, entry: Entry) -> bool:
        """Say whether the outputs, or the error without them, are those that an entry states; true of an entry that
        states none."""
        if self._judgement.outcome is not entry.expect:
            return True
        error = self._judgement.error
        if self._outputs is None:
            return entry.message is None or (error is not None and entry.message in error.message)
        if (
            error is not None or entry.message is not None
        ):  # right outputs, of a shape that the session does not declare
            return error is not None and entry.message is not None and entry.message in error.message
        if entry.gives not in (None, TODO):
            found = self._known.get(entry.gives)
            if found is None:
                found = self._known[entry.gives] = self._is(entry.gives)
            return found
        if self._judgement.outcome is Outcome.ACCEPTED_INVALID:
            wanted = self._prepared.call.outputs
            return tuple(each.dtype for each in self._outputs) == wanted
        return not entry.difference or within(entry.difference, self._judgement.expected or (), self._outputs)

    def _is(self, name: str) -> bool:
        """Say whether the outputs are those of a formula."""
        given = deviating_outputs(name, self._prepared, self._provider)
        return given is not None and matches(given, self._outputs or ())


def deviating_outputs(name: str, prepared: Prepared, provider: str) -> tuple[Expected, ...] | None:
    """Return the outputs of a case by a formula of `operators.deviations`, or by formulas of operators of its
    graph; None if they do not apply."""
    case, call = prepared.case, prepared.call
    inputs = {spec.name: tensor for spec, tensor in zip(case.inputs, prepared.inputs, strict=True)}
    operator, arithmetic = OPERATORS[case.operator], declared_by(provider)
    named, found = formulas(name), None
    of_nodes = any(node for _, node in named)
    # Undefined, or whatever a formula raises of a call that it was not written for: it says nothing of that
    with suppress(Exception), np.errstate(all="ignore"):
        if of_nodes:
            nodes = {**OPERATORS, **{node: deviating(formula, node) for formula, node in named}}
            graph = filled_graph(operator, call)
            found = composed(graph, call.opset, inputs, arithmetic, operators=nodes)
        else:
            found = DEVIATIONS[name](Deviating(operator, call, inputs, arithmetic))
    if found is None:
        return None
    return found if call.given is None else tuple(found[position] for position in call.given)


def deviating(formula: str, name: str) -> Operator:
    """Return an operator whose formula is that of a deviation."""
    operator = OPERATORS[name]
    return operator._replace(
        oracle=lambda call, inputs, arithmetic: DEVIATIONS[formula](
            Deviating(operator, call, inputs, arithmetic)
        )
    )


def matches(expected: tuple[Expected, ...], outputs: tuple[Tensor, ...]) -> bool:
    """Say whether outputs are as expected, their number too."""
    return len(expected) == len(outputs) and compare_all(expected, outputs)[0] is None


def within(
    limits: Sequence[DifferenceLimit], expected: tuple[Expected, ...], outputs: tuple[Tensor, ...]
) -> bool:
    """Say whether outputs have number, shapes and element types as expected, and every wrong element keeps to one
    of the limits."""
    if [(each.dtype, each.shape) for each in expected] != [
        (each.dtype, each.array.shape) for each in outputs
    ]:
        return False
    for wanted, output in zip(expected, outputs, strict=True):
        wrong = WrongElements(wanted, output)
        if len(wrong) and not np.logical_or.reduce([limit.met(wrong) for limit in limits]).all():
            return False
    return True


def remembers(entry: Entry | None, memory: Memory | UnsetType, diff: Diff | None) -> bool:
    """Say whether what became of a result's elements over other memory is as an entry states: none is from outside
    of the inputs unless it says so, and where it names what memory makes of the wrong elements of a mismatch, there are
    as many of these, unless it says that any output can come of it."""
    stated = (entry.memory or ()) if entry is not None else ()
    if not isinstance(memory, Memory):
        return not stated or diff is None
    if memory.outside and "outside" not in stated:
        return False
    if not stated or diff is None or (entry is not None and entry.masked is not None):
        return True
    decided: int = sum(getattr(memory, kind) for kind in stated)
    return decided >= diff.differing
