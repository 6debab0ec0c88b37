"""Counts which kinds of input the cases of an operator have: for each input its kinds of elements, of shapes and of
presence, for each attribute that it is left out and which numbers break a rule, for the operator its sessions.

Which are possible the element types of ONNX's schemas say and, for dimensions, the ranks of cases. One that no judged
case has is impossible for a reason: the sentence of a case that is `unspecified`, the rule that every valid case breaks
when it is changed to have it, or, of a number of an attribute, that it breaks no rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

import msgspec
import numpy as np

from harness.model.case import CONSTANTS, Case, Tensor, Validity, Value
from harness.model.dtypes import DTYPES, Array
from harness.model.onnx_schemas import operator_schema
from harness.model.operator_schema import OperatorSchema, Parameter
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, TensorType
from harness.specs.coverage.left_out import reasons
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.calls import call_of, case_inputs

FLOATS = ("NaN first", "NaN last", "NaN everywhere", "inf", "-inf", "-0", "subnormal", "largest", "fine")
INTEGERS = ("least", "greatest")
EMPTY = ("none in 0", "none in 1", "none in 2", "none in 3")
EXTENTS = {f"over {extent}": extent for extent in (16, 64, 256, 1024)}
RANKS = ("scalar", "rank 5")
SHAPES = (*RANKS, *EXTENTS)
INITIALIZER = "initializer"
LEFT_OUT = "left out"
GIVEN = (INITIALIZER, LEFT_OUT)
IN_MODES = ("NaN first", "inf", "-inf", "-0", *INTEGERS)
"""The kinds of elements that each mode of an operator gets: `Mode`."""
NARROW = tuple(name for name, entry in DTYPES.items() if entry.narrow)
UNDECLARED = "undeclared"
SESSIONS = ("after same", "after larger", "after smaller", UNDECLARED)
NUMBERS: Mapping[str, Callable[[int], int]] = {
    "zero": lambda _: 0,
    "negative": lambda _: -1,
    "33 bits": lambda held: held + 2**32,
}
"""The kinds of numbers of attributes, each with what stands in place of a valid number. A target that cuts 33 bits to 32 sees
the valid number."""
FLOAT_ATTRIBUTES = {"NaN first": np.nan, "inf": np.inf, "-inf": -np.inf, "zero": 0.0, "negative": -1.0}
"""The kinds that an attribute of one float has, valid where no rule forbids them."""
KINDS = (*FLOATS, *INTEGERS, *NARROW, *EMPTY, *SHAPES, *GIVEN, *NUMBERS, *SESSIONS)
_WITNESSES, _LARGE = 8, 100_000
_MODES = 16
"""The most values of an attribute that are modes; an attribute of more is a text such as Einsum's equation."""
_ASKED = 100
"""The most valid cases, spread over all, of which the rules are asked whether a number of an attribute breaks one."""

_NO_CALL = ArithmeticError, IndexError, KeyError, MemoryError, TypeError, ValueError
"""What rules and shapes raise of what is no call."""
Cell = tuple[str, str]
"""An input, an attribute or nothing, and a kind."""


Mode = tuple[str, str | int]
"""An attribute and its value, where it is text, or an integer that is 0 or 1."""


def modes_of(case: Case) -> Iterator[Mode]:
    """Yield the modes of a case; of an attribute that is left out its default."""
    for name, attribute in operator_schema(case.operator, case.opset).attributes.items():
        value = case.attributes.get(name, attribute.default)
        if isinstance(value, str) or (isinstance(value, int) and value in (0, 1)):
            yield name, value


class KindCount(NamedTuple):
    """The cells of an operator that a judged case has, those that could have one, and why others have none; and how many of
    the kinds of elements that cases have are in each of its modes, and in how many they could be."""

    operator: str
    covered: list[Cell]
    missing: list[Cell]
    reasons: dict[Cell, str]
    in_modes: tuple[int, int]


@lru_cache(maxsize=64)
def _patterns(dtype: str) -> tuple[int, int, int]:
    """Return of a float type the bits of infinity and of the least normal number, and those beyond 10 bits of the
    significand, which TF32 and float16 lack."""
    entry = DTYPES[dtype]
    assert entry.mantissa is not None
    least = 1 << entry.mantissa
    return (1 << (entry.itemsize * 8 - 1)) - least, least, (1 << max(0, entry.mantissa - 10)) - 1


