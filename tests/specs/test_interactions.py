"""The default specs against mistakes that need two conditions of different factors: each turns a case red. Of those
that need three, each does with `--select thorough`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest

from harness.model.case import Case
from harness.specs.coverage.coverage import coverages
from harness.specs.expand import expand
from harness.specs.reading.load import default_folder, load_specs
from harness.specs.selection import Selection
from tests.mutants import Call, Mutant, killed
from tests.mutants.interactions import (
    INDICES,
    Condition,
    common,
    initializers,
    leniences,
    mistakes,
    rule,
)
from tests.mutants.test_mutants import conforming
from tests.plans import DEEPEST, plan_of
from tests.sampled import one_of

GATHERED = ("float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "bool", "string", "bfloat16")  # fmt: skip
RANGE = "index values within [-s, s-1]"


def axis(call: Call) -> int:
    found = call.case.attributes.get("axis", 0)
    assert isinstance(found, int)
    return found


def batch(call: Call) -> int:
    found = call.case.attributes.get("batch_dims", 0)
    assert isinstance(found, int)
    return found


def along(holds: Callable[[int, int], bool]) -> Condition:
    """Make a condition of the extents of data and of indices along the axis."""

    def found(call: Call) -> bool:
        data, index = call.shapes
        return (
            len(data) == len(index)
            and -len(data) <= axis(call) < len(data)
            and holds(data[axis(call)], index[axis(call)])
        )

    return found  # fmt: skip


def illegal(holds: Callable[[int], bool]) -> Condition:
    """Make a condition of some index, as it is given."""
    return lambda call: any(holds(int(each)) for each in call.inputs[1].array.reshape(-1)[:100_000])


class Subject(NamedTuple):
    """What mistakes are made of for an operator."""

    operator: str
    conditions: dict[str, dict[str, Condition]]
    rules: dict[str, Condition]
    impossible: tuple[tuple[str, str], ...]
    lacking: dict[str, tuple[str, ...]]
    always: Condition = lambda _call: True

    def forbids(self, pair: frozenset[str]) -> bool:
        return any(
            any(name.startswith(one) for name in pair) and any(name.startswith(other) for name in pair)
            for one, other in self.impossible
        )

    def lacks(self, name: str) -> tuple[str, ...]:
        return self.lacking.get(name, ())


EVERYWHERE = (
    ("one element", "more than 64 rows"),
    ("bfloat16", "opset 11"),
    ("bfloat16", "opset 12"),
    *((kind, dtype) for kind in ("a NaN", "an infinity", "a subnormal")
      for dtype in ("int", "uint", "bool", "string", "elements of 8 bytes and")),
)  # fmt: skip
SUBJECTS = {
    "GatherElements": Subject(
        "GatherElements",
        {
            **common(GATHERED, (11, 13), range(1, 10)),
            "axis": {
                "axis 0": lambda call: axis(call) == 0,
                "the last axis": lambda call: axis(call) % len(call.shapes[0]) == len(call.shapes[0]) - 1,
                "a middle axis": lambda call: 0 < axis(call) % len(call.shapes[0]) < len(call.shapes[0]) - 1,
                "an axis below 0": lambda call: axis(call) < 0,
            },
            "extent": {
                "one index along the axis": along(lambda _, index: index == 1),
                "fewer indices": along(lambda data, index: 0 < index < data),
                "more indices": along(lambda data, index: index > data),
            },
            "index type": {
                "int32 indices": lambda call: call.inputs[1].dtype == "int32",
                "int64 indices": lambda call: call.inputs[1].dtype == "int64",
            },
            "indices": INDICES,
            "initializer": initializers("data", "indices"),
        },
        {
            "an index above": rule(RANGE, illegal(lambda each: each >= 0)),
            "an index below": rule(RANGE, illegal(lambda each: each < 0)),
            "an axis out of range": rule("axis in"),
            "ranks that differ": rule("data and indices have the same rank"),
            "indices that are larger": rule("indices are no larger"),
        },
        (
            *EVERYWHERE,
            ("a middle axis", "rank 1"),
            ("a middle axis", "rank 2"),
            ("indices that are larger", "rank 1"),
            ("one element", "fewer indices"),
            *(("an index above", "indices all below"), ("an index above", "indices all at")),
            *(("an index below", "indices all 0"), ("an index below", "indices all at")),
            *((broken, extent) for broken in ("an axis out", "ranks that", "indices that are larger")
              for extent in ("one index", "fewer", "more indices")),
            ("an axis out", "axis 0"),
        ),
        {"string": ("dml",), "bfloat16": ("cpu", "dml"), "rank 9": ("dml",)},
    ),
    "GatherND": Subject(
        "GatherND",
        {
            **common(GATHERED, (11, 12, 13), range(1, 10)),
            "batch_dims": {
                **{f"batch_dims {n}": lambda call, n=n: batch(call) == n for n in range(4)},
                "any batch": lambda call: batch(call) > 0,
            },
            "tuple": {
                "tuples of one": lambda call: call.shapes[1][-1] == 1,
                "whole tuples": lambda call: call.shapes[1][-1] == len(call.shapes[0]) - batch(call),
                "tuples of several": lambda call: call.shapes[1][-1] > 1,
            },
            "outer": {
                "one tuple": lambda call: len(call.shapes[1]) == 1 + batch(call),
                "many tuples": lambda call: max(call.shapes[1][batch(call) : -1], default=0) > 64 and batch(call) >= 0,
                "tuples in rows": lambda call: len(call.shapes[1]) > 2 + batch(call),
            },
            "indices": INDICES,
            "initializer": initializers("data", "indices"),
        },
        {
            "an index above": rule(RANGE, illegal(lambda each: each >= 0)),
            "an index below": rule(RANGE, illegal(lambda each: each < 0)),
            "batches that differ": rule("the first b dimensions"),
            "a wrong batch_dims": rule("0 <= b"),
            "a wrong length of tuples": rule("1 <= indices_shape"),
        },
        (
            *EVERYWHERE,
            *(("batch_dims", "opset 11"), ("any batch", "opset 11"), ("any batch", "rank 1"), ("batch_dims", "rank 1")),
            *(("batch_dims 2", "rank 2"), ("batch_dims 3", "rank 2"), ("batch_dims 3", "rank 3")),
            *(("tuples of several", "rank 1"), ("batches that differ", "opset 11"), ("batches that differ", "rank 1")),
            *(("a wrong batch_dims", "opset 11"), ("a wrong batch_dims", "batch_dims"), ("batches that differ", "batch_dims 0")),
            *(("an index above", "indices all below"), ("an index above", "indices all at")),
            *(("an index below", "indices all 0"), ("an index below", "indices all at")),
            *(("a wrong batch_dims", "whole tuples"), ("a wrong length", "whole tuples"), ("a wrong length", "tuples of one")),
            ("a wrong batch_dims", "many tuples"),
        ),
        {"string": ("dml",), "bfloat16": ("cpu", "dml"), "rank 9": ("dml",), "rank 1 and one tuple": ("dml",)},
    ),
    "Round": Subject(
        "Round",
        {
            **common(("float32", "float16", "float64", "bfloat16"), (11, 22), range(10)),
            "in place": {
                "in place": lambda call: call.case.options.in_place,
                "not in place": lambda call: not call.case.options.in_place,
            },
        },
        {},
        (*EVERYWHERE, ("rank 0", "more than 64"), ("rank 0", "rows of"), ("rank 0", "more than 65,535")),
        {"bfloat16": ("cpu", "dml"), "float64": ("dml",), "elements of 8 bytes": ("dml",), "opset 22": ("dml",), "rank 9": ("dml",)},
        lambda call: call.case.options.variant is None,
    ),
}  # fmt: skip


def cases(operator: str, *, thorough: bool = False) -> list[Case]:
    """Return the cases of an operator, those that cover interactions first."""
    plan = (
        plan_of(operator)
        if not thorough
        else expand(load_specs([default_folder() / f"{operator}.yaml"]), thorough=True)
    )
    found = [case for case in plan if case.directml is None]
    return sorted(found, key=lambda case: ":sweep=interactions" not in case.id)  # fmt: skip


def survivors(mutants: Iterable[Mutant], cases: list[Case], *targets: str) -> list[str]:
    every = conforming()
    listed = list(mutants)
    found = killed(listed, cases, {target: every[target] for target in targets})
    return [
        f"{mutant.name} on {target}"
        for mutant in listed
        for target, ids in found[mutant.name].items()
        if not ids and target not in mutant.elsewhere
    ]


@pytest.mark.parametrize("operator", one_of(3, reversed(DEEPEST)))
def test_every_possible_pair_of_levels_is_shown(operator: str) -> None:
    counted = coverages(Selection(plan_of(operator)), 2)
    assert [each.validity.value for each in counted] == ["valid", "invalid"]
    assert all(each.possible > 200 for each in counted)
    assert [levels for each in counted for levels in each.missing] == []


@pytest.mark.parametrize("operator", DEEPEST)
@pytest.mark.parametrize("part", ["a quarter", pytest.param("all", marks=pytest.mark.slow)])
def test_mistakes_that_need_two_conditions_turn_cases_red(operator: str, part: str) -> None:
    subject = SUBJECTS[operator]
    made = list(mistakes(operator, subject.conditions, 2, subject.forbids, subject.lacks, subject.always))
    assert len(made) > 400
    made = made[:: 4 if part == "a quarter" else 1]
    left = survivors(made, cases(operator), "specs", "cpu", "dml")
    assert not left, f"{len(left)} of {len(made)}:\n" + "\n".join(left)


@pytest.mark.slow
@pytest.mark.parametrize("operator", DEEPEST)
def test_mistakes_that_need_three_conditions_turn_cases_red_with_thorough(operator: str) -> None:
    """A hundredth of them: there are some fifteen thousand. A few need a fourth condition that nobody stated: an
    index of 0 along an axis with one element is also the last, and the like."""
    subject = SUBJECTS[operator]
    made = list(mistakes(operator, subject.conditions, 3, subject.forbids, subject.lacks, subject.always))
    made = random.Random(3).sample(made, 300)
    left = survivors(made, cases(operator, thorough=True), "specs")
    assert len(left) <= len(made) // 100, f"{len(left)} of {len(made)}:\n" + "\n".join(left)


@pytest.mark.parametrize("operator", one_of(2, ["GatherElements", "GatherND"]))
def test_every_rule_is_looked_at_whatever_else_a_case_has(operator: str) -> None:
    subject = SUBJECTS[operator]
    made = list(leniences(operator, subject.rules, subject.conditions, subject.forbids, subject.lacks))
    assert len(made) > 100
    left = survivors(made, [case for case in cases(operator) if case.validity.value == "invalid"], "specs")
    assert not left, f"{len(left)} of {len(made)}:\n" + "\n".join(left)
