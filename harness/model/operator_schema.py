"""An operator's signature as types: inputs, outputs, attributes and element types at one version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.model.case import Value
from harness.model.dtypes import DTYPES


class Parameter(NamedTuple):
    """An input or output: its name, type parameter (or its only type) and the dtypes allowed, as
    `dtypes.DTYPES` names them.

    A variadic one stands for several tensors, `least` of them at the least; `alike` says that all have one
    element type. A sequence of tensors is written out as such a one, and may hold none. An optional stands as the
    tensor that it may hold. A map is written out as two, its keys and its values: `map` is its name.
    """

    name: str
    type_param: str
    dtypes: tuple[str, ...]
    optional: bool = False
    variadic: bool = False
    least: int = 1
    alike: bool = True
    sequence: bool = False
    map: str = ""
    optional_type: bool = False

    @property
    def wide(self) -> tuple[str, ...]:
        """The dtypes that stand for all of them in sweeps: narrow ones are cases where they are named alone."""
        return tuple(each for each in self.dtypes if each not in DTYPES or not DTYPES[each].narrow)

    @property
    def needed(self) -> bool:
        """Say whether a call must give something for it."""
        return self.least > 0 if self.variadic else not self.optional


class Attribute(NamedTuple):
    """An attribute: its type as ONNX names it (`INT`, `INTS`, `STRING` …), its default (None without one),
    and whether it must be given."""

    type: str
    default: Value | None
    required: bool


class OperatorSchema(NamedTuple):
    """An operator at one opset; `since_version` is the opset whose definition holds there. `function` says that
    ONNX defines it by a body of other operators as well.

    A sequence of tensors that it gives is two outputs: how many tensors it holds, under its name and `_length`,
    and the tensors, as a variadic one. An optional is two as well: whether it has an element, under its name and
    `_has_element`, and the element.
    """

    name: str
    since_version: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: dict[str, Attribute]
    function: bool

    def input(self, name: str) -> Parameter | None:
        """Return the input of this name, if there is one; `data_0.2` is one of the variadic `data_0`."""
        formal = name.partition(".")[0]
        return next((p for p in self.inputs if p.name == formal), None)

    def output(self, position: int) -> Parameter:
        """Return the output at a position; those of a variadic output are all the last."""
        return self.outputs[min(position, len(self.outputs) - 1)]

    def output_name(self, position: int) -> str:
        """Return the name of an output in a graph: its formal name, or `outputs.1` for one of several."""
        parameter = self.output(position)
        return (
            f"{parameter.name}.{position - len(self.outputs) + 1}" if parameter.variadic else parameter.name
        )

    def given_outputs(self, count: int, omitted: str | None) -> tuple[int, ...]:
        """Return the positions of the outputs that a graph with `count` outputs keeps: those that are not
        omitted, or all if none were left."""
        names = frozenset((omitted or "").split(","))
        return tuple(n for n in range(count) if self.output_name(n) not in names) or tuple(range(count))

    def output_dtype(self, inputs: Mapping[str, str], position: int = 0) -> str | None:
        """Return the element type of an output for inputs of the given element types; None where they do not
        decide it."""
        output = self.output(position)
        for name, dtype in inputs.items():
            parameter = self.input(name)
            if parameter is not None and parameter.type_param == output.type_param:
                return dtype
        return output.dtypes[0] if len(output.dtypes) == 1 else None

    def defaults(self) -> dict[str, Value]:
        """Return the attributes that have a default."""
        return {
            name: attribute.default
            for name, attribute in self.attributes.items()
            if attribute.default is not None
        }