def kinds_of(dtype: str, array: Array) -> Iterator[str]:
    """Yield the kinds of elements that a tensor has."""
    entry, flat = DTYPES[dtype], array.reshape(-1)
    if not flat.size:
        return
    if entry.is_integer:
        yield from (kind for kind, edge in zip(INTEGERS, entry.limits[:2], strict=True) if edge in flat)
    if not entry.is_float:
        return
    infinity, least, low = _patterns(dtype)
    bits = flat.view(f"u{entry.itemsize}")
    sign = bits.dtype.type(1 << (entry.itemsize * 8 - 1))
    size = bits & ~sign
    nan = size > infinity
    found = (
        bool(nan[0] and not nan.all()),
        bool(nan[-1] and not nan.all()),
        nan.all(),
        infinity in bits,
        infinity | int(sign) in bits,
        sign in bits,
        ((size > 0) & (size < least)).any(),
        infinity - 1 in size,
        ((size >= least) & (size < infinity - 1) & (size & bits.dtype.type(low) > 0)).any(),
    )
    yield from (kind for kind, has in zip(FLOATS, found, strict=True) if has)


def holding(kind: str, dtype: str, array: Array) -> Array | None:
    """Return a tensor changed to have a kind of elements, None where its type has none or it has no element."""
    entry = DTYPES[dtype]
    if not array.size or not (entry.is_float if kind in FLOATS else entry.is_integer):
        return None
    made: Array = np.array(array)  # of an element as well
    if kind in INTEGERS:
        made.flat[0] = dict(zip(INTEGERS, entry.limits[:2], strict=True))[kind]
        return made
    infinity, least, low = _patterns(dtype)
    sign = 1 << (entry.itemsize * 8 - 1)
    nan = infinity + least // 2
    patterns = nan, nan, nan, infinity, infinity | sign, sign, 1, infinity - 1, infinity // 2 | low
    made.reshape(-1)[_PLACES.get(kind, slice(1))] = np.array(
        patterns[FLOATS.index(kind)], f"u{entry.itemsize}"
    ).view(entry.storage)
    return made


_PLACES = {"NaN last": slice(-1, None), "NaN everywhere": slice(None)}


