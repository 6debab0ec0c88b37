"""Counts which kinds of input the cases of an operator have: for each input its kinds of elements, of shapes and of
presence, for each attribute that it is left out and which numbers break a rule, for the operator its sessions.

Which are possible the element types of ONNX's schemas say and, for dimensions, the ranks of cases. One that no judged
case has is impossible for a reason: the sentence of a case that is `unspecified`, the rule that every valid case breaks
when it is changed to have it, or, of a number of an attribute, that it breaks no rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import NamedTuple

from harness.model.case import CONSTANTS, Case, Validity
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import operator_schema
from harness.model.operator_schema import OperatorSchema, Parameter
from harness.operators import OPERATORS
from harness.specs.coverage import kinds
from harness.specs.coverage.changed_calls import LARGE, Witness, can_change, changed_calls
from harness.specs.coverage.kinds import Cell, Mode
from harness.specs.coverage.left_out import reasons
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.calls import call_of, case_inputs

_WITNESSES = 8
_MODES = 16
"""The most values of an attribute that are modes; an attribute of more is a text such as Einsum's equation."""
_ASKED = 100
"""The most valid cases, spread over all, of which the rules are asked whether a number of an attribute breaks one."""


class KindCount(NamedTuple):
    """The cells of an operator that a judged case has, those that could have one, and why others have none; and how many of
    the kinds of elements that cases have are in each of its modes, and in how many they could be."""

    operator: str
    covered: list[Cell]
    missing: list[Cell]
    reasons: dict[Cell, str]
    in_modes: tuple[int, int]


