"""Lines of specs and formulas, as `docs/operators.md` counts them."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest

from harness.specs.reading.load import load_specs
from tools.operator_cost import _code_lines, _of_module, python_lines, yaml_lines
from tools.operators import formula_modules

MODULE = '''\
# A comment does not count.

class Family:
    def shape(self):
        return helper()


def helper(x):
    """Nor does a docstring,
    of several lines."""

    return x


def one(x):
    return helper(x)  # both use it


def other(x):
    y = helper(x)
    return y


OPERATORS = (
    Operator("One", FAMILY, moved(one)),
    Operator(
        "Other",
        FAMILY,
        moved(other),
    ),
)
'''


def test_definitions_and_the_functions_they_use_count_shared_ones_in_parts() -> None:
    found = _of_module(ast.parse(MODULE), _code_lines(MODULE), {"One", "Other"})
    assert found == {"One": 1 + 2 + Fraction(2, 2), "Other": 5 + 3 + Fraction(2, 2)}


def test_operators_of_one_expression_share_it() -> None:
    text = "OPERATORS = tuple(\n    Operator(name, FAMILY, formula)\n    for name in NAMES\n)\n"
    assert _of_module(ast.parse(text), _code_lines(text), {"A", "B"}) == {"A": 2, "B": 2}


@pytest.mark.slow
def test_every_operator_is_counted() -> None:
    modules = formula_modules()
    assert python_lines(modules).keys() == modules.keys()
    assert all(number >= 1 for number in python_lines(modules).values())
    mish = next(spec for spec in load_specs(()) if spec.model.operator == "Mish")
    text = mish.path.read_text("utf-8")
    assert yaml_lines(mish) == sum(1 for line in text.splitlines() if line.strip() and line.strip()[0] != "#")