class Witness(NamedTuple):
    """A valid case with its call and tensors, by name."""

    case: Case
    call: Call
    tensors: dict[str, Tensor]


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

    def add(self, case: Case, seed: int) -> None:
        if case.validity is Validity.INVALID and case.literals is None and case.rule is not None:
            self.refused.setdefault(case.rule, case)
        for cell in self.cells(case, seed):
            if case.validity is Validity.UNSPECIFIED and cell[1] in FLOATS + INTEGERS + NARROW:
                self.open.setdefault(cell, case.rule or "")
            elif case.validity is not Validity.UNSPECIFIED:
                self._count(case, cell)

    def count(self, case: Case) -> None:
        """Count the cells of a generated case."""
        for cell in self.cells(case, 0):
            self._count(case, cell)

    def _count(self, case: Case, cell: Cell) -> None:
        """Count a cell, of an invalid case none of elements and shapes, and a kind of elements for each mode of the case."""
        if case.validity is Validity.VALID or cell[1] in (LEFT_OUT, UNDECLARED, *NUMBERS, *NARROW):
            self.judged.add(cell)
        if case.validity is Validity.VALID and cell[1] in IN_MODES:
            for mode in modes_of(case):
                self.by_mode.setdefault(mode, set()).add(cell)

    def cells(self, case: Case, seed: int) -> Iterator[Cell]:
        """Yield the cells that a case has, the kinds of elements only where few before it were chosen alike."""
        opset = operator_schema(case.operator, case.opset)
        given = {spec.name.split(".")[0] for spec in case.inputs}
        yield from (
            (each.name, LEFT_OUT) for each in opset.inputs if each.optional and each.name not in given
        )
        yield from ((name, LEFT_OUT) for name in opset.attributes if name not in case.attributes)
        yield from ((name, kind) for name, value in case.attributes.items() for kind in _numbers(value))
        if case.options.after is not None:
            yield "", f"after {case.options.after}"
        if case.options.shapes == UNDECLARED and case.validity is Validity.INVALID:
            yield "", UNDECLARED
        frozen = (case.options.initializer or "").split(",")
        yield from ((each, dtype) for each, dtype in self._output(opset, case) if dtype in NARROW)
        for spec in case.inputs:
            name, rank = spec.name.split(".")[0], len(spec.shape)
            yield from ((name, spec.dtype),) if spec.dtype in NARROW else ()
            if case.validity is not Validity.INVALID:
                self.rank[name] = max(rank, self.rank.get(name, 0))
            constant = spec.name in self.operator.constants and CONSTANTS in frozen
            yield from ((name, INITIALIZER),) if constant or spec.name in frozen else ()
            yield from ((name, EMPTY[n]) for n, extent in enumerate(spec.shape[: len(EMPTY)]) if not extent)
            yield from ((name, kind) for kind, least in EXTENTS.items() if max(spec.shape, default=0) > least)
            yield from ((name, kind) for kind in [{0: "scalar", 5: "rank 5"}.get(rank)] if kind)
        if any(prod(spec.shape) > _LARGE for spec in case.inputs) or not self._new(case):
            return
        call = call_of(case)
        tensors = dict(zip(call.inputs, case_inputs(call, case, seed), strict=True))
        witness = Witness(case, call, tensors)
        if case.validity is Validity.VALID:
            self.valid.append(witness)
        for name, tensor in tensors.items():
            yield from ((name.split(".")[0], kind) for kind in kinds_of(*tensor))

    def number_type(self, name: str, kind: str) -> str | None:
        """Return ONNX's type of the attribute that a cell is of, None where it is of something else."""
        if kind not in (*NUMBERS, *FLOAT_ATTRIBUTES) or (kind in FLOATS and name in self.rank):
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
            for case, _, _ in self.valid
            for name, value in case.attributes.items()
            if not isinstance(value, int) or value not in (0, 1)
        }

    def _output(self, schema: OperatorSchema, case: Case) -> Iterator[Cell]:
        """Yield the first output with its type, where the types of inputs do not decide it."""
        if own := _free_output(schema):
            yield own.name, call_of(case).outputs[0]

    def _new(self, case: Case) -> bool:
        """Say whether the elements of a case are written out, or few before it were chosen alike."""
        key = (
            case.validity,
            *modes_of(case),
            *((spec.name, spec.dtype, spec.values, len(spec.shape)) for spec in case.inputs),
        )
        self._looked[key] = self._looked.get(key, 0) + 1
        return case.literals is not None or self._looked[key] <= _WITNESSES


def _numbers(value: Value) -> Iterator[str]:
    """Yield the kinds of numbers that a value of an attribute has."""
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, int | float):
            held = each == 0, each < 0, isinstance(each, int) and each >= 2**31
            yield from (kind for kind, has in zip(NUMBERS, held, strict=True) if has)
    if isinstance(value, float) and not np.isfinite(value):
        yield "NaN first" if np.isnan(value) else "inf" if value > 0 else "-inf"


def mode_cells(seen: SeenKinds) -> list[tuple[Mode, Cell]]:
    """Return each mode of an operator with each kind of elements that cases have in it or in other modes, a mode being one of
    several values of its attribute."""
    modes = dict.fromkeys(mode for witness in seen.valid for mode in modes_of(witness.case))
    values = Counter(name for name, _ in modes)
    told = reasons(seen.operator.name)
    cells = [
        cell
        for cell in dict.fromkeys(_possible(seen))
        if cell in seen.judged
        and cell[0] in seen.rank
        and cell[1] in IN_MODES
        and cell not in seen.open
        and " ".join(cell) not in told
    ]
    return [(mode, cell) for mode in modes if 2 <= values[mode[0]] <= _MODES for cell in cells]


