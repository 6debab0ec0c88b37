"""The valid cases of an operator's spec as the material of random calls: what stands in them, by where it may
stand again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.model.case import Case, Options, Validity, Value
from harness.operators.base import Operator
from harness.specs.reading.load import LoadedSpec

Kinds = tuple[tuple[str, str], ...]
"""Kinds of values by formal input, of those that have one."""


class Seeds:
    """The cases, and by opset the values of attributes, the kinds of values and the numbers of outputs that
    valid cases have.

    Kinds are kept together as one case has them, by the element types of its inputs: which of them make a
    valid call together, the spec knows.
    """

    def __init__(self, spec: LoadedSpec, operator: Operator, cases: Sequence[Case]) -> None:
        self.spec = spec
        self.operator = operator
        self.cases = [
            case
            for case in cases
            if case.validity is Validity.VALID
            and case.directml is None
            and not (case.options.in_place or case.options.omit)
        ]
        self.attributes: dict[tuple[int, str], list[Value | None]] = defaultdict(list)
        self.kinds: dict[tuple[int, tuple[tuple[str, str], ...]], list[Kinds]] = defaultdict(list)
        self.options: list[Options] = []
        self._collect()

    def _collect(self) -> None:
        seen: set[object] = set()
        for case in self.cases:
            known = self.spec.schema(case.opset).attributes
            for name in known:
                value = case.attributes.get(name)
                key = (case.opset, name, repr(value))
                if key not in seen:
                    seen.add(key)
                    self.attributes[case.opset, name].append(value)
            kinds = tuple(
                dict.fromkeys(
                    (spec.name.partition(".")[0], spec.values)
                    for spec in case.inputs
                    if spec.elements is None and spec.values != "literal"
                )
            )
            dtypes = types_of((spec.name, spec.dtype) for spec in case.inputs)
            if kinds and (case.opset, dtypes, kinds) not in seen:
                seen.add((case.opset, dtypes, kinds))
                self.kinds[case.opset, dtypes].append(kinds)
            if case.options not in seen:
                seen.add(case.options)
                self.options.append(case.options)


def types_of(inputs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the element types by formal input, those of a variadic one once."""
    found: dict[tuple[str, str], None] = {}
    for name, dtype in inputs:
        found[name.partition(".")[0], dtype] = None
    return tuple(found)
