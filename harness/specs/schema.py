"""The format of a spec file as types. `load` checks what ONNX knows of an operator, `expand` what a sweep
expands to.

Field names are the YAML's keys. Sequences are tuples, single values where a list is allowed are tuples of
one, and everything is frozen.
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

from harness.model.dtypes import DTYPES
from harness.model.records import Optimization, Shapes, Validity
from harness.specs.literals import shape_problem
from harness.specs.source import shown

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
        return core_schema.no_info_before_validator_function(
            lambda v: v if isinstance(v, tuple) else (v,), handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
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
Opsets = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1), AfterValidator(_sorted_opsets)
]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
_All = Annotated[Literal["all"], Tag("<all>")]
_Dtypes = Annotated[
    tuple[Annotated[str, AfterValidator(_dtype_or_all)], ...],
    Field(min_length=1),
    AfterValidator(_distinct),
    Tag(LISTED),
]
_OPSETS = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1}
_ONE_DTYPE = {"enum": list(DTYPES)}
_ALL_DTYPES = {
    "anyOf": [
        {"enum": [ALL, *DTYPES]},
        {"type": "array", "items": _ONE_DTYPE, "minItems": 1, "uniqueItems": True},
    ]
}
AllOrOpsets = Annotated[
    _All | Annotated[Opsets, Tag(LISTED)],
    Discriminator(_kind),
    WithJsonSchema({"anyOf": [{"const": ALL}, _OPSETS]}),
]
AllOrDtypes = Annotated[_All | _Dtypes, Discriminator(_kind), _Listed, WithJsonSchema(_ALL_DTYPES)]
Alternatives = Annotated[tuple[_T, ...], Field(min_length=1), AfterValidator(_distinct), _OneOrMore()]
Kinds = Alternatives[_Name]
Elements = Annotated[Any, WithJsonSchema({"type": ["number", "string", "boolean", "array"]})]
"""Literal tensor elements: a scalar or nested tuples; `literals.to_array` gives them their meaning."""
_VALUE = {"type": ["number", "string", "boolean", "array", "object", "null"]}
AttributeValue = Annotated[Any, WithJsonSchema(_VALUE)]
"""The value of an attribute, or alternatives for it; `attribute_values` gives it its meaning, by the type
that ONNX says."""
OMITTED = "omitted"
"""Stands in place of a shape for an optional input that is left out."""


def _relation(shape: object) -> object:
    """Check what stands under `shape:` of a sweep: shapes and words, or a mapping of an operator's own keys
    to alternatives."""
    if isinstance(shape, dict):
        for key, given in shape.items():
            if given is None or given == ():
                raise refuse(f"{key!r} must not be empty")
        return shape
    listed = shape if isinstance(shape, tuple) else (shape,)
    if not listed:
        raise refuse("must not be empty")
    for each in listed:
        if isinstance(each, tuple):
            for extent in each:
                if type(extent) is not int:
                    raise refuse(f"should be an integer, not {shown(extent)}")
                if extent < 0:
                    raise refuse(f"{extent} is below the least allowed, 0")
            _shape(each)
        elif not isinstance(each, str):
            raise refuse(f"should be a shape such as [2, 3], or a word, not {shown(each)}")
    return _distinct(listed)


_RELATION = {
    "anyOf": [{"type": "array", "minItems": 1}, {"type": "string"}, {"type": "object", "minProperties": 1}]
}
Relation = Annotated[Any, AfterValidator(_relation), WithJsonSchema(_RELATION)]


class Strict(BaseModel):
    """Unknown keys and converted types are errors, and values are frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class LowersTo(Strict):
    """The providers' operators that we claim this operator becomes."""

    directml: Alternatives[Text]


class CaseOptions(Strict):
    """How a literal case's graph is built and run; the same words as `records.Options`."""

    shapes: Shapes = "symbolic"
    initializer: str | None = None
    in_place: bool = False
    optimization: Optimization = "off"
    neighbours: bool = False
    variant: _Name | None = None
    outputs: Annotated[int, Field(ge=1, le=64)] | None = None


