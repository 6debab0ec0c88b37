"""The earlier call of a session: what ran in it before a case that asks for `after`.

It is the case's own call with other elements, and with other extents where the case wants them: of one
dimension, counted from the left or from the right, in as many inputs as the operator's rules allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from math import prod

import msgspec

from harness.model.case import After, Case, Options
from harness.operators import OPERATORS
from harness.operators.base import UNKNOWN, Call, Operator, Shape
from harness.specs.sweeps.calls import call_of


def refusal(operator: Operator, call: Call, options: Options, *, by_inputs: bool = False) -> str | None:
    """Say why a call with such options can have no such call before it; None if it can."""
    after = options.after
    if after is None:
        return None
    if after != "same" and (options.shapes == "static" or options.initializer is not None):
        return f"after={after}: a graph with static shapes or an initializer runs calls of one size"
    found = earlier(operator, call, after, by_inputs=by_inputs)
    return None if found is not None else f"after={after}: no such call"


def earlier_case(case: Case) -> tuple[Case, Call] | None:
    """Return the case that runs before, with its call; None where the case asks for none."""
    after = case.options.after
    if after is None:
        return None
    shapes = earlier(OPERATORS[case.operator], call_of(case), after, by_inputs=True)
    assert shapes is not None, f"{case.id}: specs refuse what has no earlier call"
    inputs = tuple(
        msgspec.structs.replace(spec, shape=shape) for spec, shape in zip(case.inputs, shapes, strict=True)
    )
    before = msgspec.structs.replace(case, id=f"{case.id};before", inputs=inputs)
    return before, call_of(before)


def earlier(
    operator: Operator, call: Call, after: After, *, by_inputs: bool = False
) -> tuple[Shape, ...] | None:
    """Return the shapes of the inputs of a call that is as large, or whose first output that is no scalar is larger
    or smaller, with as many outputs; None where no dimension gives one. With `by_inputs` the inputs are larger or
    smaller then: elements decide how large some outputs are, and others are always alike."""
    if after == "same":
        return call.shapes
    larger = after == "larger"
    own = _elements(operator, call)
    for shapes, other in _others(operator, call, _scaled(call, larger=larger)):
        there = _elements(operator, other)
        if there > own if larger else 0 < there < own:
            return shapes
    scaled = chain(_scaled(call, larger=larger), _one_extent(call, larger=larger)) if by_inputs else ()
    size = sum(map(prod, call.shapes))
    for shapes, _ in _others(operator, call, scaled):
        if (sum(map(prod, shapes)) > size) == larger:
            return shapes
    return None


def _others(
    operator: Operator, call: Call, scaled: Iterable[tuple[Shape, ...]]
) -> Iterator[tuple[tuple[Shape, ...], Call]]:
    """Yield those shapes that give a valid call with as many outputs, with this call."""
    for shapes in scaled:
        inputs = {
            name: each._replace(shape=shape)
            for (name, each), shape in zip(call.inputs.items(), shapes, strict=True)
        }
        other = call._replace(inputs=inputs)
        if operator.broken_rule(other) is not None or not _same_kinds(operator, call, other):
            continue
        if operator.family.output_count(operator, other) == operator.family.output_count(operator, call):
            yield shapes, other


def _one_extent(call: Call, *, larger: bool) -> Iterator[tuple[Shape, ...]]:
    """Yield shapes with an extent of the first input twice as large, or half, wherever inputs have it."""
    for extent in dict.fromkeys(call.shapes[0] if call.shapes else ()):
        other = 2 * extent if larger else extent // 2
        if other:
            yield tuple(
                shape if name in call.constants else tuple(other if n == extent else n for n in shape)
                for name, shape in zip(call.inputs, call.shapes, strict=True)
            )


def _same_kinds(operator: Operator, call: Call, other: Call) -> bool:
    """Say whether every kind of values that has a meaning for the inputs of one call has one for the
    other's."""
    return all(
        operator.family.applies(operator, kind.name, name, other)
        for name in call.inputs
        for kind in operator.family.kinds(operator, name.partition(".")[0])
        if operator.family.applies(operator, kind.name, name, call)
    )


def _elements(operator: Operator, call: Call) -> int:
    shapes = operator.family.output_shapes(operator, call)
    shape = next(filter(None, shapes), ())
    return -1 if UNKNOWN in shape else prod(shape)


def _scaled(call: Call, *, larger: bool) -> Iterator[tuple[Shape, ...]]:
    """Yield shapes with one dimension twice as large, or half: in all inputs, then in the first alone; what
    decides shapes stays."""
    movable = [name not in call.constants for name in call.inputs]
    most = max((len(shape) for shape in call.shapes), default=0)
    places = [place for n in range(most) for place in (n, n - most)]
    for alone in (False, True):
        for place in places:
            shapes = list(call.shapes)
            for number, shape in enumerate(call.shapes):
                if movable[number] and not (alone and number) and -len(shape) <= place < len(shape):
                    extent = shape[place]
                    other = max(2, 2 * extent) if larger else extent // 2
                    shapes[number] = tuple(
                        other if d == place % len(shape) else n for d, n in enumerate(shape)
                    )
            if tuple(shapes) != call.shapes and all(0 not in shape for shape in shapes):
                yield tuple(shapes)
