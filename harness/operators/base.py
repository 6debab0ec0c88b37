"""The contract between an operator and the stages: the call, the family that operators share, and the parts of one
operator.

An operator is a formula with the name of its family (`OPERATORS` of the package collects them) and one file
in `specs/`. Nothing in this package knows ONNX or ONNX Runtime: it is the independent side of every
comparison. What ONNX itself says of an operator (inputs, types, attributes and their defaults) reaches it as
a `Call`, which `harness.specs.sweeps.calls` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from harness.model.case import Tensor, Value
from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators.binary_floats import decode_bfloat16

Shape = tuple[int, ...]
Attributes = Mapping[str, Value]
UNKNOWN = -1
"""The extent of an output where elements that are not known before a run decide it."""
Choice = str | int | Shape
Relation = Mapping[str, Any] | str
"""How the shape of an input stands to those of the inputs before it: a word, or by key a Choice."""
Entropy = bytes | memoryview
"""Pseudo-random bytes: for each element to choose as many as it is wide, at least 4; see `specs/sweeps/calls.py`."""


class TensorType(NamedTuple):
    """Element type and shape of a tensor."""

    dtype: str
    shape: Shape


class Call(NamedTuple):
    """One call of an operator before its elements are chosen: what every hook is given.

    `inputs` holds the inputs that are present, in the order of the specification, under their formal names; a
    variadic input `data_0` stands as `data_0.0`, `data_0.1` and so on. `attributes` holds ONNX's defaults
    where the case gives none; an attribute without a default that is not given is absent. `constants` holds
    the elements of those inputs that are known before a run (`axes`, `shape`, `pads`). `outputs` are the
    element types of the outputs that are asked for, `given` the positions of those that the graph gives where it
    leaves out some.
    """

    inputs: Mapping[str, TensorType]
    attributes: Attributes
    constants: Mapping[str, Array] = {}
    opset: int = 0
    variant: str | None = None
    outputs: tuple[str, ...] = ()
    given: tuple[int, ...] | None = None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the inputs that are present."""
        return tuple([each.shape for each in self.inputs.values()])

    @property
    def first(self) -> TensorType:
        """The first input."""
        return next(iter(self.inputs.values()))

    def parameter(self, name: str, default: Any = None) -> Any:
        """Return what decides shapes under a name: an attribute, or at later opsets the elements of an input
        of that name, as a tuple."""
        if name in self.constants:
            found = self.constants[name]
            if name in self.inputs and self.inputs[name].dtype == "bfloat16":
                found = decode_bfloat16(found)
            return tuple(found.tolist()) if found.ndim else found.item()
        return self.attributes.get(name, default)


class NoDomain(Exception):
    """Raised for an attribute, its only argument, for which the operator does not define `all`."""


class ValueKind(NamedTuple):
    """One way to choose the elements of an input.

    `negative` states that the elements contain negative indices (DirectML allows them from level 3_0);
    `breaks` the rule of the ONNX specification that at least one of them breaks.
    """

    name: str
    negative: bool = False
    breaks: str | None = None


RANDOM = ValueKind("random")


def value_kinds(*names: str, negative: bool = False, breaks: str | None = None) -> tuple[ValueKind, ...]:
    """Return kinds by their names, which have the rest in common."""
    return tuple(ValueKind(name, negative, breaks) for name in names)


class CallTensor(NamedTuple):
    """A tensor of a DirectML call before sizes are padded to a common DimensionCount.

    `carries` is the name of the input, or the position of the output, whose elements it holds, `dtype` the
    element type that DirectML is told (a name of `dtypes.DTYPES`), `strides` in elements where they are not
    those of packed elements (a broadcast dimension has 0).
    """

    carries: str | int
    dtype: str
    sizes: Shape
    strides: Shape | None = None