class SeenKinds:
    """What the cases of an operator have, and its valid cases, of which few are chosen alike; for cells how many of these were asked
    and the rules that they break when they are changed to have one."""

    def __init__(self, spec: LoadedSpec) -> None:
        self.spec, self.operator = spec, OPERATORS[spec.model.operator]
        self.judged: set[Cell] = set()
        self.open: dict[Cell, str] = {}
        self.rank: dict[str, int] = {}
        self.refused: dict[str, Case] = {}
        self.valid: list[Witness] = []
        self.broken: dict[Cell, tuple[int, Counter[str]]] = {}
        self.by_mode: dict[Mode, set[Cell]] = {}
        self._looked: dict[object, int] = {}
        self._counted: set[object] = set()
        """What decides the cells of a case but those of its elements, of the cases so far."""

    def add(self, case: Case) -> None:
        if case.validity is Validity.INVALID and case.literals is None and case.rule is not None:
            self.refused.setdefault(case.rule, case)
        shapes = (
            case.opset,
            case.validity,
            case.options,
            tuple(case.attributes.items()),
            tuple([(spec.name, spec.dtype, spec.shape) for spec in case.inputs]),
        )
        cells = self.elements(case) if shapes in self._counted else self.cells(case)
        self._counted.add(shapes)
        for cell in cells:
            if (
                case.validity is Validity.UNSPECIFIED
                and cell[1] in kinds.FLOATS + kinds.INTEGERS + kinds.NARROW
            ):
                self.open.setdefault(cell, case.rule or "")
            elif case.validity is not Validity.UNSPECIFIED:
                self._count(case, cell)

    def count(self, case: Case) -> None:
        """Count the cells of a generated case."""
        for cell in self.cells(case):
            self._count(case, cell)

    def _count(self, case: Case, cell: Cell) -> None:
        """Count a cell, of an invalid case none of elements and shapes, and a kind of elements for each mode of the case."""
        whole = (
            cell[1] in (kinds.LEFT_OUT, kinds.UNDECLARED, *kinds.NARROW)
            or self.number_type(*cell) is not None
        )
        if whole or case.validity is Validity.VALID:
            self.judged.add(cell)
        if case.validity is Validity.VALID and cell[1] in kinds.IN_MODES:
            for mode in kinds.modes_of(case):
                self.by_mode.setdefault(mode, set()).add(cell)

    def cells(self, case: Case) -> Iterator[Cell]:
        """Yield the cells that a case has, the kinds of elements only where few before it were chosen alike."""
        yield from self._without_elements(case)
        yield from self.elements(case)

    def _without_elements(self, case: Case) -> Iterator[Cell]:
        opset = operator_schema(case.operator, case.opset)
        given = {spec.name.split(".")[0] for spec in case.inputs}
        yield from (
            (each.name, kinds.LEFT_OUT) for each in opset.inputs if each.optional and each.name not in given
        )
        yield from ((name, kinds.LEFT_OUT) for name in opset.attributes if name not in case.attributes)
        yield from (
            (name, kind) for name, value in case.attributes.items() for kind in kinds.numbers_of(value)
        )
        if case.options.after is not None:
            yield "", f"after {case.options.after}"
        if case.options.shapes == kinds.UNDECLARED and case.validity is Validity.INVALID:
            yield "", kinds.UNDECLARED
        frozen = (case.options.initializer or "").split(",")
        if (own := _free_output(opset)) and (dtype := call_of(case).outputs[0]) in kinds.NARROW:
            yield own.name, dtype
        for spec in case.inputs:
            name, rank = spec.name.split(".")[0], len(spec.shape)
            yield from ((name, spec.dtype),) if spec.dtype in kinds.NARROW else ()
            if case.validity is not Validity.INVALID:
                self.rank[name] = max(rank, self.rank.get(name, 0))
            constant = spec.name in self.operator.constants and CONSTANTS in frozen
            yield from ((name, kinds.INITIALIZER),) if constant or spec.name in frozen else ()
            yield from (
                (name, kinds.EMPTY[n])
                for n, extent in enumerate(spec.shape[: len(kinds.EMPTY)])
                if not extent
            )
            yield from (
                (name, kind) for kind, least in kinds.EXTENTS.items() if max(spec.shape, default=0) > least
            )
            yield from ((name, kind) for kind in [{0: "scalar", 5: "rank 5"}.get(rank)] if kind)

    def elements(self, case: Case) -> Iterator[Cell]:
        """Yield the cells of the elements of a case where few before it were chosen alike."""
        if any(prod(spec.shape) > LARGE for spec in case.inputs) or not self._new(case):
            return
        call = call_of(case)
        tensors = dict(zip(call.inputs, case_inputs(call, case, 0), strict=True))
        witness = Witness(case, call, tensors)
        if case.validity is Validity.VALID:
            self.valid.append(witness)
        for name, tensor in tensors.items():
            yield from ((name.split(".")[0], kind) for kind in kinds.kinds_of(*tensor))

    def number_type(self, name: str, kind: str) -> str | None:
        """Return ONNX's type of the attribute that a cell is of, None where it is of something else."""
        if kind not in (*kinds.NUMBERS, *kinds.FLOAT_ATTRIBUTES) or (
            kind in kinds.FLOATS and name in self.rank
        ):
            return None
        schemas = (operator_schema(self.operator.name, opset).attributes for opset in self.spec.opsets)
        return next((schema[name].type for schema in schemas if name in schema), None)

    def makes_case(self, name: str, rule: str | None, number: str | None) -> bool:
        """Say whether a changed call that breaks a rule, or none, is a case of a cell, of an attribute of the type `number` if of
        one. It breaks none, but an integer of an attribute breaks one about the number, which of a flag is one that names it: no
        text says which of 0 and 1 another number means. A float may do either."""
        if rule is None:
            return number in (None, "FLOAT")
        return number is not None and (name in self._no_flags or name in rule)

    @cached_property
    def _no_flags(self) -> set[str]:
        """The attributes that are not 0 or 1 in some valid case."""
        return {
            name
            for each in self.valid
            for name, value in each.case.attributes.items()
            if not isinstance(value, int) or value not in (0, 1)
        }

    def _new(self, case: Case) -> bool:
        """Say whether the elements of a case are written out, or few before it were chosen alike."""
        key = (
            case.validity,
            *kinds.modes_of(case),
            *((spec.name, spec.dtype, spec.values, len(spec.shape)) for spec in case.inputs),
        )
        self._looked[key] = self._looked.get(key, 0) + 1
        return case.literals is not None or self._looked[key] <= _WITNESSES


def mode_cells(seen: SeenKinds) -> list[tuple[Mode, Cell]]:
    """Return each mode of an operator with each kind of elements that cases have in it or in other modes, a mode being one of
    several values of its attribute."""
    modes = dict.fromkeys(mode for witness in seen.valid for mode in kinds.modes_of(witness.case))
    values = Counter(name for name, _ in modes)
    documented = reasons(seen.operator.name)
    cells = [
        cell
        for cell in dict.fromkeys(_possible(seen))
        if cell in seen.judged
        and cell[0] in seen.rank
        and cell[1] in kinds.IN_MODES
        and cell not in seen.open
        and " ".join(cell) not in documented
    ]
    return [(mode, cell) for mode in modes if 2 <= values[mode[0]] <= _MODES for cell in cells]


