"""Wrong implementations of the operators, as a provider would get them wrong, and which cases of a plan turn
red on them.

A mutant is a kernel in this process: it takes a case's inputs and gives an output or refuses, and is judged
as a target is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from harness.model.case import Case, Tensor, Validity
from harness.model.dtypes import DTYPES, Array
from harness.model.result import Error
from harness.model.verdict import conforms
from harness.operators import OPERATORS
from harness.run.judge import judge
from harness.targets.execution import Execution, Graph, Prepared
from tests.prepared import prepared_case, right_output

PROVIDER = "MutantExecutionProvider"


class Refused(Exception):
    """The kernel gives an error instead of an output."""


@dataclass(frozen=True)
class Call:
    """What a kernel is given: the case and its inputs, in the order of the specification."""

    prepared: Prepared

    @property
    def case(self) -> Case:
        return self.prepared.case

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.prepared.inputs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tensor.array.shape for tensor in self.inputs)

    @cached_property
    def _formula(self) -> Array:
        return right_output(self.prepared).array

    @cached_property
    def _invalid(self) -> bool:
        operator = OPERATORS[self.case.operator]
        given = self.prepared.call
        inputs = dict(zip(given.inputs, self.inputs, strict=True))
        return self.case.validity is Validity.INVALID or operator.broken(given, inputs) is not None

    def right(self) -> Array:
        """Return what the operator's formula gives, the same array each time; refuse an invalid call."""
        self.refuse()
        return self._formula

    def refuse(self) -> None:
        """Refuse what breaks a rule of the specification."""
        if self._invalid:
            raise Refused


class Mutant(NamedTuple):
    """One mistake. `enough` is how many cases must turn red; `elsewhere` names the targets that cannot run
    any such case."""

    name: str
    operator: str
    kernel: Callable[[Call], Array]
    enough: int = 2
    elsewhere: tuple[str, ...] = ()


def red(mutant: Mutant, call: Call) -> bool:
    """Say whether a case fails on a mutant."""
    case = call.case
    dtype = call.inputs[0].dtype
    output = error = None
    try:
        with np.errstate(all="ignore"):
            made = mutant.kernel(call)
        if case.validity is Validity.VALID and made is call.right():
            return False
        output = (Tensor(dtype, np.asarray(made, DTYPES[dtype].storage)),)
    except Refused:
        error = Error("Refused", "")
    nodes = ((PROVIDER, case.operator),)
    graph = Graph(b"", "", (), (), (("", 0),), (case.operator,))
    found = judge(call.prepared, graph, Execution(output, error, "run", nodes, 0.0), PROVIDER)
    return not conforms(case.validity, found.outcome)


def killed(
    mutants: Iterable[Mutant],
    cases: Iterable[Case],
    targets: dict[str, Callable[[Case], bool]],
    *,
    all_of: bool = False,
) -> Killed:
    """Return by mutant and target the ids of the cases that turn red, of those that the target is expected to
    conform on.

    Without `all_of` a mutant is left alone once enough of its cases have turned red on every target.
    """
    found: Killed = {mutant.name: {target: [] for target in targets} for mutant in mutants}
    alive = list(mutants)
    for call in _calls(cases):
        operator = call.case.operator
        on = [target for target, passes in targets.items() if passes(call.case)]
        for mutant in [m for m in alive if m.operator == operator and on]:
            if red(mutant, call):
                for target in on:
                    found[mutant.name][target].append(call.case.id)
                if not all_of and all(
                    len(ids) >= mutant.enough
                    for target, ids in found[mutant.name].items()
                    if target not in mutant.elsewhere
                ):
                    alive.remove(mutant)
        if not alive:
            break
    return found


Killed = dict[str, dict[str, list[str]]]


def _calls(cases: Iterable[Case]) -> Iterator[Call]:
    for case in cases:
        if case.directml is None:
            yield Call(prepared_case(case))