class DirectmlCall(NamedTuple):
    """The call of DirectML's API that an operator is lowered to.

    `operator` is a DML_OPERATOR_TYPE; `tensors` are the tensor members of its description by name, a tuple for an
    array of tensors; `dimension_count` is the least DimensionCount that sizes are padded to with leading 1s.
    `attributes` are the description's other members: numbers, tuples of numbers. Those in `axes` count dimensions
    from the left and move with the padding; those in `per_dimension` hold a value for each dimension and are
    padded in front with the value given there. An optional member that is left out is None or not named, and the
    members that count the elements of others are never named: lowering adds both. `forbidden` is the sentence of the
    operator's document that the sizes break, though its tables allow data types and DimensionCounts: no level has
    such a call.
    """

    operator: str
    tensors: Mapping[str, CallTensor | tuple[CallTensor, ...] | None]
    dimension_count: int
    attributes: Mapping[str, Any]
    axes: tuple[str, ...] = ()
    per_dimension: Mapping[str, int] = {}
    forbidden: str | None = None

    def views(self) -> Iterator[tuple[str, CallTensor]]:
        """Yield every tensor, those of arrays one by one, as a description names them."""
        for name, given in self.tensors.items():
            if isinstance(given, CallTensor):
                yield name, given
            else:
                yield from ((f"{name}.{place}", each) for place, each in enumerate(given or ()))


DATA_TYPES = (
    "float32", "float16", "uint32", "uint16", "uint8", "int32", "int16", "int8", "float64", "uint64", "int64",
)  # fmt: skip
"""DML_TENSOR_DATA_TYPE (DirectML.h), from 1 on."""


def one_to_one(
    operator: str,
    members: Mapping[str, Any],
    call: Call,
    output: Shape | None = None,
    sizes: Shape | None = None,
    strides: Shape | None = None,
) -> DirectmlCall:
    """Make a call of one tensor in, one out, of one DimensionCount; `output` is the shape of the latter where it is not
    the input's, `sizes` and `strides` are those of the former where they are not ONNX's. `Axis` and `Axes` count
    dimensions."""
    name, (dtype, shape) = next(iter(call.inputs.items()))
    given = CallTensor(name, dtype, shape if sizes is None else sizes, strides)
    made = CallTensor(0, call.outputs[0], shape if output is None else output)
    count = max(1, len(given.sizes), len(made.sizes))
    axes = tuple(name for name in ("Axis", "Axes") if name in members)
    return DirectmlCall(operator, {"InputTensor": given, "OutputTensor": made}, count, members, axes)


def variadic(
    relation: Mapping[str, Any], other: Callable[[str, Shape, int], Shape | None]
) -> tuple[Shape, ...] | None:
    """Return the shapes of a variadic input: `count` of them, of which the first is `of`. `other` makes each further one
    of the word under `others`, the first, and its place; None where one is impossible."""
    found = [relation["of"]]
    for place in range(1, relation.get("count", 2)):
        shape = other(str(relation.get("others", "same")), found[0], place)
        if shape is None:
            return None
        found.append(shape)
    return tuple(found)


