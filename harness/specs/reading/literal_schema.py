"""A literal case as a spec file writes it: its inputs, options, documented outputs, and requests to
DirectML's own API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.model.case import Binding, LeftOut, Optimization, Optionals, Shapes
from harness.specs.reading.entry_schema import DimensionCount, LayoutName, SpecEntry, TensorName
from harness.specs.reading.literals import shape_problem
from harness.specs.reading.schema_types import (
    AttributeValue,
    Documented,
    Dtype,
    Elements,
    FileName,
    Name,
    OneOrMore,
    OutputNames,
    Strict,
    Text,
    refuse,
)


class DeploymentOptions(Strict):
    """How an application runs a graph of several operators; the same words as `case.DEPLOYMENTS`."""

    binding: Binding | None = None
    concurrent: Annotated[int, Field(ge=2, le=64)] | None = None
    execution: Literal["parallel"] | None = None
    memory_pattern: Literal["off"] | None = None
    arena: Literal["off"] | None = None
    prepacking: Literal["off"] | None = None
    saved: Literal["onnx", "ort"] | None = None
    dimensions: Literal["fixed"] | None = None
    initializers: Literal["shared"] | None = None


class CaseOptions(DeploymentOptions):
    """How a literal case's graph is built and run; the same words as `case.Options`."""

    shapes: Shapes = "symbolic"
    initializer: str | None = None
    in_place: bool = False
    optimization: Optimization = "off"
    neighbours: bool = False
    variant: Name | None = None
    outputs: Annotated[int, Field(ge=1, le=64)] | None = None
    omit: OutputNames | None = None
    after: None = None
    optionals: Optionals | None = None
    left_out: LeftOut | None = None


_Uint = Annotated[int, Field(ge=0, le=2**32 - 1)]
_Uint64 = Annotated[int, Field(ge=0, le=2**64 - 1)]


class TensorMembers(Strict):
    """Members of a DML_BUFFER_TENSOR_DESC that a literal case writes itself."""

    dtype: Dtype | None = None
    sizes: tuple[_Uint, ...] | None = None
    strides: tuple[_Uint, ...] | None = None
    bytes: _Uint64 | None = None
    alignment: _Uint | None = None
    flags: _Uint | None = None


class CaseDirectml(Strict):
    """A literal case of DirectML's own API; the same words as `case.DirectmlOptions`."""

    operator: Text | None = None
    dimension_count: DimensionCount | None = None
    in_place: TensorName | None = None
    layout: dict[TensorName, LayoutName] = {}
    attributes: dict[Text, AttributeValue] = {}
    tensors: dict[TensorName, TensorMembers] = {}


class CaseInput(Strict):
    """One input of a literal case: its elements written out, the name of a way to fill a shape, or the file of its
    elements, beside the spec, with the byte at which they begin."""

    dtype: Dtype
    values: Elements = None
    fill: Name | None = None
    file: FileName | None = None
    offset: Annotated[int, Field(ge=0)] = 0
    shape: tuple[Annotated[int, Field(ge=0)], ...] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> CaseInput:
        if len(self.model_fields_set & {"values", "fill", "file"}) != 1:
            raise refuse("give exactly one of 'values', 'fill' and 'file'")
        if (self.fill or self.file) is not None and self.shape is None:
            raise refuse(f"'{'fill' if self.file is None else 'file'}' needs a 'shape'")
        if self.file is None and self.shape is not None and (wrong := shape_problem(self.shape)):
            raise refuse(wrong)
        return self


CaseInputs = Annotated[tuple[CaseInput, ...], Field(min_length=1), OneOrMore()]


class LiteralCase(SpecEntry):
    """One written-out case; `output` is the documented result, `outputs` are several by their names; a
    variadic input is a list."""

    attributes: dict[str, AttributeValue] = {}
    inputs: dict[str, CaseInputs]
    output: Documented = None
    outputs: dict[str, Documented] = {}
    options: CaseOptions = CaseOptions.model_construct()
    deployed: bool = False
    """Whether the case also runs as graphs of deployed models hold it, with the options of
    `deployments.py`."""
    directml: CaseDirectml | None = None
    uses: Annotated[int, Field(ge=1)] | None = None
    """How many nodes of a team's models make the call; reports weigh by it."""

    @property
    def documents_output(self) -> bool:
        """Say whether the case states its result."""
        return "output" in self.model_fields_set