def count_kinds(seen: SeenKinds) -> KindCount:
    """Count the cells of an operator."""
    in_modes = [cell in seen.by_mode.get(mode, ()) for mode, cell in mode_cells(seen)]
    found = KindCount(seen.operator.name, [], [], {}, (sum(in_modes), len(in_modes)))
    told = reasons(seen.operator.name)
    for cell in dict.fromkeys(_possible(seen)):
        why = told.get(" ".join(cell).strip()) or seen.open.get(cell)
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
    yield from ((each.name, dtype) for each in free for dtype in each.dtypes if dtype in NARROW)
    for each in (each for schema in schemas for each in schema.inputs):
        types = [DTYPES[dtype] for dtype in each.dtypes if dtype in DTYPES]
        kinds = (
            *(FLOATS if any(dtype.is_float for dtype in types) else ()),
            *(INTEGERS if any(dtype.is_integer for dtype in types) else ()),
            *(dtype.name for dtype in types if dtype.narrow),
            *EMPTY[: seen.rank.get(each.name, 0)],
            *RANKS,
            *(EXTENTS if seen.rank.get(each.name) else ()),
            *GIVEN[: 1 + each.optional],
        )
        yield from ((each.name, kind) for kind in kinds)
    for schema in schemas:
        yield from ((name, LEFT_OUT) for name in schema.attributes)
        yield from (
            (name, kind)
            for name, each in schema.attributes.items()
            for kind in (FLOAT_ATTRIBUTES if each.type == "FLOAT" else NUMBERS)
            if each.type in ("INT", "FLOAT") or (each.type == "INTS" and kind != "33 bits")
        )
    yield from (("", kind) for kind in SESSIONS)


def _reason(seen: SeenKinds, name: str, kind: str) -> str | None:
    """Return why no case can have a kind: a rule that each changed case breaks; None where one breaks none."""
    if kind in NARROW:
        return None
    if kind == UNDECLARED:
        return None if seen.refused else "no rule concerns shapes"
    if kind in SESSIONS and not any(
        operator_schema(seen.operator.name, opset).inputs for opset in seen.spec.opsets
    ):
        return "a graph without inputs has one call"
    schemas = [operator_schema(seen.operator.name, opset) for opset in seen.spec.opsets]
    having = [schema.attributes[name] for schema in schemas if name in schema.attributes]
    if kind == LEFT_OUT and having and all(each.required for each in having):
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


def can_change(witness: Witness, name: str, kind: str) -> bool:
    """Say whether a case has an input whose type or dimensions allow a kind, or an input that can be
    omitted."""
    own = [each for given, each in witness.tensors.items() if given.split(".")[0] == name]
    if kind in EMPTY[1:]:
        return any(each.array.ndim > EMPTY.index(kind) for each in own)
    if kind in FLOATS + INTEGERS and own:
        return any(DTYPES[each.dtype].is_float == (kind in FLOATS) and each.array.size for each in own)
    if kind in FLOAT_ATTRIBUTES and not own:
        return name in operator_schema(witness.case.operator, witness.case.opset).attributes
    return bool(own) or kind in NUMBERS or (kind == LEFT_OUT and name in witness.case.attributes)


def changed_calls(
    operator: Operator, witness: Witness, name: str, kind: str
) -> Iterator[tuple[Witness, str | None]]:
    """Yield a case changed to have a kind with the rule that it then breaks: in this input alone, and in all
    that have the changed extents. A change by which the rules cannot be asked is none."""
    case, call, tensors = witness
    if kind in (LEFT_OUT, *NUMBERS) or all(each.split(".")[0] != name for each in tensors):
        changed = _without(witness, name) if kind == LEFT_OUT else _with_number(witness, name, kind)
        if changed is not None:
            yield from _asked(operator, [changed])
        return
    own = next(each for each in tensors if each.split(".")[0] == name)
    for arrays in _changes(
        {each: tensor.array for each, tensor in tensors.items()}, own, tensors[own].dtype, kind
    ):
        given = {
            each: Tensor(tensor.dtype, arrays.get(each, tensor.array)) for each, tensor in tensors.items()
        }
        inputs = {each: TensorType(tensor.dtype, tensor.array.shape) for each, tensor in given.items()}
        constants = {each: given[each].array for each in call.constants}
        yield from _asked(operator, [Witness(case, call._replace(inputs=inputs, constants=constants), given)])


def _asked(operator: Operator, changed: Iterable[Witness]) -> Iterator[tuple[Witness, str | None]]:
    for each in changed:
        try:
            with np.errstate(all="ignore"):
                yield each, operator.unlike_constants(each.call) or operator.broken(each.call, each.tensors)
        except _NO_CALL:
            continue


