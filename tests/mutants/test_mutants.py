"""The default specs against wrong implementations: every one turns cases red, on each target that can run
such cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from harness.model.case import Case, Validity
from harness.model.target_info import TargetInfo
from harness.specs.expectations.expectations import load_expectations
from harness.specs.expectations.target_expectations import TargetExpectations
from tests.mutants import Mutant, gather_elements, gather_nd, killed
from tests.mutants import round as round_
from tests.plans import DEEPEST, plan_of
from tests.sampled import one_of

TARGETS = {
    "cpu": TargetInfo("CPUExecutionProvider", onnxruntime="1.31.1"),
    "dml": TargetInfo(
        "DmlExecutionProvider",
        onnxruntime="1.24.4",
        directml="1.15.4",
        adapter="llvmpipe",
        max_feature_level="6_4",
    ),
}
"""A case counts for a target only where it is expected to conform: what is known to fail shows no new
mistake."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    plan = plan_of(*DEEPEST)
    return [case for valid in (True, False) for case in plan.cases(valid=valid)]


def conforming() -> dict[str, Callable[[Case], bool]]:
    expectations = load_expectations()
    known = {name: expectations.for_target(name, info) for name, info in TARGETS.items()}
    return {"specs": lambda _: True} | {
        name: lambda case, k=k: conforms_on(k, case) for name, k in known.items()
    }


def conforms_on(known: TargetExpectations, case: Case) -> bool:
    """Say whether a case is expected to conform: an invalid one without a kernel is refused, as it should
    be."""
    entry = known.entry(case.id, beyond=case.beyond)
    return entry is None or (case.validity is Validity.INVALID and entry.kernel is not None)


@pytest.mark.parametrize(
    "operator",
    one_of(3, [round_, gather_elements, gather_nd]),
    ids=lambda module: module.NAME,
)
def test_every_mistake_turns_cases_red(operator: ModuleType, cases: list[Case]) -> None:
    mutants = list(operator.mutants())
    own = [case for case in cases if case.operator == operator.NAME]
    mixed = random.Random(5).sample(
        own, len(own)
    )  # neighbours are alike: mixed, they turn most mistakes red early
    found = killed(mutants, mixed, conforming())
    survivors = [
        f"{mutant.name}: {len(ids)} of {mutant.enough} cases on {target}"
        for mutant in mutants
        for target, ids in found[mutant.name].items()
        if len(ids) < mutant.enough and target not in mutant.elsewhere
    ]
    assert not survivors, "\n".join(survivors)


def test_no_mistake_is_written_twice() -> None:
    names = [mutant.name for mutant in _all()]
    assert len(names) == len(set(names)) >= 590


@pytest.mark.slow
def test_a_right_kernel_turns_no_case_red(cases: list[Case]) -> None:

    some = [case for case in cases[::40] if case.validity.value != "unspecified"]
    right = [
        Mutant(module.NAME, module.NAME, lambda call: call.right().copy())
        for module in (gather_elements, gather_nd, round_)
    ]
    assert not any(
        ids
        for by_target in killed(right, some, conforming(), all_of=True).values()
        for ids in by_target.values()
    )


def _all() -> Iterator[Mutant]:
    for module in (gather_elements, gather_nd, round_):
        yield from module.mutants()
