"""DirectML's operators as Microsoft's reference documents them: `data/directml_operators.json`.

A table holds from its feature level until a higher level has another one. Levels are written `2_1`, data
types as in DML_TENSOR_DATA_TYPE without its prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from harness.model.reference.files import data_file, file_bytes

_FILE = "directml_operators.json"
PREFIX = "DML_OPERATOR_"

TENSORS = frozenset({"input", "output", "inputs", "outputs"})
"""The types of members that are tensors; the last two are arrays of tensors."""


class Member(msgspec.Struct, frozen=True):
    """A member of an operator's structure.

    `type` is one of `input`, `output`, `inputs`, `outputs` (tensors, arrays of tensors), `uint` (also
    enumerations and BOOL), `int`, `float`, `uint_array`, `int_array`, `float_array`, `scale_bias`,
    `scalar_union`, `size_2d`, `operator_desc`, `operator_desc_array`. `optional` ones may be NULL; `count`
    names the member that says how many elements an array has.
    """

    name: str
    type: str
    optional: bool = False
    count: str | None = None

    @property
    def is_tensor(self) -> bool:
        """Say whether the member is a tensor or an array of them."""
        return self.type in TENSORS


class TensorSupportEntry(msgspec.Struct, frozen=True):
    """A table's row for a tensor: minimum and maximum DimensionCount and data types; () if the document gives
    none.

    `kind` is `input`, `output`, `optional_input`, `optional_output`, `inputs` or `outputs`; `shape` the names
    of its dimensions, where the document prints them.
    """

    kind: str
    dims: tuple[int, int]
    dtypes: tuple[str, ...]
    shape: str | None = None


Table = dict[str, TensorSupportEntry]
"""What a level allows, by tensor."""


class ByValue(msgspec.Struct, frozen=True):
    """Tables that hold for some values of a member."""

    member: str
    values: tuple[int, ...]
    tables: dict[str, Table]


class Constraint(msgspec.Struct, frozen=True):
    """Tensors that must agree in `dtype`, `dimension_count` or `sizes`."""

    same: tuple[str, ...]
    of: tuple[str, ...]


class DirectmlOperator(msgspec.Struct, frozen=True):
    """An operator: its DML_OPERATOR_TYPE, the level that introduced it, its structure and its tables.

    `tables` are by level, lowest first; where they differ by the value of a member they stand in `by_value`.
    `in_place` names the inputs that the output may be bound over; `any`: every input; `see document`; None:
    the document does not allow it. `document` is the page, with the commit that it was read at.
    """

    number: int
    introduced: str
    members: tuple[Member, ...]
    document: str
    tables: dict[str, Table] = {}
    by_value: tuple[ByValue, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    in_place: tuple[str, ...] | str | None = None

    @property
    def tensors(self) -> tuple[Member, ...]:
        """The members that are tensors, in the order in which buffers are bound."""
        return tuple(member for member in self.members if member.is_tensor)

    def tables_for(self, attributes: Mapping[str, object]) -> dict[str, Table]:
        """Return the tables by level that hold for these values of members; {} where the document has none
        for them."""
        for each in self.by_value:
            if attributes.get(each.member) in each.values:
                return each.tables
        return self.tables

    def all_tables(self) -> tuple[dict[str, Table], ...]:
        """Return the tables of every value."""
        return (self.tables, *(each.tables for each in self.by_value))

    @property
    def table_levels(self) -> frozenset[str]:
        """The levels at which a table is introduced or changes."""
        return frozenset(level for tables in self.all_tables() for level in tables)


@cache
def operator_names() -> tuple[str, ...]:
    """Return every documented operator (`DML_OPERATOR_…`), in the order of the alphabet."""
    return tuple(data_file(_FILE).operators)


@cache
def directml_operator(name: str) -> DirectmlOperator:
    """Return the documentation of an operator. Errors: KeyError if it has no document."""
    return msgspec.json.decode(data_file(_FILE).operators[name], type=DirectmlOperator)


class Sources(msgspec.Struct, frozen=True):
    """Where the facts were read: repositories with their commits, by a short name."""

    sources: dict[str, str]
    licence: str


@cache
def sources() -> Sources:
    """Return where the documents and structures were read."""
    return msgspec.json.decode(file_bytes(_FILE), type=Sources)
