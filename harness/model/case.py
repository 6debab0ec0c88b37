"""A case as a type: one concrete operator call, with its tensors, its options, and what only DirectML's own API
can be asked.

Everything here is frozen, knows no other module but `dtypes`, and is what the stages pass to each other.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from harness.model.dtypes import DTYPES, Array

BEYOND = "beyond"
"""The level of a case that no published DirectML table allows."""


class Validity(str, Enum):
    """What the ONNX operator specification says of a case."""

    VALID = "valid"
    INVALID = "invalid"
    UNSPECIFIED = "unspecified"


Optimization = Literal["off", "basic", "extended", "all"]

After = Literal["same", "larger", "smaller"]
"""How large the call was that the session ran before a case: as large with other elements, larger, smaller."""


class Tensor(NamedTuple):
    """A tensor: the name of its element type in `dtypes.DTYPES` and its elements."""

    dtype: str
    array: Array


class TensorValue(NamedTuple):
    """A tensor as the value of an attribute: element type, shape, and its elements as Python numbers or texts
    in row-major order.

    A sparse one has those elements that are not 0, and their `indices`: of shape [elements] in row-major order, or
    [elements, rank].
    """

    dtype: str
    shape: tuple[int, ...]
    elements: tuple[int | float | bool | str, ...]
    indices: TensorValue | None = None

    @property
    def tensor(self) -> Tensor:
        """The same as a tensor, a sparse one with its zeros."""
        given = np.array(self.elements, DTYPES[self.dtype].storage)
        if self.indices is None:
            return Tensor(self.dtype, given.reshape(self.shape))
        dense, places = np.zeros(self.shape, given.dtype), self.indices.tensor.array
        dense[np.unravel_index(places, self.shape) if places.ndim == 1 else tuple(places.T)] = given
        return Tensor(self.dtype, dense)


Value = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | TensorValue
"""The value of an attribute: INT, FLOAT, STRING, INTS, FLOATS, STRINGS, TENSOR or SPARSE_TENSOR."""


class TensorSpec(msgspec.Struct, frozen=True, gc=False):
    """Name, element type and shape of one input; `values` names how its elements are chosen (`specs/sweeps/calls.py`).

    `elements` are those of an input that decides shapes (`axes`, `pads`): they stand in the id, in place of
    the shape.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: str = "random"
    elements: tuple[int | float | bool, ...] | None = None


Shapes = Literal["symbolic", "static", "undeclared"]
"""What a graph says of the shapes of its inputs: ranks, extents, or nothing but element types."""
CONSTANTS = "constants"
"""As an initializer: every input whose elements decide shapes."""


Optionals = Literal["graph", "left_out"]
LeftOut = Literal["empty_names"]
Binding = Literal["own", "device", "outlived"]
"""Where inputs and outputs lie: in buffers of the caller, in OrtValues on the provider's device, in OrtValues that are
read when their session and their sources are gone."""


class Options(msgspec.Struct, frozen=True, gc=False):
    """How a case's graph is built and run; a default is not written into the case's id.

    `initializer` names the inputs that are one, divided by commas, or `constants`. `outputs` is the number of outputs that the
    node has where that is not the operator's usual one; `omit` names those, divided by commas, that it leaves out
    before others by an empty name. `after` is the call that the session has run before. By
    `optionals` those that nodes would make or take apart are inputs and outputs of the graph; one without an element is
    None, or is not fed. By `left_out` every optional input and output that a node lacks at its end has an empty
    name. From `binding` on they are `DEPLOYMENTS`: how an application runs a graph.
    """

    shapes: Shapes = "symbolic"
    initializer: str | None = None
    in_place: bool = False
    optimization: Optimization = "off"
    neighbours: bool = False
    variant: str | None = None
    outputs: int | None = None
    omit: str | None = None
    after: After | None = None
    optionals: Optionals | None = None
    left_out: LeftOut | None = None
    binding: Binding | None = None
    concurrent: int | None = None
    execution: Literal["parallel"] | None = None
    memory_pattern: Literal["off"] | None = None
    arena: Literal["off"] | None = None
    prepacking: Literal["off"] | None = None
    saved: Literal["onnx", "ort"] | None = None
    dimensions: Literal["fixed"] | None = None
    initializers: Literal["shared"] | None = None


DEPLOYMENTS = Options.__struct_fields__[Options.__struct_fields__.index("binding") :]
"""The options that change neither the graph nor its optimisation, and by that no result."""


class DirectmlTensor(msgspec.Struct, frozen=True, gc=False):
    """Members of one DML_BUFFER_TENSOR_DESC that a case replaces; None keeps the value that lowering gives."""

    dtype: str | None = None
    sizes: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    bytes: int | None = None
    alignment: int | None = None
    flags: int | None = None


class DirectmlOptions(msgspec.Struct, frozen=True, gc=False):
    """What only a call of DirectML's own API can ask for; a case that has these is expressed for the target
    `directml` alone.

    `operator` is a DML_OPERATOR_TYPE; `dimension_count` the DimensionCount that shapes are padded to with
    leading 1s; `in_place` names the input tensor that OutputTensor aliases; `layout` names by tensor how its
    elements lie in the buffer (`directml/layout.py`). `attributes` and `tensors` replace members of the
    descriptions, which is how a case breaks a rule.
    """

    operator: str | None = None
    dimension_count: int | None = None
    in_place: str | None = None
    layout: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, Value], ...] = ()
    tensors: tuple[tuple[str, DirectmlTensor], ...] = ()


class Case(msgspec.Struct, frozen=True):
    """One concrete operator call.

    `inputs` are those that are present, in the order of the specification. `literals` holds written-out input
    elements (None for an input that is filled) and `documented` the documented result of each output (None
    for one that is not documented). `rule` says for an invalid case which rule it breaks and for an
    unspecified one what the sources leave open. `levels` are derived (`levels.py`) from the DirectML
    operators of `lowers_to`. With `directml`, validity is what Microsoft's documents say of the call;
    without, what ONNX says.
    """

    id: str
    operator: str
    opset: int
    attributes: dict[str, Value]
    inputs: tuple[TensorSpec, ...]
    options: Options = Options()
    validity: Validity = Validity.VALID
    rule: str | None = None
    source: str | None = None
    literals: tuple[Array | None, ...] | None = None
    documented: tuple[Array | None, ...] | None = None
    levels: dict[str, str] = {}
    lowers_to: tuple[str, ...] = ()
    directml: DirectmlOptions | None = None
    uses: int | None = None
    """How many nodes of models make this call."""

    @property
    def beyond(self) -> bool:
        """Say whether no published level allows the lowered call."""
        return BEYOND in self.levels.values()
