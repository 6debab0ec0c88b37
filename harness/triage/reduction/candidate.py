"""A candidate for a smaller case, its cost, and the failing case that it must resemble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from harness.model.caseid import parse
from harness.model.dtypes import DTYPES, Array
from harness.model.errors import UsageError
from harness.model.records import Case, Options, Tensor, TensorSpec, TensorValue, Validity, Value
from harness.operators import OPERATORS
from harness.operators.base import Operator, Shape
from harness.operators.directml.levels import levels_of
from harness.specs.calls import call_of
from harness.specs.family_sweeps import named_sweeps
from harness.specs.literal_cases import literal_id, unlike
from harness.specs.load import LoadedSpec
from harness.targets.execution import Prepared

ELEMENTWISE = 256
"""Elements are made simpler one by one only in tensors of at most so many; a larger tensor counts as plain or
not."""
DTYPE_ORDER = (
    "float32", "int64", "int32", "uint8", "float16", "float64", "int8", "uint16", "int16", "uint32", "uint64", "bool", "string", "bfloat16",
    "complex64", "complex128",
)  # fmt: skip
"""Element types from the plainest on; a case is reduced towards the first one that fails alike."""
_NAME_LENGTH = 60


class Candidate(NamedTuple):
    """Everything that can be made smaller.

    `attributes` are sorted by name; `inputs` are those that are present, in the order of the specification,
    and `names` theirs: a variadic input `data_0` stands as `data_0.0`, `data_0.1` and so on.
    """

    opset: int
    attributes: tuple[tuple[str, Value], ...]
    options: Options
    inputs: tuple[Tensor, ...]
    names: tuple[str, ...]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(tensor.array.shape for tensor in self.inputs)

    def with_input(self, position: int, tensor: Tensor) -> Candidate:
        """Return the candidate with another tensor at a position."""
        return self._replace(inputs=(*self.inputs[:position], tensor, *self.inputs[position + 1 :]))

    def without_input(self, position: int) -> Candidate:
        """Return the candidate without an input; those of a variadic one that stand behind it move up."""
        formal, dot, _ = self.names[position].partition(".")
        names: list[str] = []
        for name in (*self.names[:position], *self.names[position + 1 :]):
            of = name.partition(".")[0]
            names.append(
                f"{formal}.{sum(each.startswith(f'{formal}.') for each in names)}"
                if dot and of == formal
                else name
            )
        return self._replace(
            inputs=(*self.inputs[:position], *self.inputs[position + 1 :]), names=tuple(names)
        )

    def key(self) -> tuple[Any, ...]:
        """Return what is equal for equal candidates only."""
        return (
            self.opset,
            repr(self.attributes),  # 0, 0.0 and -0.0 are three values, and NaN is one
            msgspec.structs.astuple(self.options),
            self.names,
            tuple(
                (
                    t.dtype,
                    t.array.shape,
                    tuple(t.array.reshape(-1)) if t.dtype == "string" else t.array.tobytes(),
                )
                for t in self.inputs
            ),
        )


class Subject:
    """The failing case: makes cases of candidates, and says which of them keep its validity and the rule that
    it breaks."""

    def __init__(self, prepared: Prepared, spec: LoadedSpec) -> None:
        case = prepared.case
        if case.directml is not None:
            raise UsageError(
                f"{case.id}: a call of DirectML's own API; what is reduced must be what an ONNX graph expresses"
            )
        self.origin = case
        self.spec = spec
        self.operator: Operator = OPERATORS[case.operator]
        names = tuple(each.name for each in case.inputs)
        self.start = Candidate(
            case.opset, tuple(sorted(case.attributes.items())), case.options, prepared.inputs, names
        )
        self.name = self._free_name()
        self.rule = self.broken(self.start)
        if (self.rule is None) is not (case.validity is Validity.VALID):
            raise UsageError(
                f"{case.id}: the harness cannot tell which rule it breaks, so it cannot keep it while it reduces the case"
            )

    def _free_name(self) -> str:
        terms = parse(self.origin.id).terms
        stem = str(terms.get("case") or terms.get("sweep"))[: _NAME_LENGTH - 12] + "_reduced"
        taken = {entry.name for entry in (*self.spec.model.cases, *named_sweeps(self.spec.model))}
        return next(
            name for n in range(1, len(taken) + 2) if (name := stem if n == 1 else f"{stem}_{n}") not in taken
        )

    def kinds(self, name: str) -> tuple[str, ...]:
        """Return the ways to choose the elements of an input; () for one that takes any bits."""
        return tuple(kind.name for kind in self.operator.family.kinds(self.operator, name))

    def decides(self, name: str) -> bool:
        """Say whether the elements of an input decide shapes, or stand for an attribute."""
        return name in self.operator.constants

    def payload(self, name: str) -> bool:
        """Say whether the elements of an input are only moved."""
        return not self.kinds(name) and not self.decides(name)

    def broken(self, candidate: Candidate) -> str | None:
        """Return the rule of the operator that a candidate breaks, None if it is valid."""
        case = self._written(candidate, {})
        inputs = dict(zip(candidate.names, candidate.inputs, strict=True))
        with np.errstate(invalid="ignore"):
            broken = self.operator.broken(call_of(case), inputs)
        if broken is not None:
            return broken
        schema = self.spec.schema(candidate.opset)
        for name, tensor in inputs.items():
            parameter = schema.input(name)
            if parameter is not None and tensor.dtype not in parameter.dtypes:
                return f"the element type of {parameter.name}"
        return unlike(schema, case.inputs)

    def keeps(self, candidate: Candidate) -> bool:
        """Say whether a candidate is as valid as the failing case, or invalid by the same rule."""
        schema = self.spec.schema(candidate.opset)
        given = dict(candidate.attributes)
        if any(name not in schema.attributes for name in given):
            return False
        if any(attribute.required and name not in given for name, attribute in schema.attributes.items()):
            return False
        formal = [name.partition(".")[0] for name in candidate.names]
        known = {parameter.name for parameter in schema.inputs}
        if any(name not in known for name in formal):
            return False
        least = {p.name: p.least if p.variadic else int(not p.optional) for p in schema.inputs}
        if any(formal.count(name) < number for name, number in least.items()):
            return False
        return self.broken(candidate) == self.rule

    def case(self, candidate: Candidate, fills: Mapping[int, str] | None = None) -> Case:
        """Make the case of a candidate, with its elements written out but for the inputs that are to be
        filled."""
        case = self._written(candidate, fills or {})
        return msgspec.structs.replace(case, levels=levels_of(case, call_of(case)))

    def _written(self, candidate: Candidate, fills: Mapping[int, str]) -> Case:
        specs = tuple(
            TensorSpec(name, tensor.dtype, tensor.array.shape, fills.get(position, "literal"))
            for position, (name, tensor) in enumerate(zip(candidate.names, candidate.inputs, strict=True))
        )
        attributes = dict(candidate.attributes)
        return Case(
            id=literal_id(
                self.operator.name, candidate.opset, self.name, specs, attributes, candidate.options
            ),
            operator=self.operator.name,
            opset=candidate.opset,
            attributes=attributes,
            inputs=specs,
            options=candidate.options,
            validity=self.origin.validity,
            rule=self.origin.rule,
            source=self.origin.source,
            lowers_to=self.spec.directml,
            literals=tuple(
                None if position in fills else tensor.array
                for position, tensor in enumerate(candidate.inputs)
            ),
        )

    def cost(self, candidate: Candidate) -> tuple[int, ...]:
        """Return what every step makes smaller: options, inputs, dimensions, their sizes, element types,
        attributes, elements, opset."""
        default = Options()
        changed = [
            getattr(candidate.options, name) != getattr(default, name) for name in Options.__struct_fields__
        ]
        optimization = ("off", "basic", "extended", "all").index(candidate.options.optimization)
        return (
            sum(changed) * 4 + optimization,
            len(candidate.inputs),
            sum(map(len, candidate.shapes)),
            sum(map(sum, candidate.shapes)),
            sum(DTYPE_ORDER.index(tensor.dtype) for tensor in candidate.inputs),
            sum(value_cost(value) + 1 for _, value in candidate.attributes),
            sum(
                tensor_cost(tensor, payload=self.payload(name))
                for name, tensor in zip(candidate.names, candidate.inputs, strict=True)
            ),
            candidate.opset,
        )


def plain(dtype: str, shape: tuple[int, ...], *, payload: bool) -> Array:
    """Return the plainest elements: zeros, or for a tensor whose elements are only moved its positions, which
    show where each went."""
    entry = DTYPES[dtype]
    count = int(np.prod(shape, dtype=np.int64))
    numbers = np.arange(count) % 100 if payload else np.zeros(count, np.int64)
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = [str(number) if payload else "" for number in numbers]
        return array.reshape(shape)
    if dtype == "bfloat16":
        return np.asarray((numbers.astype("f4").view("u4") >> np.uint32(16)).astype("u2")).reshape(shape)
    if dtype == "bool":
        numbers = numbers % 2
    return numbers.astype(entry.storage).reshape(shape)


def tensor_cost(tensor: Tensor, *, payload: bool) -> int:
    """Return how far a tensor's elements are from the plainest ones."""
    usual = plain(tensor.dtype, tensor.array.shape, payload=payload)
    if tensor.array.size > ELEMENTWISE:
        same = (
            np.array_equal(tensor.array, usual)
            if tensor.dtype == "string"
            else tensor.array.tobytes() == usual.tobytes()
        )
        return 0 if same else 1
    return sum(
        0 if _same(a, b) else 1 + element_cost(tensor.dtype, a)
        for a, b in zip(tensor.array.reshape(-1), usual.reshape(-1), strict=True)
    )


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, str) else bool(a.tobytes() == b.tobytes())


