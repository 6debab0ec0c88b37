"""An entry of a spec file as the file writes it, with what all entries share.

A literal case names its inputs, options, documented outputs, and requests to DirectML's own API. A sweep names
alternatives for everything that a case says, and how it covers their interactions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from harness.model.case import After, Binding, LeftOut, Optimization, Optionals, Shapes, Validity
from harness.specs.reading.literals import shape_problem
from harness.specs.reading.schema_types import (
    AllOrDtypes,
    Alternatives,
    AttributeValue,
    Documented,
    Dtype,
    Elements,
    FileName,
    Kinds,
    Name,
    OneOrMore,
    Opsets,
    OutputNames,
    Relation,
    Strict,
    Text,
    refuse,
)

TensorName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$")]
LayoutName = Literal[
    "packed", "explicit", "padded", "stepped", "transposed", "broadcast", "broadcast_last", "zero"
]
DimensionCount = Annotated[int, Field(ge=1, le=9)]


class SpecEntry(Strict):
    """What literal cases and sweeps share."""

    name: Name
    source: Text | None = None
    opsets: Opsets | None = None
    validity: Annotated[Validity, Field(strict=False)] = Validity.VALID
    rule: Text | None = None

    @model_validator(mode="after")
    def _rule_given(self) -> SpecEntry:
        if self.validity is Validity.VALID and self.rule is not None:
            raise refuse("'rule' says why a case is not valid, but its validity is 'valid'")
        if self.validity is not Validity.VALID and self.rule is None:
            broken = (
                "which rule of the operator it breaks"
                if self.validity is Validity.INVALID
                else "what the sources leave open"
            )
            raise refuse(f"an {self.validity.value} case needs a 'rule': {broken}")
        return self


class CaseOptions(Strict):
    """How a literal case's graph is built and run; the same words as `case.Options`."""

    binding: Binding | None = None
    concurrent: Annotated[int, Field(ge=2, le=64)] | None = None
    execution: Literal["parallel"] | None = None
    memory_pattern: Literal["off"] | None = None
    arena: Literal["off"] | None = None
    prepacking: Literal["off"] | None = None
    saved: Literal["onnx", "ort"] | None = None
    dimensions: Literal["fixed"] | None = None
    initializers: Literal["shared"] | None = None
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
    `literal_cases.py`."""
    directml: CaseDirectml | None = None
    uses: Annotated[int, Field(ge=1)] | None = None
    """How many nodes of a team's models make the call; reports weigh by it."""

    @property
    def documents_output(self) -> bool:
        """Say whether the case states its result."""
        return "output" in self.model_fields_set


class SweepOptions(Strict):
    """Alternatives for each option; a list or a single one."""

    shapes: Alternatives[Shapes] = ("symbolic",)
    initializer: Alternatives[str | None] = (None,)
    in_place: Alternatives[bool] = (False,)
    optimization: Alternatives[Optimization] = ("off",)
    neighbours: Alternatives[bool] = (False,)
    variant: Alternatives[Name | None] = (None,)
    outputs: Alternatives[Annotated[int, Field(ge=1, le=64)] | None] = (None,)
    omit: Alternatives[OutputNames | None] = (None,)
    after: Alternatives[After | None] = (None,)
    optionals: Alternatives[Optionals | None] = (None,)
    left_out: Alternatives[LeftOut | None] = (None,)

    @property
    def varied(self) -> tuple[str, ...]:
        """The options that a covering sweep varies: newer ones only where they are listed, so that its rows stay as
        they were before there were any."""
        return tuple(
            field
            for field in type(self).model_fields
            if field not in ("omit", "after", "optionals", "left_out") or getattr(self, field) != (None,)
        )


class SweepDirectml(Strict):
    """Alternatives of a sweep for requests to DirectML's own API; `null` is the value that lowering
    chooses."""

    operator: Alternatives[Text | None] = (None,)
    dimension_count: Alternatives[DimensionCount | None] = (None,)
    in_place: Alternatives[TensorName | None] = (None,)
    layout: dict[TensorName, Alternatives[LayoutName]] = {}


class SweepInput(Strict):
    """The alternatives for one input. What words and keys under `shape`, and what `values` mean is the
    operator's to say.

    Without `dtype` an input has the element type of those that share its type parameter, or all that ONNX
    allows.
    """

    dtype: AllOrDtypes | None = None
    shape: Relation | None = None
    values: Kinds | None = None


def _level(value: object) -> object:
    """Write a level as ids do: `false` is a text, `null` is the level `none`."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, (bool, int)) else value


_Level = Annotated[
    Text, BeforeValidator(_level), WithJsonSchema({"type": ["string", "integer", "boolean", "null"]})
]
Levels = dict[Text, Alternatives[_Level]]
"""Levels by factor, both by the names that `harness coverage` prints."""


class Forbidden(Strict):
    """Levels that never stand together, of each factor one of those listed, and why."""

    because: Text
    levels: Levels


class Cover(Strict):
    """How few cases of a sweep cover the interactions of its factors, which are all that can be chosen independently:
    `strength` 2 shows every two levels of any two factors, as far as some case can.

    `alone` are levels that some target may refuse whatever else a case has: a case with one of them shows no
    other interaction. Of an invalid sweep each case has one `illegal` level, which breaks the sweep's rule, and
    no other. Strength 1 shows each level once: for a factor of which the sweep has only one.
    """

    strength: Literal[1, 2, 3] = 2
    alone: Levels = {}
    illegal: Levels = {}
    forbid: tuple[Forbidden, ...] = ()


class _WithInputs(Strict):
    """An entry of which each key that is no field is an input of the operator."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, SweepInput] = Field(init=False)

    @property
    def inputs(self) -> dict[str, SweepInput]:
        """What is given of each input that is named."""
        return self.__pydantic_extra__


class Sweep(SpecEntry, _WithInputs):
    """Alternatives for every part of a case; a key that is no field is an input of the operator.

    Of their product either all is kept, or with `cover` few cases that show every pair of alternatives together, at
    most `budget`.
    """

    attributes: dict[str, AttributeValue] = {}
    cover: Cover | None = None
    budget: Annotated[int, Field(ge=1)] = 1000
    options: SweepOptions = SweepOptions.model_construct()
    directml: SweepDirectml | None = None


class Use(_WithInputs):
    """The sweeps of a family; the other keys given here hold for each of them."""

    use: Name
    without: Alternatives[Name] = ()
    opsets: Opsets | None = None
    attributes: dict[str, AttributeValue] = {}
    budget: Annotated[int, Field(ge=1)] | None = None


def _sweep_or_use(value: object) -> str:
    return "<use>" if isinstance(value, dict) and "use" in value else "<sweep>"


class _ByUse:
    """Lets an editor know by the key `use` which of the two an entry is, as the loader does, and so name what
    is wrong in it."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        sweep, use = handler(schema)["oneOf"]
        return {"if": {"required": ["use"]}, "then": use, "else": sweep}


SweepEntry = Annotated[
    Annotated[Sweep, Tag("<sweep>")] | Annotated[Use, Tag("<use>")], Discriminator(_sweep_or_use), _ByUse()
]
