"""A sweep as a spec file writes it: alternatives for everything that a case says, and how it covers their
interactions.
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
)
from pydantic_core import CoreSchema

from harness.model.case import After, LeftOut, Optimization, Optionals, Shapes
from harness.specs.reading.entry_schema import DimensionCount, LayoutName, SpecEntry, TensorName
from harness.specs.reading.schema_types import (
    AllOrDtypes,
    Alternatives,
    AttributeValue,
    Kinds,
    Name,
    Opsets,
    OutputNames,
    Relation,
    Strict,
    Text,
)


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


class Sweep(SpecEntry):
    """Alternatives for every part of a case; a key that is no field is an input of the operator.

    Of their product either all is kept, or with `cover` few cases that show every pair of alternatives together, at
    most `budget`.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, SweepInput] = Field(init=False)

    attributes: dict[str, AttributeValue] = {}
    cover: Cover | None = None
    budget: Annotated[int, Field(ge=1)] = 1000
    options: SweepOptions = SweepOptions.model_construct()
    directml: SweepDirectml | None = None

    @property
    def inputs(self) -> dict[str, SweepInput]:
        """The alternatives of each input that the sweep names."""
        return self.__pydantic_extra__


class Use(Strict):
    """The sweeps of a family; the other keys given here hold for each of them."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, SweepInput] = Field(init=False)

    use: Name
    without: Alternatives[Name] = ()
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
