"""What is wrong with the options of a literal case or of a combination of a sweep, for its operator."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.case import CONSTANTS, DEPLOYMENTS, Options
from harness.operators.base import Operator
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.source import Key


def option_problems(
    spec: LoadedSpec, operator: Operator, options: Options, at: tuple[Key, ...]
) -> Iterator[str]:
    """Yield what is wrong with options for an operator."""
    inputs = [parameter.name for parameter in spec.schema(spec.opsets[-1]).inputs]
    allowed = inputs if spec.graph is not None else [*inputs, CONSTANTS]
    named = [name for name in (options.initializer or "").split(",") if name]
    unknown = [name for name in named if name.partition(".")[0] not in allowed]
    if unknown:
        what = f"{operator.name} has no input {unknown[0]!r}"
        yield spec.problem((*at, "initializer"), what, given=unknown[0], allowed=allowed)
    elif spec.graph is None and named == inputs and len(inputs) == 1:
        yield spec.problem(
            (*at, "initializer"),
            f"the only input of {operator.name} as initializer is folded away and tests nothing",
        )
    if options.variant is not None and options.variant not in operator.variants:
        what = f"{operator.name} has no variant {options.variant!r}"
        yield spec.problem((*at, "variant"), what, given=options.variant, allowed=tuple(operator.variants))
    schema = spec.schema(spec.opsets[-1])
    if (
        options.optionals is not None
        and spec.graph is None
        and not any(each.optional_type for each in (*schema.inputs, *schema.outputs))
    ):
        yield spec.problem((*at, "optionals"), f"no input or output of {operator.name} is an optional")
    if options.omit is not None:
        yield from _omission_problems(spec, operator, options, (*at, "omit"))
    for name in DEPLOYMENTS if spec.graph is None else ():
        if getattr(options, name) is not None:
            what = f"{name} is an option of graphs (docs/graphs.md); {operator.name} is one operator"
            yield spec.problem((*at, name), what)
    if options.in_place and len(inputs) != 1:
        yield spec.problem(
            (*at, "in_place"), f"in_place needs an operator with one input; {operator.name} has {len(inputs)}"
        )


def _omission_problems(
    spec: LoadedSpec, operator: Operator, options: Options, at: tuple[Key, ...]
) -> Iterator[str]:
    schema = spec.schema(spec.opsets[-1])
    optional = tuple(each.name for each in schema.outputs if each.optional)
    omitted = (options.omit or "").split(",")
    for name in omitted:
        if name not in optional:
            yield spec.problem(
                at, f"{operator.name} has no optional output {name!r}", given=name, allowed=optional
            )
            return
    if options.outputs is None:
        yield spec.problem(at, "say by 'outputs' how many outputs there are with those that are left out")
    elif schema.output_name(options.outputs - 1) in omitted:
        what = "what follows the last one is left out by 'outputs'"
        yield spec.problem(at, f"the last of {options.outputs} outputs is omitted; {what}")