class SweepOptions(Strict):
    """Alternatives for each option; a list or a single one."""

    shapes: Alternatives[Shapes] = ("symbolic",)
    initializer: Alternatives[str | None] = (None,)
    in_place: Alternatives[bool] = (False,)
    optimization: Alternatives[Optimization] = ("off",)
    neighbours: Alternatives[bool] = (False,)
    variant: Alternatives[_Name | None] = (None,)
    outputs: Alternatives[Annotated[int, Field(ge=1, le=64)] | None] = (None,)


TensorName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$")]
LayoutName = Literal[
    "packed", "explicit", "padded", "stepped", "transposed", "broadcast", "broadcast_last", "zero"
]
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
    in_place: TensorName | None = None
    layout: dict[TensorName, LayoutName] = {}
    attributes: dict[Text, AttributeValue] = {}
    tensors: dict[TensorName, TensorMembers] = {}


class SweepDirectml(Strict):
    """Alternatives for what a sweep asks of DirectML's own API; `null` is what lowering chooses."""

    operator: Alternatives[Text | None] = (None,)
    dimension_count: Alternatives[DimensionCount | None] = (None,)
    in_place: Alternatives[TensorName | None] = (None,)
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


CaseInputs = Annotated[tuple[CaseInput, ...], Field(min_length=1), _OneOrMore()]


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
    """How a sweep covers the interactions of its factors: all that can be chosen independently.

    `alone` are levels that some target may refuse whatever else a case has: a case with one of them shows no
    other interaction. Of an invalid sweep each case has one `illegal` level, which breaks the sweep's rule, and
    no other. Strength 1 shows each level once: for a factor of which the sweep has only one.
    """

    strength: Literal[1, 2, 3] = 2
    alone: Levels = {}
    illegal: Levels = {}
    forbid: tuple[Forbidden, ...] = ()


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
            broken = (
                "which rule of the operator it breaks"
                if self.validity is Validity.INVALID
                else "what the sources leave open"
            )
            raise refuse(f"an {self.validity.value} case needs a 'rule': {broken}")
        return self


class LiteralCase(_Entry):
    """One written-out case; `output` is the documented result, `outputs` are several by their names; a
    variadic input is a list."""

    attributes: dict[str, AttributeValue] = {}
    inputs: dict[str, CaseInputs]
    output: Elements = None
    outputs: dict[str, Elements] = {}
    options: CaseOptions = CaseOptions()
    directml: CaseDirectml | None = None

    @property
    def documents_output(self) -> bool:
        """Say whether the case states its result."""
        return "output" in self.model_fields_set


class Sweep(_Entry):
    """Alternatives for everything that a case says; a key that is none of the fields is an input of the
    operator.

    Of their product either all is kept, or as many cases as show every pair of alternatives together, at most
    `budget`; with `cover` the sweep chooses every factor of its own.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, SweepInput] = Field(init=False)

    attributes: dict[str, AttributeValue] = {}
    select: Literal["all", "pairwise"] = "all"
    cover: Cover | None = None
    budget: Annotated[int, Field(ge=1)] = 1000
    options: SweepOptions = SweepOptions()
    directml: SweepDirectml | None = None

    @property
    def inputs(self) -> dict[str, SweepInput]:
        """The alternatives of each input that the sweep names."""
        return self.__pydantic_extra__


class Use(Strict):
    """The sweeps of a family; what is given here beside it holds for each of them."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, SweepInput] = Field(init=False)

    use: _Name
    without: Alternatives[_Name] = ()
    opsets: Opsets | None = None
    attributes: dict[str, AttributeValue] = {}
    budget: Annotated[int, Field(ge=1)] | None = None

    @property
    def inputs(self) -> dict[str, SweepInput]:
        """What is given of inputs."""
        return self.__pydantic_extra__


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


class Spec(Strict):
    """One spec file; `opsets: all` are the versions of the operator that opset 7 or a later one uses."""

    operator: Text
    opsets: AllOrOpsets
    lowers_to: LowersTo | None = None
    because: Text | None = None
    cases: tuple[LiteralCase, ...] = ()
    sweeps: tuple[SweepEntry, ...] = ()

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
