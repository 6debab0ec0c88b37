"""The format of a spec file as types. What ONNX knows of an operator is checked in `load`, what a sweep expands to in `expand`.

Field names are the YAML's keys. Sequences are tuples, single values where a list may stand are tuples of one, everything is frozen.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from harness.dtypes import DTYPES
from harness.records import Optimization, Validity
from harness.specs.literals import shape_problem

ALL = "all"
"""Stands for every value that the operator allows."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"

LISTED = "<list>"
"""Tag of the list form of a value that may also be `all`."""

_T = TypeVar("_T")


def refuse(what: str, *, given: str | None = None, allowed: tuple[str, ...] = ()) -> PydanticCustomError:
    """Make the error that `problems.validation_problems` turns into a line with a suggestion."""
    return PydanticCustomError("refused", "{what}", {"what": what, "given": given, "allowed": allowed})


def _listed(value: object) -> object:
    return value if isinstance(value, tuple) or value == ALL else (value,)


class _OneOrMore:
    """Lets a single value stand for a list of one, in the file and in the JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(lambda v: v if isinstance(v, tuple) else (v,), handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


def _distinct(values: tuple[_T, ...]) -> tuple[_T, ...]:
    if len(set(values)) < len(values):
        twice = next(v for i, v in enumerate(values) if v in values[:i])
        raise refuse(f"{list(twice) if isinstance(twice, tuple) else twice!r} is listed twice")
    return values


def _dtype(name: str) -> str:
    if name not in DTYPES:
        raise refuse(f"unknown dtype {name!r}", given=name, allowed=tuple(DTYPES))
    return name


def _dtype_or_all(name: str) -> str:
    if name not in DTYPES:
        raise refuse(f"unknown dtype {name!r}", given=name, allowed=(ALL, *DTYPES))
    return name


def _shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if wrong := shape_problem(shape):
        raise refuse(wrong)
    return shape


def _sorted_opsets(opsets: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(_distinct(opsets)))


def _kind(value: object) -> str:
    return "<all>" if isinstance(value, str) and value == ALL else LISTED


_Listed = BeforeValidator(_listed)
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Dtype = Annotated[str, AfterValidator(_dtype), WithJsonSchema({"type": "string", "enum": list(DTYPES)})]
Shape = Annotated[tuple[Annotated[int, Field(ge=0)], ...], AfterValidator(_shape)]
Opsets = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1), AfterValidator(_sorted_opsets)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Integer = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
_All = Annotated[Literal["all"], Tag("<all>")]
_Ints = Annotated[tuple[Integer, ...], Field(min_length=1), AfterValidator(_distinct), Tag(LISTED)]
_Dtypes = Annotated[tuple[Annotated[str, AfterValidator(_dtype_or_all)], ...], Field(min_length=1), AfterValidator(_distinct), Tag(LISTED)]
_ONE_INT = {"type": "integer"}
_ALL_INTS = {"anyOf": [{"const": ALL}, _ONE_INT, {"type": "array", "items": _ONE_INT, "minItems": 1, "uniqueItems": True}]}
_ONE_DTYPE = {"enum": list(DTYPES)}
_ALL_DTYPES = {"anyOf": [{"enum": [ALL, *DTYPES]}, {"type": "array", "items": _ONE_DTYPE, "minItems": 1, "uniqueItems": True}]}
AllOrInts = Annotated[_All | _Ints, Discriminator(_kind), _Listed, WithJsonSchema(_ALL_INTS)]
AllOrDtypes = Annotated[_All | _Dtypes, Discriminator(_kind), _Listed, WithJsonSchema(_ALL_DTYPES)]
Shapes = Annotated[tuple[Shape, ...], Field(min_length=1), AfterValidator(_distinct)]
Alternatives = Annotated[tuple[_T, ...], Field(min_length=1), AfterValidator(_distinct), _OneOrMore()]
Kinds = Alternatives[_Name]
Elements = Annotated[Any, WithJsonSchema({"type": ["number", "string", "boolean", "array"]})]
"""Literal tensor elements: a scalar or nested tuples; `literals.to_array` gives them their meaning."""


class Strict(BaseModel):
    """Unknown keys and converted types are errors, and values are frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class LowersTo(Strict):
    """The providers' operators that we claim this operator becomes."""

    directml: Alternatives[Text]


class Tolerance(Strict):
    """How outputs are compared, and why that is right."""

    kind: Literal["exact"]
    because: Text


class CaseOptions(Strict):
    """How a literal case's graph is built and run; the same words as `records.Options`."""

    shapes: Literal["symbolic", "static"] = "symbolic"
    initializer: str | None = None
    in_place: bool = False
    optimization: Optimization = "off"
    neighbours: bool = False
    variant: _Name | None = None