def all_axes(self: Family, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
    """Return all axes of rank r, -r to r-1: the `domain` of families whose attribute is an axis."""
    rank = len(call.first.shape)
    return range(-rank, rank)


class Family:
    """What many operators have in common: shapes that fit, attributes, values, rules, lowering, and the
    sweeps that try them.

    A method that a family does not override answers for the plainest operator: one input, one output of its
    shape, no attribute.
    """

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By input, the words that its `shape:` may use in a sweep, or the keys of the mapping that it may be."""
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By key of such a mapping, the words that may stand there; a key that is not named here takes numbers or
    shapes."""
    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {}
    """By input whose elements `choose` chooses, their kinds; of a family that computes, in place of the usual ones."""
    count: int = 1
    """The usual number of outputs."""
    dtypes: ClassVar[tuple[str | None, ...]] = ()
    """What `output_dtypes` returns of any call."""
    lowers: ClassVar[str | None] = None
    """The DirectML operator that `lowered` makes a call of, "" for any that a spec names; None for none."""
    lowers_broken: ClassVar[bool] = False
    """Whether what breaks a rule has a call of DirectML too, which says the level of invalid cases."""

    def shape(
        self, operator: Operator, name: str, relation: Relation, call: Call
    ) -> Shape | tuple[Shape, ...] | None:
        """Return the shape of an input by its relation to the inputs before it (those in `call`), of a
        variadic one all the shapes.

        None where that is impossible.
        """
        raise NotImplementedError

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Value]:
        """Return the values of an attribute, or of an input that decides shapes, that `all` stands for with
        inputs of these shapes.

        Raises NoDomain where the operator says of none.
        """
        if attribute not in operator.domains:
            raise NoDomain(attribute)
        return operator.domains[attribute](call)

    def every(self, operator: Operator, name: str, key: str, call: Call) -> Iterable[Choice]:
        """Return the choices that `all` stands for under a key of an input's relation."""
        raise NotImplementedError

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Return the rule of the ONNX specification that types, shapes, attributes and constants break, or
        None."""
        return None

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Return the rule that the elements break, or None; asked only when `broken_rule` is silent."""
        return None

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Return the ways to choose the elements of an input, the usual one first; () for an input that takes
        any bits."""
        return self.own.get(name, ())

    def fills(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Return the kinds of values that a sweep may list for an input that otherwise takes any bits."""
        return ()

    def positions(self, operator: Operator, name: str) -> Mapping[str, bool]:
        """Return words for values of an attribute, or of a key of an input's shape, that depend on the shapes,
        and whether they are legal: those that are, `all` stands for in a covering sweep."""
        return {}

    def position(self, operator: Operator, name: str, word: str, call: Call) -> Choice | None:
        """Return the value that a word stands for with the inputs and attributes that are known; None where it
        has none."""
        return None

    def shown(self, operator: Operator, call: Call) -> Mapping[str, Iterable[str]]:
        """Return by factor the levels that a call shows, of those factors that its types, attributes and kinds
        of values do not tell."""
        return {}

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for an input of a call."""
        return True

    def natural_shape(self, operator: Operator, kind: str, dtype: str) -> Shape | None:
        """Return the shape that a kind of values of the first input needs where the spec gives none, or
        None."""
        return None

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose the elements of an input for which `kinds` has kinds."""
        shape = call.inputs[name].shape
        numbers = np.frombuffer(entropy, "<u4", prod(shape)).astype(np.int64).reshape(shape)
        return self.choose(kind, name, call, numbers)

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose the elements of an input of `own` by random numbers of 32 bits in its shape."""
        raise NotImplementedError

    def elements_of(self, case_id: str) -> str:
        """Return the part of an id that decides a case's elements, beside the seed."""
        return case_id

    def output_count(self, operator: Operator, call: Call) -> int:
        """Return the usual number of outputs of a call."""
        return self.count

    def twins(self, operator: Operator, attributes: Attributes) -> tuple[Attributes, ...]:
        """Return the attributes of further nodes of the operator, whose outputs a graph gives beside the tested
        node's."""
        return ()

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shapes of the outputs, at least of the requested ones; of a call that breaks a rule the first
        input's."""
        if operator.outputs is not None:
            return operator.outputs(call)
        if operator.broken_rule(call) is not None:
            return (call.first.shape if call.inputs else (),) * max(1, len(call.outputs))
        return self.inferred(operator, call)

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shapes of the outputs of a call that breaks no rule."""
        return (call.first.shape,)

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return the element types of the outputs that ONNX's type parameters do not tell; None for one that
        they tell."""
        return self.dtypes

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """Return the DirectML call; `candidate` is one of those that the spec lowers to, None for what ONNX
        Runtime's provider chooses.

        None where the candidate cannot express the call.
        """
        if operator.lower is not None:
            return operator.lower(candidate, call)
        if candidate is None or self.lowers not in ("", candidate):
            return None
        if not self.lowers_broken and operator.broken_rule(call) is not None:
            return None
        return self.lowered(operator, candidate, call)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Return the call of a DirectML operator that `lowers` names."""
        raise NotImplementedError

    def unsigned_inputs(self, operator: Operator) -> tuple[str, ...]:
        """Return the inputs that hold indices: where none is negative, int32 may be passed as UINT32, since
        the bits are the same."""
        return ()


Oracle = Callable[[Call, Mapping[str, Tensor], str], tuple[Expected, ...]]
"""Takes a call, its inputs by name and the name of a declared arithmetic; returns what each output is held
against."""


class Node(NamedTuple):
    """One operator of a composed graph: its type, the values it takes and the one it makes; `value` is that
    of a Constant."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Value] = {}
    value: Tensor | None = None


