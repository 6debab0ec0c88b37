"""Turns the written-out cases of a spec into cases, and checks that each is as valid as it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from harness.caseid import directml_terms, option_terms, tensor_term
from harness.dtypes import DTYPES, Array
from harness.levels import levels_of
from harness.operators.base import Operator
from harness.records import Case, DirectmlOptions, Options, Tensor, TensorSpec, Validity
from harness.specs import api
from harness.specs.literals import to_array
from harness.specs.load import LoadedSpec
from harness.specs.schema import LiteralCase
from harness.specs.source import Key


def literal_cases(spec: LoadedSpec, operator: Operator, problems: list[str]) -> Iterator[Case]:
    """Yield the literal cases of a spec at each of their opsets; add what is wrong with them to `problems`."""
    for number, literal in enumerate(spec.model.cases):
        at = ("cases", number)
        options = Options(**{field: getattr(literal.options, field) for field in Options.__struct_fields__})
        asked = api.literal_options(literal.directml)
        found = [
            *option_problems(spec, operator, options, (*at, "options")),
            *_fill_problems(spec, operator, literal, at),
            *api.problems(spec, operator, options, asked, at),
        ]
        problems.extend(found)
        if found:
            continue
        arrays, specs = _inputs(operator, literal)
        for opset in api.opsets(literal, spec):
            what = _validity_problem(spec, operator, literal, opset, specs, arrays)
            if what is not None:
                problems.append(spec.problem(at, what))
                break
            case = _case(spec, operator, literal, opset, options, asked, specs, arrays)
            what = api.unfit(operator, asked, tuple(one.shape for one in specs), literal.attributes)
            if what is not None:
                problems.append(spec.problem((*at, "directml", "dimension_count"), what))
                break
            yield case


def _inputs(operator: Operator, literal: LiteralCase) -> tuple[tuple[Array | None, ...], tuple[TensorSpec, ...]]:
    arrays: list[Array | None] = []
    specs = []
    for name in operator.inputs:
        given = literal.inputs[name]
        array = None if given.fill is not None else to_array(given.dtype, given.values, given.shape)
        shape = (given.shape or ()) if array is None else array.shape
        arrays.append(array)
        specs.append(TensorSpec(name, given.dtype, shape, given.fill or "literal"))
    return tuple(arrays), tuple(specs)


def _case(
    spec: LoadedSpec,
    operator: Operator,
    literal: LiteralCase,
    opset: int,
    options: Options,
    asked: DirectmlOptions | None,
    specs: tuple[TensorSpec, ...],
    arrays: tuple[Array | None, ...],
) -> Case:
    dtype = spec.schema(opset).output_dtype({one.name: one.dtype for one in specs}) or specs[0].dtype
    case = Case(
        id=literal_id(operator.name, opset, literal.name, specs, literal.attributes, options) + directml_terms(asked),
        operator=operator.name,
        opset=opset,
        attributes=dict(sorted(literal.attributes.items())),
        inputs=specs,
        options=options,
        validity=literal.validity,
        rule=literal.rule,
        source=literal.source,
        literals=arrays,
        documented=to_array(dtype, literal.output) if literal.documents_output else None,
        directml=asked,
    )
    return msgspec.structs.replace(case, levels=levels_of(case, spec.model.lowers_to.directml))


def literal_id(operator: str, opset: int, name: str, specs: Sequence[TensorSpec], attributes: Mapping[str, int], options: Options) -> str:
    """Return the id of a written-out case."""
    terms = [f"case={name}", *(tensor_term(one.name, one.dtype, one.shape) for one in specs)]
    terms.extend(f"{key}={value}" for key, value in sorted(attributes.items()))
    return f"{operator}@{opset}:{';'.join(terms)}{option_terms(options)}"


def _validity_problem(
    spec: LoadedSpec,
    operator: Operator,
    literal: LiteralCase,
    opset: int,
    specs: tuple[TensorSpec, ...],
    arrays: tuple[Array | None, ...],
) -> str | None:
    """Say why the case is not as valid as it claims: the rules of the operator are asked, not the author."""
    if literal.validity is Validity.UNSPECIFIED:
        return None
    shapes = tuple(one.shape for one in specs)
    broken = operator.broken_rule(shapes, literal.attributes)
    position = operator.inputs.index(operator.values_input)
    if broken is None and arrays[position] is not None:
        tensors = [
            Tensor(one.dtype, np.zeros(one.shape, DTYPES[one.dtype].storage) if array is None else array)
            for one, array in zip(specs, arrays, strict=True)
        ]
        broken = operator.broken_by_values(tensors, literal.attributes)
    elif broken is None and operator.kind(specs[position].values).invalid:
        broken = "index values"
    schema = spec.schema(opset)
    if literal.directml is not None and literal.validity is Validity.INVALID:
        return None  # it breaks a rule of DirectML's documents, which are no program that could be asked
    for one in specs if literal.directml is None else ():
        parameter = schema.input(one.name)
        if parameter is not None and one.dtype not in parameter.dtypes:
            broken = broken or f"{operator.name}@{opset} does not allow {one.dtype} for {one.name}"
    if literal.validity is Validity.VALID and broken is not None:
        return f"the case breaks the rule {broken!r} but says that it is valid; if that is meant, write validity: invalid and a rule"
    if literal.validity is Validity.INVALID and broken is None:
        return "the case says that it is invalid but breaks no rule of the operator that the harness knows"
    return None


def _fill_problems(spec: LoadedSpec, operator: Operator, literal: LiteralCase, at: tuple[Key, ...]) -> Iterator[str]:
    for name in operator.inputs:
        fill = literal.inputs[name].fill
        allowed = [kind.name for kind in operator.value_kinds] if name == operator.values_input else ["random"]
        if fill is not None and fill not in allowed:
            yield spec.problem((*at, "inputs", name, "fill"), f"unknown kind of values {fill!r}", given=fill, allowed=allowed)


def option_problems(spec: LoadedSpec, operator: Operator, options: Options, at: tuple[Key, ...]) -> Iterator[str]:
    """Yield what is wrong with options for an operator."""
    if options.initializer is not None and options.initializer not in operator.inputs:
        what = f"{operator.name} has no input {options.initializer!r}"
        yield spec.problem((*at, "initializer"), what, given=options.initializer, allowed=operator.inputs)
    elif options.initializer is not None and len(operator.inputs) == 1:
        yield spec.problem((*at, "initializer"), f"the only input of {operator.name} as initializer is folded away and tests nothing")
    if options.variant is not None and options.variant not in operator.variants:
        what = f"{operator.name} has no variant {options.variant!r}"
        yield spec.problem((*at, "variant"), what, given=options.variant, allowed=operator.variants)
    if options.in_place and len(operator.inputs) != 1:
        yield spec.problem((*at, "in_place"), f"in_place needs an operator with one input; {operator.name} has {len(operator.inputs)}")
