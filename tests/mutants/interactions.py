"""Mistakes that need two conditions of different factors, or three: wrong, refused or accepted only where both hold.

The conditions are written here once more, of inputs and options, and do not use the levels that the specs cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from math import prod

import numpy as np

from harness.model.case import Validity
from harness.model.dtypes import DTYPES, Array
from harness.operators import OPERATORS
from tests.mutants import Call, Mutant, Refused
from tests.mutants.moving import wrong_from

Condition = Callable[[Call], bool]
Conditions = Mapping[str, Mapping[str, Condition]]
"""Conditions by factor and name."""


def _bits(call: Call) -> tuple[Array, int, int] | None:
    """Return the magnitudes of floats as bits, with those of infinity and of the least normal number."""
    tensor = call.inputs[0]
    entry = DTYPES[tensor.dtype]
    if entry.mantissa is None:
        return None
    bits = np.ascontiguousarray(tensor.array).view(f"u{entry.itemsize}")
    width = entry.itemsize * 8
    infinity = ((1 << (width - 1 - entry.mantissa)) - 1) << entry.mantissa
    return bits & np.array((1 << (width - 1)) - 1, bits.dtype), infinity, 1 << entry.mantissa


def _floats(holds: Callable[[Array, int, int], Array]) -> Condition:
    def found(call: Call) -> bool:
        bits = _bits(call)
        return bits is not None and bool(np.any(holds(*bits)))

    return found


def _option(name: str, value: object) -> Condition:
    return lambda call: getattr(call.case.options, name) == value


def _type(dtype: str) -> Condition:
    return lambda call: call.inputs[0].dtype == dtype


def common(dtypes: tuple[str, ...], opsets: tuple[int, ...], ranks: range) -> dict[str, dict[str, Condition]]:
    """Return the conditions that every operator has."""
    return {
        "type": {
            **{dtype: _type(dtype) for dtype in dtypes},
            "elements of 8 bytes": lambda call: DTYPES[call.inputs[0].dtype].itemsize == 8,
            "elements of 2 bytes": lambda call: DTYPES[call.inputs[0].dtype].itemsize == 2,
        },
        "rank": {
            **{f"rank {rank}": lambda call, r=rank: len(call.shapes[0]) == r for rank in ranks},
            "more than 5 dimensions": lambda call: len(call.shapes[0]) > 5,
        },
        "size": {
            "one element": lambda call: prod(call.shapes[0]) == 1,
            "more than 64 rows": lambda call: bool(call.shapes[0]) and call.shapes[0][0] > 64,
            "more than 65,535 elements": lambda call: prod(call.shapes[0]) > 65535,
            "rows of whole vectors": lambda call: bool(call.shapes[0]) and call.shapes[0][-1] % 8 == 0 < prod(call.shapes[0]),
            "rows of an odd length": lambda call: bool(call.shapes[0]) and call.shapes[0][-1] % 2 == 1,
        },
        "values": {
            "a NaN": _floats(lambda bits, infinity, _: bits > infinity),
            "an infinity": _floats(lambda bits, infinity, _: bits == infinity),
            "a subnormal": _floats(lambda bits, _, normal: (bits > 0) & (bits < normal)),
        },
        "shapes": {f"{each} shapes": _option("shapes", each) for each in ("symbolic", "static", "undeclared")},
        "optimization": {
            **{f"optimisation {each}": _option("optimization", each) for each in ("off", "basic", "extended", "all")},
            "any optimisation": lambda call: call.case.options.optimization != "off",
        },
        "neighbours": {"neighbours": _option("neighbours", True), "no neighbours": _option("neighbours", False)},
        "opset": {f"opset {opset}": lambda call, o=opset: call.case.opset == o for opset in opsets},
    }  # fmt: skip


def initializers(*names: str) -> dict[str, Condition]:
    """Return which input is a constant of the graph."""
    return {f"{name} as initializer": _option("initializer", name) for name in names} | {
        "no initializer": _option("initializer", None)
    }


def indices(holds: Callable[[Array, Array], Array]) -> Condition:
    """Make a condition of all indices and the sizes that they point into."""

    def found(call: Call) -> bool:
        index = call.inputs[1].array.astype(np.int64)
        sizes = OPERATORS[call.case.operator].family.sizes(call.prepared.call)  # type: ignore[attr-defined]
        return index.size > 0 and bool(np.all(holds(index, np.broadcast_to(sizes, index.shape))))

    return found


INDICES: dict[str, Condition] = {
    "indices all below 0": indices(lambda index, _: index < 0),
    "indices all 0": indices(lambda index, _: index == 0),
    "indices all at the end": indices(lambda index, sizes: index == sizes - 1),
    "indices all alike": indices(lambda index, _: index == index.reshape(-1)[:1].reshape((1,) * index.ndim)),
}


def rule(text: str, condition: Condition = lambda _call: True) -> Condition:
    """Make the condition that a rule is broken, by its first words."""

    def found(call: Call) -> bool:
        given = dict(zip(call.prepared.call.inputs, call.inputs, strict=True))
        broken = OPERATORS[call.case.operator].broken(call.prepared.call, given)
        return broken is not None and broken.startswith(text) and condition(call)

    return found


def _wrong(name: str, operator: str, holds: Condition, form: int, elsewhere: tuple[str, ...]) -> Mutant:
    """Make a mistake: the last element, all, or a refusal."""

    def kernel(call: Call) -> Array:
        right = call.right()
        if not holds(call):
            return right
        if form == 2:
            raise Refused
        return wrong_from(0 if form else max(right.size - 1, 0))(right, call)

    return Mutant(
        f"{operator}: {('last element', 'all', 'refused')[form]}: {name}", operator, kernel, 1, elsewhere
    )


def _accepts(name: str, operator: str, holds: Condition, elsewhere: tuple[str, ...]) -> Mutant:
    def kernel(call: Call) -> Array:
        if call.case.validity is Validity.INVALID and holds(call):
            return call.inputs[0].array
        return call.right()

    return Mutant(f"{operator}: accepts: {name}", operator, kernel, 1, elsewhere)


def mistakes(
    operator: str,
    conditions: Conditions,
    strength: int,
    impossible: Callable[[frozenset[str]], bool],
    lacking: Callable[[str], tuple[str, ...]],
    always: Condition = lambda _call: True,
) -> Iterator[Mutant]:
    """Yield a mistake for every tuple of conditions of different factors that goes together; `lacking` says by
    condition on which targets it is never met, `always` what holds beside them."""
    number = 0
    for factors in combinations(conditions, strength):
        for names in product(*(conditions[factor] for factor in factors)):
            if any(impossible(frozenset(pair)) for pair in combinations(names, 2)):
                continue
            holds = [always, *(conditions[factor][name] for factor, name in zip(factors, names, strict=True))]
            both: Condition = lambda call, each=tuple(holds): all(one(call) for one in each)  # noqa: E731
            lacked = (*names, *(" and ".join(pair) for pair in combinations(names, 2)))
            elsewhere = tuple({target for name in lacked for target in lacking(name)})
            number += 1
            yield _wrong(" and ".join(names), operator, both, number % 3, elsewhere)


def leniences(
    operator: str,
    rules: Mapping[str, Condition],
    conditions: Conditions,
    impossible: Callable[[frozenset[str]], bool],
    lacking: Callable[[str], tuple[str, ...]],
) -> Iterator[Mutant]:
    """Yield for every rule and every condition a mistake that accepts what breaks the rule there."""
    for broken, named in product(rules, (name for each in conditions.values() for name in each)):
        if impossible(frozenset((broken, named))):
            continue
        condition = next(each[named] for each in conditions.values() if named in each)
        both: Condition = lambda call, one=rules[broken], other=condition: one(call) and other(call)  # noqa: E731
        yield _accepts(f"{broken} and {named}", operator, both, lacking(broken) + lacking(named))
