"""Generates for each number among an operator's attributes an invalid case with 0, one with -1 and one with 33 bits, where
that breaks a rule and no case of the operator has such a value.

It is a valid case with this attribute changed, of a list the last element. What 33 bits have is the value that stood there plus
2**32: a target that cuts it to 32 bits sees a valid call. A list gets none, since a window or padding so large is a valid one of a
tensor that no machine holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from math import prod

import msgspec
import numpy as np

from harness.model.case import Case, Options, Validity, Value
from harness.model.onnx_schemas import operator_schema
from harness.model.target_info import CPU
from harness.specs.coverage.kind_cases import PREFIX, lacks_kernel, written_out
from harness.specs.coverage.kinds import SeenKinds, Witness
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.calls import call_of

WRONG: Mapping[str, Callable[[int], int]] = {
    "zero": lambda _: 0,
    "negative": lambda _: -1,
    "33_bits": lambda held: held + 2**32,
}
_TRIED = 12
"""Valid cases that are changed for a value."""


def wrong_number_cases(spec: LoadedSpec, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the generated cases of a spec whose other cases are `cases`."""
    seen, had = SeenKinds(spec), set[tuple[str, str]]()
    for case in cases:
        if case.directml is not None or case.options.variant is not None:
            continue
        had.update((name, word) for name, value in case.attributes.items() for word in _words(value))
        if case.validity is Validity.VALID:
            list(seen.cells(case, 0))
    bases = sorted(seen.valid, key=_rank)
    names = dict.fromkeys(
        name for o in spec.opsets for name in operator_schema(spec.model.operator, o).attributes
    )
    for name in names:
        own = sorted(bases, key=lambda base: name not in base.case.attributes)
        for word in WRONG:
            if (name, word) not in had:
                changed = (_changed(seen, base, name, word) for base in own)
                yield from islice((each for each in islice(changed, _TRIED) if each is not None), 1)


def _words(value: Value) -> Iterator[str]:
    """Yield the words for which a value of an attribute has a number."""
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, int):
            held = {"zero": each == 0, "negative": each < 0, "33_bits": each >= 2**31}
            yield from (word for word, has in held.items() if has)


def _rank(base: Witness) -> tuple[object, ...]:
    """Return what orders bases: those that the CPU provider has a kernel for, plain, of float32 and small first."""
    case, call, _ = base
    options = case.options
    plain = Options(outputs=options.outputs, omit=options.omit, optionals=options.optionals)
    types = {each.dtype for each in call.inputs.values()}
    return (
        lacks_kernel(base, CPU),
        options != plain,
        "float32" not in types,
        len(types),
        -case.opset,
        not all(map(prod, call.shapes)),
        sum(map(prod, call.shapes)),
    )


def _changed(seen: SeenKinds, base: Witness, name: str, word: str) -> Case | None:
    """Return a base with another value of an attribute, None where that breaks no rule or is none."""
    case, call, tensors = base
    schema = operator_schema(case.operator, case.opset).attributes.get(name)
    held = call.attributes.get(name)
    wrong: Value
    if isinstance(held, int):
        wrong = WRONG[word](held)
    elif type(held) is tuple and held and isinstance(held[-1], int) and word != "33_bits":
        wrong = (*held[:-1], WRONG[word](held[-1]))
    else:
        return None
    if schema is None or wrong == held:
        return None
    changed = msgspec.structs.replace(case, attributes={**case.attributes, name: wrong})
    try:
        with np.errstate(all="ignore"):
            asked = call_of(changed)
            rule = seen.operator.broken(asked, tensors)
            seen.operator.family.output_shapes(seen.operator, asked)
            if rule is None:
                return None
            source = "a number of an attribute that breaks a rule"
            return written_out(
                seen.spec, changed, f"{PREFIX}{name}_{word}", tensors, case.options, source, rule
            )
    except (ArithmeticError, IndexError, KeyError, MemoryError, TypeError, ValueError):
        return None  # what rules cannot be asked of