class SweepOptions(Strict):
    """Alternatives for each option; a list or a single one."""

    shapes: Alternatives[Literal["symbolic", "static"]] = ("symbolic",)
    initializer: Alternatives[str | None] = (None,)
    in_place: Alternatives[bool] = (False,)
    optimization: Alternatives[Optimization] = ("off",)
    neighbours: Alternatives[bool] = (False,)
    variant: Alternatives[_Name | None] = (None,)


TensorName = Literal["InputTensor", "IndicesTensor", "OutputTensor"]
InputTensorName = Literal["InputTensor", "IndicesTensor"]
LayoutName = Literal["packed", "explicit", "padded", "stepped", "transposed", "broadcast", "broadcast_last", "zero"]
DimensionCount = Annotated[int, Field(ge=1, le=9)]
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
    """A literal case of DirectML's own API; the same words as `records.DirectmlOptions`."""

    operator: Text | None = None
    dimension_count: DimensionCount | None = None
    in_place: InputTensorName | None = None
    layout: dict[TensorName, LayoutName] = {}
    attributes: dict[Text, _Uint] = {}
    tensors: dict[TensorName, TensorMembers] = {}


class SweepDirectml(Strict):
    """Alternatives for what a sweep asks of DirectML's own API; `null` is what lowering chooses."""

    operator: Alternatives[Text | None] = (None,)
    dimension_count: Alternatives[DimensionCount | None] = (None,)
    in_place: Alternatives[InputTensorName | None] = (None,)
    layout: dict[TensorName, Alternatives[LayoutName]] = {}


class CaseInput(Strict):
    """One input of a literal case: its elements written out, or the name of a way to fill a shape."""

    dtype: Dtype
    values: Elements = None
    fill: _Name | None = None
    shape: Shape | None = None

    @model_validator(mode="after")
    def _one_source(self) -> CaseInput:
        if ("values" in self.model_fields_set) == ("fill" in self.model_fields_set):
            raise refuse("give exactly one of 'values' and 'fill'")
        if self.fill is not None and self.shape is None:
            raise refuse("'fill' needs a 'shape'")
        return self


class SweepInput(Strict):
    """The alternatives for one input. What `extent`, `outer`, `tuple` and `values` mean is the operator's to say."""

    dtype: AllOrDtypes
    shape: Shapes | None = None
    extent: Kinds | None = None
    outer: Shapes | None = None
    tuple_: AllOrInts | None = Field(default=None, alias="tuple")
    values: Kinds | None = None


class _Entry(Strict):
    """What literal cases and sweeps share."""

    name: _Name
    source: Text | None = None
    opsets: Opsets | None = None
    validity: Annotated[Validity, Field(strict=False)] = Validity.VALID
    rule: Text | None = None

    @model_validator(mode="after")
    def _rule_given(self) -> _Entry:
        if self.validity is Validity.VALID and self.rule is not None:
            raise refuse("'rule' says why a case is not valid, but its validity is 'valid'")
        if self.validity is not Validity.VALID and self.rule is None:
            broken = "which rule of the operator it breaks" if self.validity is Validity.INVALID else "what the sources leave open"
            raise refuse(f"an {self.validity.value} case needs a 'rule': {broken}")
        return self


class LiteralCase(_Entry):
    """One written-out case; `output` is the documented result."""

    attributes: dict[str, Integer] = {}
    inputs: Annotated[dict[str, CaseInput], Field(min_length=1)]
    output: Elements = None
    options: CaseOptions = CaseOptions()
    directml: CaseDirectml | None = None

    @property
    def documents_output(self) -> bool:
        """Say whether the case states its result."""
        return "output" in self.model_fields_set


class Sweep(_Entry):
    """A product of alternatives; a key that is none of the fields is an input of the operator."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, SweepInput] = Field(init=False)

    attributes: dict[str, AllOrInts] = {}
    options: SweepOptions = SweepOptions()
    directml: SweepDirectml | None = None

    @property
    def inputs(self) -> dict[str, SweepInput]:
        """The alternatives of each input that the sweep names."""
        return self.__pydantic_extra__


class Spec(Strict):
    """One spec file."""

    operator: Text
    opsets: Opsets
    lowers_to: LowersTo
    tolerance: Tolerance
    cases: tuple[LiteralCase, ...] = ()
    sweeps: tuple[Sweep, ...] = ()

    @model_validator(mode="after")
    def _not_empty(self) -> Spec:
        if not self.cases and not self.sweeps:
            raise refuse("a spec needs at least one entry in 'cases' or 'sweeps'")
        return self


def spec_json_schema() -> str:
    """Return the JSON Schema of a spec file, for editors, as the text of `docs/spec.schema.json`."""
    schema = {"$schema": DIALECT} | Spec.model_json_schema() | {"title": "Operator spec"}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    print(spec_json_schema(), end="")
