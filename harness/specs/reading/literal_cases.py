"""Converts the literal cases of a spec to cases, and checks that each has the validity that it states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from harness.model.case import Case, Options, Tensor, TensorSpec, Validity
from harness.model.caseid import directml_terms, input_term, option_terms, value_text
from harness.model.dtypes import DTYPES, Array
from harness.model.onnx_schemas import operator_schema
from harness.model.operator_schema import OperatorSchema
from harness.operators.base import Call, Operator
from harness.operators.directml.levels import levels_of
from harness.specs.graphs.pattern import Unfit
from harness.specs.reading.attribute_values import typed
from harness.specs.reading.entry_schema import LiteralCase
from harness.specs.reading.literals import documented_array, to_array
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.source import KeyPath
from harness.specs.reading.stored import stored_array
from harness.specs.reading.sweep_problems import option_problems
from harness.specs.sweeps import api
from harness.specs.sweeps.calls import call_of

_MOST, _SHORT = 2048, 100
"""Letters of the attributes of an id that people read, and those of one that stands in it in any case."""
_DEPLOYED: tuple[dict[str, Any], ...] = (
    {"shapes": "undeclared"},
    {"shapes": "undeclared", "optimization": "all"},
    {"shapes": "undeclared", "neighbours": True},
    {"optimization": "all", "neighbours": True},
)
"""How the graphs of deployed models differ from the plain one of a case."""


def literal_cases(spec: LoadedSpec, operator: Operator, problems: list[str]) -> Iterator[Case]:
    """Yield the literal cases of a spec at each of their opsets; add their problems to `problems`."""
    for number, literal in enumerate(spec.model.cases):
        at = ("cases", number)
        with spec.noting(at, problems):
            yield from _cases(spec, operator, literal, at, problems)


def _cases(
    spec: LoadedSpec, operator: Operator, literal: LiteralCase, at: KeyPath, problems: list[str]
) -> Iterator[Case]:
    options = Options(**{field: getattr(literal.options, field) for field in Options.__struct_fields__})
    asked = api.literal_options(literal.directml)
    found = [
        *_deployed_problems(spec, literal, options, at),
        *option_problems(spec, operator, options, (*at, "options")),
        *_fill_problems(spec, operator, literal, at),
        *api.problems(spec, operator, options, literal.directml, asked, at),
    ]
    problems.extend(found)
    if found:
        return
    for opset in api.opsets(literal, spec):
        arrays, specs = _inputs(spec, opset, literal)
        known = spec.schema(opset).attributes
        attributes = {
            name: typed(known[name].type, value) for name, value in sorted(literal.attributes.items())
        }
        case = Case(
            id=literal.name,
            operator=operator.name,
            opset=opset,
            attributes=attributes,
            inputs=specs,
            options=options,
            validity=literal.validity,
            rule=literal.rule,
            source=literal.source,
            literals=arrays,
            lowers_to=spec.directml,
            directml=asked,
            uses=literal.uses,
        )
        case = identified(case)
        try:
            call = call_of(case)
        except Unfit as error:
            problems.append(spec.problem(at, f"the nodes do not fit together at opset {opset}: {error}"))
            break
        what = _validity_problem(spec, operator, literal, case, call)
        if what is not None:
            problems.append(spec.problem(at, what))
            break
        what = api.unfit(operator, asked, call)
        if what is not None:
            problems.append(spec.problem((*at, "directml", "dimension_count"), what))
            break
        case = msgspec.structs.replace(case, documented=_documented(spec, literal, call))
        yield msgspec.structs.replace(case, levels=levels_of(case, call))
        if literal.deployed:
            yield from _deployed(operator, literal, case)


def _deployed(operator: Operator, literal: LiteralCase, case: Case) -> Iterator[Case]:
    """Yield a case as the graphs of deployed models hold it."""
    maps = {each.name for each in operator_schema(operator.name, case.opset).inputs if each.map}
    for options in _deployments(case.options, [one.name for one in case.inputs if one.name not in maps]):
        each = identified(msgspec.structs.replace(case, id=literal.name, options=options))
        yield msgspec.structs.replace(each, levels=levels_of(each, call_of(each)))


def _deployed_problems(
    spec: LoadedSpec, literal: LiteralCase, options: Options, at: KeyPath
) -> Iterator[str]:
    plain = Options(initializer=options.initializer, outputs=options.outputs)
    if literal.deployed and (options != plain or literal.directml is not None):
        what = "a deployed case may have the options 'initializer' and 'outputs', and no other"
        yield spec.problem((*at, "deployed"), what)


def _inputs(
    spec: LoadedSpec, opset: int, literal: LiteralCase
) -> tuple[tuple[Array | None, ...], tuple[TensorSpec, ...]]:
    arrays: list[Array | None] = []
    specs = []
    for parameter in spec.schema(opset).inputs:
        for number, given in enumerate(literal.inputs.get(parameter.name, ())):
            name = f"{parameter.name}.{number}" if parameter.variadic else parameter.name
            array: Array | None
            if given.file is not None:
                array = stored_array(spec.path.parent, given)
            else:
                array = None if given.fill is not None else to_array(given.dtype, given.values, given.shape)
            shape = (given.shape or ()) if array is None else array.shape
            arrays.append(array)
            specs.append(TensorSpec(name, given.dtype, shape, given.fill or "literal"))
    return tuple(arrays), tuple(specs)


def _documented(spec: LoadedSpec, literal: LiteralCase, call: Call) -> tuple[Array | None, ...] | None:
    """Return the documented result of each output, in the element types that the call infers."""
    if literal.documents_output:
        first = documented_array(call.outputs[0], literal.output)
        return (first, *(None for _ in call.outputs[1:]))
    if not literal.outputs:
        return None
    schema = spec.schema(call.opset)
    named = {schema.output_name(n): n for n in range(len(call.outputs))}
    found: list[Array | None] = [None] * len(call.outputs)
    for name, values in literal.outputs.items():
        if name in named:
            found[named[name]] = documented_array(call.outputs[named[name]], values)
    return tuple(found)


def _hash(text: str) -> str:
    return f"hash_{blake2b(text.encode(), digest_size=8).hexdigest()}"


def identified(case: Case) -> Case:
    """Return a written-out case, which has the name of its entry alone, with its id. Of attributes that are too long for
    an id, such as the trees of a model, long ones have a hash."""
    terms = [f"case={case.id}", *map(input_term, case.inputs)]
    texts = {key: value_text(value) for key, value in sorted(case.attributes.items())}
    if sum(map(len, texts.values())) > _MOST:
        texts = {key: text if len(text) <= _SHORT else _hash(text) for key, text in texts.items()}
    terms.extend(f"{key}={text}" for key, text in texts.items())
    more = option_terms(case.options) + directml_terms(case.directml)
    return msgspec.structs.replace(case, id=f"{case.operator}@{case.opset}:{';'.join(terms)}{more}")


def _validity_problem(
    spec: LoadedSpec, operator: Operator, literal: LiteralCase, case: Case, call: Call
) -> str | None:
    """Say why the case is not as valid as it claims: the rules of the operator are asked, not the author."""
    if literal.validity is Validity.UNSPECIFIED:
        return None
    arrays = case.literals or ()
    broken = operator.broken_rule(call)
    deciding = [n for n, one in enumerate(case.inputs) if operator.family.kinds(operator, one.name)]
    if broken is None and all(arrays[n] is not None for n in deciding):
        tensors = {
            one.name: Tensor(
                one.dtype, np.zeros(one.shape, DTYPES[one.dtype].storage) if array is None else array
            )
            for one, array in zip(case.inputs, arrays, strict=True)
        }
        broken = operator.family.broken_by_values(operator, call, tensors)
    elif broken is None:
        filled = [one for n, one in enumerate(case.inputs) if n in deciding and arrays[n] is None]
        broken = next((b for one in filled if (b := operator.kind(one.name, one.values).breaks)), None)
    schema = spec.schema(case.opset)
    if literal.directml is not None and literal.validity is Validity.INVALID:
        return None  # it breaks a rule of DirectML's documents, which are no program that could be asked
    if (
        literal.validity is Validity.INVALID
        and broken is not None
        and not (literal.rule or "").startswith(broken)
    ):
        return (
            f"the case says that it breaks the rule {literal.rule!r}, but what it breaks is {broken!r}: "
            "write that, and after it what else"
        )
    for one in case.inputs if literal.directml is None else ():
        parameter = schema.input(one.name)
        if parameter is not None and one.dtype not in parameter.dtypes:
            broken = broken or f"{operator.name}@{case.opset} does not allow {one.dtype} for {one.name}"
    if literal.directml is None:
        broken = broken or unlike(schema, case.inputs)
    if literal.validity is Validity.VALID and broken is not None:
        return f"the case breaks the rule {broken!r} but says that it is valid; if that is meant, write validity: invalid and a rule"
    if literal.validity is Validity.INVALID and broken is None:
        return "the case says that it is invalid but breaks no rule of the operator that the harness knows"
    return None


def unlike(schema: OperatorSchema, inputs: Iterable[TensorSpec]) -> str | None:
    """Return the rule that inputs break which share a type parameter and have other element types."""
    first: dict[str, TensorSpec] = {}
    for one in inputs:
        parameter = schema.input(one.name)
        if parameter is None or (parameter.variadic and not parameter.alike):
            continue
        other = first.setdefault(parameter.type_param, one)
        if other.dtype != one.dtype:
            return f"{other.name} and {one.name} have one element type, {parameter.type_param}"
    return None


def _fill_problems(spec: LoadedSpec, operator: Operator, literal: LiteralCase, at: KeyPath) -> Iterator[str]:
    for name, each in literal.inputs.items():
        allowed = [kind.name for kind in operator.family.kinds(operator, name)] or [
            "random",
            *(kind.name for kind in operator.family.fills(operator, name)),
        ]
        for given in each:
            if given.fill is not None and given.fill not in allowed:
                what = f"unknown kind of values {given.fill!r}"
                yield spec.problem((*at, "inputs", name, "fill"), what, given=given.fill, allowed=allowed)


def _deployments(own: Options, inputs: Sequence[str]) -> Iterator[Options]:
    """Yield options for a case with options of its `own` and inputs of these names: undeclared shapes,
    optimisation and neighbours, every two of them together, and the last or the first input as initializer.

    The only input is never an initializer: the node would be folded away.
    """
    for changes in _DEPLOYED:
        yield msgspec.structs.replace(own, **changes)
    if len(inputs) > 1:
        yield msgspec.structs.replace(own, initializer=inputs[-1])
        yield msgspec.structs.replace(
            own, initializer=inputs[-1], shapes="undeclared", optimization="all", neighbours=True
        )
        yield msgspec.structs.replace(own, initializer=inputs[0], shapes="static")