Composition = Callable[[str, str, str], Sequence[Node]]
"""Takes the names of a graph's input and output and their element type; returns nodes that compute the one
from the other."""


class Undefined(ValueError):
    """No source defines the result of a call with these elements; its cases are `unspecified`."""


class Operator(NamedTuple):
    """One operator: its name, behind its domain where that is not ONNX's (`com.microsoft.Gelu`), its family, its
    formula made an oracle by `formulas`, and what differs from the family.

    `rule` is asked before the family's rules. `variants` are graphs composed of several ONNX operators that
    stand for another mode of the DirectML operator. `constants` are the inputs whose elements decide shapes
    or that are attributes at older opsets, with their rank, UNKNOWN for any. Where they are given, `outputs` infers the
    outputs' shapes, `domains` the values that `all` stands for, and `lower` makes the DirectML call, in place
    of the family. `options` is whatever the family wants to know of its operator, such as the names of
    DirectML's members. `seldom` are inputs, and attributes that are not 0, that some providers alone have: generated cases
    have them where they are about them. `signature` is that of an operator in a domain of one's own (`harness.model.signatures`).
    """

    name: str
    family: Family
    oracle: Oracle
    rule: Callable[[Call], str | None] = lambda _call: None
    variants: Mapping[str, Composition] = {}
    constants: Mapping[str, int] = {}
    outputs: Callable[[Call], tuple[Shape, ...]] | None = None
    domains: Mapping[str, Callable[[Call], Iterable[Value]]] = {}
    lower: Callable[[str | None, Call], DirectmlCall | None] | None = None
    options: Any = None
    seldom: tuple[str, ...] = ()
    signature: Mapping[str, Any] | None = None

    def kind(self, name: str, kind: str) -> ValueKind:
        """Return a kind of values of an input; KeyError if there is none of that name."""
        known = *self.family.kinds(self, name), *self.family.fills(self, name), RANDOM
        return {each.name: each for each in known}[kind]

    def chooses(self, name: str, kind: str) -> bool:
        """Say whether the family chooses the elements of an input, or it takes any bits."""
        return bool(self.family.kinds(self, name)) or any(
            each.name == kind for each in self.family.fills(self, name)
        )

    def broken_rule(self, call: Call) -> str | None:
        """Return the rule that types, shapes, attributes and constants break, the operator's own or its
        family's."""
        return self.rule(call) or self.family.broken_rule(self, call) or self.unlike_constants(call)

    def unlike_constants(self, call: Call) -> str | None:
        """Return the rule that a constant breaks which is no list, or no scalar."""
        for name, rank in self.constants.items():
            if name in call.inputs and rank != UNKNOWN:
                shape = call.inputs[name].shape
                if len(shape) > 1 or len(shape) < rank or (not rank and shape not in ((), (1,))):
                    return f"{name} is a list" if rank else f"{name} is a scalar"
        return None

    def broken(self, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Return the rule that a call with its elements breaks, or None."""
        return self.broken_rule(call) or self.family.broken_by_values(self, call, inputs)