def count_kinds(seen: SeenKinds) -> KindCount:
    """Count the cells of an operator."""
    in_modes = [cell in seen.by_mode.get(mode, ()) for mode, cell in mode_cells(seen)]
    found = KindCount(seen.operator.name, [], [], {}, (sum(in_modes), len(in_modes)))
    documented = reasons(seen.operator.name)
    for cell in dict.fromkeys(_possible(seen)):
        why = documented.get(" ".join(cell).strip()) or seen.open.get(cell)
        reason = None if cell in seen.judged else why or _reason(seen, *cell)
        if cell in seen.judged:
            found.covered.append(cell)
        elif reason is not None:
            found.reasons[cell] = reason
        else:
            found.missing.append(cell)
    return found


def _free_output(schema: OperatorSchema) -> Parameter | None:
    """Return the first output, None where its type is that of an input."""
    output = schema.outputs[0]
    return None if output.type_param in {each.type_param for each in schema.inputs} else output


def _possible(seen: SeenKinds) -> Iterator[Cell]:
    schemas = [operator_schema(seen.operator.name, opset) for opset in seen.spec.opsets]
    free = [output for schema in schemas if (output := _free_output(schema))]
    yield from ((each.name, dtype) for each in free for dtype in each.dtypes if dtype in kinds.NARROW)
    for each in (each for schema in schemas for each in schema.inputs):
        types = [DTYPES[dtype] for dtype in each.dtypes if dtype in DTYPES]
        possible = (
            *(kinds.FLOATS if any(dtype.is_float for dtype in types) else ()),
            *(kinds.INTEGERS if any(dtype.is_integer for dtype in types) else ()),
            *(dtype.name for dtype in types if dtype.narrow),
            *kinds.EMPTY[: seen.rank.get(each.name, 0)],
            *kinds.RANKS,
            *(kinds.EXTENTS if seen.rank.get(each.name) else ()),
            *kinds.GIVEN[: 1 + each.optional],
        )
        yield from ((each.name, kind) for kind in possible)
    for schema in schemas:
        yield from ((name, kinds.LEFT_OUT) for name in schema.attributes)
        yield from (
            (name, kind)
            for name, each in schema.attributes.items()
            for kind in (kinds.FLOAT_ATTRIBUTES if each.type == "FLOAT" else kinds.NUMBERS)
            if each.type in ("INT", "FLOAT") or (each.type == "INTS" and kind != "33 bits")
        )
    yield from (("", kind) for kind in kinds.SESSIONS)


def _reason(seen: SeenKinds, name: str, kind: str) -> str | None:
    """Return why no case can have a kind: a rule that each changed case breaks; None where one breaks none."""
    if kind in kinds.NARROW:
        return None
    if kind == kinds.UNDECLARED:
        return None if seen.refused else "no rule concerns shapes"
    if kind in kinds.SESSIONS and not any(
        operator_schema(seen.operator.name, opset).inputs for opset in seen.spec.opsets
    ):
        return "a graph without inputs has one call"
    schemas = [operator_schema(seen.operator.name, opset) for opset in seen.spec.opsets]
    having = [schema.attributes[name] for schema in schemas if name in schema.attributes]
    if kind == kinds.LEFT_OUT and having and all(each.required for each in having):
        return "ONNX requires the attribute"
    if number := seen.number_type(name, kind):
        own = [each for each in seen.valid if name in each.case.attributes] or seen.valid
        rules = [
            rule
            for each in own[:: len(own) // _ASKED + 1]
            for _, rule in changed_calls(seen.operator, each, name, kind)
        ]
        made = any(seen.makes_case(name, rule, number) for rule in rules)
        return None if made else "no rule forbids the number"
    asked, broken = seen.broken.get((name, kind), (0, Counter()))
    for witness in seen.valid[asked:]:
        for _, rule in (
            changed_calls(seen.operator, witness, name, kind) if can_change(witness, name, kind) else ()
        ):
            if rule is None:
                return None
            broken[rule] += 1
    seen.broken[name, kind] = len(seen.valid), broken
    return max(broken, key=broken.__getitem__, default=None)