def value_cost(value: Any) -> int:
    """Return how far the value of an attribute is from the plainest: by magnitude, the bits of a float, the
    length of a list."""
    if isinstance(value, int):
        return 2 * abs(value) + (value < 0)
    if isinstance(value, float):
        return element_cost("float64", np.float64(value))
    if isinstance(value, TensorValue):
        return len(value.elements)
    return sum(1 + value_cost(each) for each in value) if isinstance(value, tuple) else 0


def element_cost(dtype: str, scalar: Any) -> int:
    """Return how far one element is from the plainest: 0 for 0 and "", then by magnitude, length or the bits
    that a float needs."""
    entry = DTYPES[dtype]
    if dtype == "string":
        return 2 * sum(1 + (ord(c) > 0x7E) for c in str(scalar)) + sum(c != "a" for c in str(scalar))
    if dtype == "bool":
        return int(scalar)
    if entry.is_integer:
        return 2 * abs(int(scalar)) + (int(scalar) < 0)
    if not entry.is_float:
        return int(scalar != 0) + int(scalar.tobytes() != np.zeros((), entry.storage).tobytes())
    bits = int(np.asarray(scalar).view(f"u{entry.itemsize}"))
    assert entry.mantissa is not None
    sign, exponent, fraction = float_parts(bits, entry.itemsize * 8, entry.mantissa)
    if bits == 0:
        return 0
    bias = (1 << (entry.itemsize * 8 - 2 - entry.mantissa)) - 1
    length = entry.mantissa - ((fraction & -fraction).bit_length() - 1) if fraction else 0
    return 1 + 3 * length + 2 * abs(exponent - bias) + sign


def float_parts(bits: int, width: int, mantissa: int) -> tuple[int, int, int]:
    """Return sign, biased exponent and fraction of a binary float."""
    return (
        bits >> (width - 1),
        bits >> mantissa & ((1 << (width - 1 - mantissa)) - 1),
        bits & ((1 << mantissa) - 1),
    )
