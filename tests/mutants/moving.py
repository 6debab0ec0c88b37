"""Mistakes that any of the operators can have in element types, sizes, options or the state of a session: the
right result, altered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from harness.model.dtypes import DTYPES, Array
from tests.mutants import Call, Mutant, Refused

Alter = Callable[[Array, Call], Array]


def altered(
    name: str, operator: str, alter: Alter, enough: int = 2, elsewhere: tuple[str, ...] = ()
) -> Mutant:
    """Make a mutant that alters the right result."""
    return Mutant(f"{operator}: {name}", operator, lambda call: alter(call.right(), call), enough, elsewhere)


def wrong_from(start: int) -> Alter:
    """Lose the elements from `start` on."""

    def alter(out: Array, call: Call) -> Array:
        if out.size <= start:
            return out
        flat = out.reshape(-1).copy()
        flat[start:] = other(flat[start:], call.inputs[0].dtype)
        return flat.reshape(out.shape)

    return alter


def other(elements: Array, dtype: str) -> Array:
    """Return other elements than these."""
    if dtype == "string":
        return np.array([f"{e}!" for e in elements], object)
    if dtype == "bool":
        return ~elements
    raw = np.ascontiguousarray(elements).view(np.uint8)
    return np.asarray((raw * 0 + 60 if DTYPES[dtype].is_float else raw ^ 1).view(elements.dtype))


def tail(width: int) -> Alter:
    """Lose the elements after the last whole vector of `width`, where there is one."""
    return lambda out, call: wrong_from(out.size // width * width)(out, call) if out.size > width else out


def where(holds: Callable[[Call], bool], start: int = 0) -> Alter:
    """Lose the elements from `start` on where something holds of the call."""
    return lambda out, call: (
        wrong_from(min(start, max(out.size - 1, 0)))(out, call) if out.size and holds(call) else out
    )


def elements(dtype: str, change: Callable[[Array], Array]) -> Alter:
    """Change the elements of one type."""
    return lambda out, call: change(out) if call.inputs[0].dtype == dtype else out


def accepts(
    operator: str, name: str, holds: Callable[[Call], bool], elsewhere: tuple[str, ...] = ()
) -> Mutant:
    """Make a mutant that gives something where the specification wants an error."""

    def kernel(call: Call) -> Array:
        try:
            return call.right()
        except Refused:
            if holds(call):
                return call.inputs[0].array
            raise

    return Mutant(f"{operator}: accepts {name}", operator, kernel, 2, elsewhere)


def refused(name: str, operator: str, holds: Callable[[Call], bool]) -> Mutant:
    """Make a mutant that refuses valid calls."""

    def kernel(call: Call) -> Array:
        if holds(call):
            raise Refused
        return call.right()

    return Mutant(f"{operator}: refuses {name}", operator, kernel)


def flush(unsigned: str, mantissa: int) -> Callable[[Array], Array]:
    """Flush subnormal numbers to a zero of their sign."""

    def change(out: Array) -> Array:
        bits = np.ascontiguousarray(out).reshape(-1).view(unsigned)
        width = bits.dtype.itemsize * 8
        sign = bits.dtype.type(1 << (width - 1))
        small = (bits & ~sign) < bits.dtype.type(1 << mantissa)
        return (
            np.asarray(np.where(small, bits & sign, bits)).astype(unsigned).view(out.dtype).reshape(out.shape)
        )

    return change


def of_sizes(operator: str, limits: tuple[int, ...], widths: tuple[int, ...]) -> Iterator[Mutant]:
    """Only so many elements are written; the end of a vector loop is forgotten."""
    for limit in limits:
        yield altered(f"only {limit} elements are written", operator, wrong_from(limit))
    for width in widths:
        yield altered(f"what follows the last {width} elements is forgotten", operator, tail(width))


def session(call: Call) -> tuple[object, ...]:
    """What the cases of one session have in common."""
    case = call.case
    ranks = tuple(map(len, call.shapes)) if case.options.shapes == "symbolic" else call.shapes
    return (
        case.operator,
        case.opset,
        tuple(t.dtype for t in call.inputs),
        ranks,
        tuple(case.attributes.items()),
        case.options,
    )


def of_state(operator: str) -> Iterator[Mutant]:
    """A session keeps what belongs to one call."""

    def stale() -> Callable[[Call], Array]:
        kept: dict[object, Array] = {}

        def kernel(call: Call) -> Array:
            out = call.right()
            return kept.setdefault((session(call), call.shapes), out)

        return kernel

    yield Mutant(f"{operator}: the first output of a shape is given again", operator, stale())
