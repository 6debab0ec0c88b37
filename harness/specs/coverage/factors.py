"""The factors in which cases differ, by name, and the level of each that a case has, independent of its
sweep.

`T` and other type parameters are element types; `rank` and `size` are those of the first input; attributes and
options stand under their names, kinds of values as `indices.values`; what else a call shows its family tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from harness.model.case import Case, Options
from harness.model.caseid import value_text
from harness.model.onnx_schemas import operator_schema
from harness.model.operator_schema import Parameter
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, Shape
from harness.specs.reading.entry_schema import SweepOptions
from harness.specs.sweeps.calls import call_of
from harness.specs.sweeps.shape_words import RANK, SIZE, sizes_of

Shown: TypeAlias = dict[str, frozenset[str]]
OPTION_FACTORS = tuple(field for field in SweepOptions.model_fields if field not in ("outputs", "omit"))


def level(value: object) -> str:
    """Write a level as ids write it; None is the level `none`."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def shape_level(shape: Shape) -> str:
    """Write a shape as a level."""
    return f"[{','.join(map(str, shape))}]"


def type_factor(parameter: Parameter) -> str:
    """Return the name of an input's element type as a factor: its type parameter, or its own where it has
    none."""
    return parameter.type_param if "(" not in parameter.type_param else f"{parameter.name}.dtype"


def shown(operator: Operator, call: Call, kinds: Mapping[str, str], options: Options) -> Shown:
    """Return the levels that a call shows; `kinds` are the kinds of values by input."""
    schema = operator_schema(operator.name, call.opset)
    found: dict[str, frozenset[str]] = {"opset": frozenset((str(call.opset),))}
    for name, given in call.inputs.items():
        parameter = schema.input(name)
        if parameter is not None:
            found[type_factor(parameter)] = frozenset((given.dtype,))
        found[f"{name}.shape"] = frozenset((shape_level(given.shape),))
    if call.inputs:
        found[RANK] = frozenset((str(len(call.first.shape)),))
        found[SIZE] = frozenset(sizes_of(call.first.shape))
    found |= {name: frozenset((value_text(value),)) for name, value in call.attributes.items()}
    found |= {f"{name}.values": frozenset((kind,)) for name, kind in kinds.items()}
    found |= {name: frozenset((level(getattr(options, name)),)) for name in OPTION_FACTORS}
    return found | {name: frozenset(levels) for name, levels in operator.family.shown(operator, call).items()}


def shown_by(case: Case) -> Shown:
    """Return the levels that a case shows."""
    kinds = {spec.name.partition(".")[0]: spec.values for spec in case.inputs}
    return shown(OPERATORS[case.operator], call_of(case), kinds, case.options)
