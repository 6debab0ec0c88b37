"""What an operator module tells the harness: its oracle, the rules of the ONNX specification, and its DirectML lowering.

An operator is one module here (`OPERATOR = Operator(...)`) and one file in `specs/`; the package's `OPERATORS` collects them. Nothing in
this package knows ONNX or ONNX Runtime: it is the independent side of every comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from harness.dtypes import Array
from harness.records import Tensor

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]
Attributes = Mapping[str, int]
Choice = str | int | Shape
Entropy = bytes | memoryview
"""Pseudo-random bytes: for each element to choose as many as it is wide, at least 4; see `values.py`."""


class ValueKind(NamedTuple):
    """One way to choose the elements of the operator's `values_input`.

    `negative` and `invalid` state what the elements contain: negative indices (DirectML allows them from level 3_0), or at least one
    element that the ONNX specification forbids.
    """

    name: str
    negative: bool = False
    invalid: bool = False


class DirectmlCall(NamedTuple):
    """The call of DirectML's API that an operator is lowered to, before shapes are padded to a common DimensionCount.

    `operator` is a DML_OPERATOR_TYPE; `sizes` are those of the tensors in `inputs`, then that of OutputTensor; `dimension_count` is the
    least that they are padded to.
    `attributes` are the description's other members, of which those in `axes` count dimensions from the left and move with the padding.
    """

    operator: str
    inputs: tuple[str, ...]
    sizes: Shapes
    dimension_count: int
    attributes: Mapping[str, int]
    axes: tuple[str, ...] = ()


class Operator(NamedTuple):
    """Everything the stages ask about one operator.

    - `inputs`, `output`: formal names in the ONNX specification.
    - `choices`: for each input the spec keys that choose its shape relative to the first input's.
    - `shapes(first, chosen, attributes)`: shapes of all inputs for the first input's shape and one value per choice; None where impossible.
    - `domain(attribute, shapes)`: all legal values of an attribute.
    - `broken_rule(shapes, attributes)`: the rule of the ONNX specification that shapes and attributes break, or None.
    - `broken_by_values(inputs, attributes)`: the rule that the elements break, or None; asked only when `broken_rule` is silent.
    - `generate(kind, dtype, shapes, attributes, entropy)`: elements of the `values_input`.
    - `applies(kind, dtype, shapes)`: whether a kind has a meaning for such a `values_input`.
    - `natural_shape(kind, dtype)`: the shape a kind needs when the spec gives none, or None.
    - `oracle(inputs, attributes, variant)`: the expected output; the formula stands above it.
    - `output_shape(shapes, attributes)`: the shape of the output, also for shapes that break a rule (then any shape).
    - `directml_rank(shapes, attributes)`: the DimensionCount that the lowered DirectML call needs at least.
    - `directml(operator, shapes, attributes, variant)`: the DirectML call; `operator` is one of those that the spec
      lowers to, or None for the one that ONNX Runtime's provider chooses.
    - `directml_index`: which input is lowered to an IndicesTensor, or None; `batched(attributes)`: the call needs a BatchDimensionCount.
    - `variants`: graphs composed of several ONNX operators that stand for another mode of the DirectML operator.
    - `extents`: the words of the choice `extent`.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    values_input: str
    value_kinds: tuple[ValueKind, ...]
    choices: Mapping[str, tuple[str, ...]]
    shapes: Callable[[Shape, Mapping[str, Choice], Attributes], Shapes | None]
    domain: Callable[[str, Shapes], Iterable[int]]
    broken_rule: Callable[[Shapes, Attributes], str | None]
    broken_by_values: Callable[[Sequence[Tensor], Attributes], str | None]
    generate: Callable[[str, str, Shapes, Attributes, Entropy], Array]
    oracle: Callable[[Sequence[Tensor], Attributes, str | None], Tensor]
    output_shape: Callable[[Shapes, Attributes], Shape]
    directml_rank: Callable[[Shapes, Attributes], int]
    directml: Callable[[str | None, Shapes, Attributes, str | None], DirectmlCall]
    directml_index: str | None = None
    batched: Callable[[Attributes], bool] = lambda _: False
    applies: Callable[[str, str, Shapes], bool] = lambda _kind, _dtype, _shapes: True
    natural_shape: Callable[[str, str], Shape | None] = lambda _kind, _dtype: None
    variants: tuple[str, ...] = ()
    extents: tuple[str, ...] = ()

    def kind(self, name: str) -> ValueKind:
        """Return a value kind by name; KeyError if the operator has none of that name."""
        return _by_name(self.value_kinds)[name]


@lru_cache(maxsize=64)
def _by_name(kinds: tuple[ValueKind, ...]) -> dict[str, ValueKind]:
    return {kind.name: kind for kind in kinds}