def _with_number(witness: Witness, name: str, kind: str) -> Witness | None:
    """Return a case with a kind of number in place of a valid one, of a list of the last. None where there is no number or it
    has this kind. A list gets none of 33 bits, since a window or padding so large is a valid one of a tensor that no
    machine holds."""
    case, call, tensors = witness
    schema, held = operator_schema(case.operator, case.opset).attributes.get(name), call.attributes.get(name)
    changed: Value
    if schema is not None and schema.type == "FLOAT" and kind in FLOAT_ATTRIBUTES:
        changed = FLOAT_ATTRIBUTES[kind]
    elif isinstance(held, int):
        changed = NUMBERS[kind](held)
    elif isinstance(held, tuple) and held and isinstance(held[-1], int) and kind != "33 bits":
        changed = (*held[:-1], NUMBERS[kind](held[-1]))
    else:
        return None
    if schema is None or changed == held:
        return None
    case = msgspec.structs.replace(case, attributes={**case.attributes, name: changed})
    try:
        call = call_of(case)
        OPERATORS[case.operator].family.output_shapes(OPERATORS[case.operator], call)
    except _NO_CALL:
        return None
    return Witness(case, call, tensors)


def _without(witness: Witness, name: str) -> Witness | None:
    """Return a case without an attribute or an input; None where it has none or the rest is no call."""
    case, _, tensors = witness
    kept = [number for number, spec in enumerate(case.inputs) if spec.name.split(".")[0] != name]
    if name not in case.attributes and len(kept) == len(case.inputs):
        return None
    changed = msgspec.structs.replace(
        case,
        attributes={each: value for each, value in case.attributes.items() if each != name},
        inputs=tuple(case.inputs[number] for number in kept),
        literals=case.literals and tuple(case.literals[number] for number in kept),
    )
    try:
        call = call_of(changed)
    except _NO_CALL:
        return None
    return Witness(changed, call, {each: tensors[each] for each in call.inputs})


def _changes(arrays: Mapping[str, Array], own: str, dtype: str, kind: str) -> Iterator[dict[str, Array]]:
    shape = arrays[own].shape
    if kind in FLOATS + INTEGERS:
        few = kind in _ENDS and arrays[own].size == 1
        for wide in _with_two(arrays, own) if few else [{own: arrays[own]}]:
            made = holding(kind, dtype, wide[own])
            yield from [wide | {own: made}] if made is not None else []
        return
    if kind == INITIALIZER:
        yield {}
        return
    if kind in RANKS:
        whole = () if kind == "scalar" else (1,) * (5 - len(shape)) + shape
        yield {own: np.resize(arrays[own], whole)}
        yield {each: np.resize(array, whole) for each, array in arrays.items() if array.shape == shape}
        return
    if not shape and kind not in EMPTY[1:]:
        yield {own: np.resize(arrays[own], (EXTENTS.get(kind, -1) + 1,))}
    for place in range(len(shape)):
        if kind not in EMPTY or EMPTY.index(kind) == place:
            yield from _stretched(arrays, own, place, EXTENTS.get(kind, -1) + 1)


_ENDS = ("NaN first", "NaN last")


def _with_two(arrays: Mapping[str, Array], own: str) -> Iterator[dict[str, Array]]:
    """Yield changes by which an input of one element has two, a first and a last one."""
    shape = arrays[own].shape
    for place in range(len(shape)):
        yield from _stretched(arrays, own, place, 2)
    if not shape:
        yield {own: np.resize(arrays[own], (2,))}


def _stretched(arrays: Mapping[str, Array], own: str, place: int, extent: int) -> Iterator[dict[str, Array]]:
    """Yield an input with another extent: alone, with the others that have it at the same place, and with all that have it."""
    shape = arrays[own].shape
    old = shape[place]
    shapes = {own: (*shape[:place], extent, *shape[place + 1 :])}
    others = {each: array.shape for each, array in arrays.items() if each != own}
    at_place = {
        each: (*other[:place], extent, *other[place + 1 :])
        for each, other in others.items()
        if other[place : place + 1] == (old,)
    }
    anywhere = {each: tuple(extent if n == old else n for n in other) for each, other in others.items()}
    for more in ({}, at_place, anywhere):
        if all(prod(each) < _LARGE * _WITNESSES for each in more.values()):
            yield {each: np.resize(arrays[each], to) for each, to in (shapes | more).items()}
