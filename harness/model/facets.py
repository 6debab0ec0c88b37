"""Properties of a case, read from its id, by which tables group; and which of them a group of results has, as far as a
table shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from harness.model.caseid import read_term

DTYPE_ORDER = (
    "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
    "float4e2m1", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "string",
)  # fmt: skip
"""Element types in the order of rows: kind, then width."""

_MEMORY = 50_000
_VARIANT = ";variant="
_STATED = "{}"
"""Ends what `Facets.types` says of an input whose elements stand in the id."""
_Input = tuple[str, str, int, bool]
"""Name, element type and rank of an input, and whether the id states its elements."""


@lru_cache(maxsize=_MEMORY)
def _input(part: str) -> _Input | None:
    """Return the facts about an input in a part of an id, None if the part does not describe an input."""
    term = read_term(part)
    if not term.dtype:
        return None
    rank = len(term.shape) if term.shape is not None else int(not term.scalar)
    return term.key, term.dtype, rank, term.shape is None


class Facets(NamedTuple):
    """`rank` is -1 and the element types are empty where the id does not say.

    `dtype` and `rank` are those of the first input, `types` names the element types of all others in their
    order, as `Tind=int64 B=float32` with `{}` behind one whose elements the id states; inputs of one list
    (`x.0`, `x.1`) stand as one. `telling` says which of them matter.
    """

    operator: str
    opset: int
    dtype: str
    rank: int
    types: str
    variant: str
    """What is computed in place of the operator alone, such as another rounding mode; empty for the operator
    itself."""

    def others(self) -> Iterator[tuple[str, str, bool]]:
        """Yield name and element type of each input but the first, and whether the id states its elements."""
        for part in self.types.split():
            name, _, dtype = part.partition("=")
            yield name, dtype.removesuffix(_STATED), dtype.endswith(_STATED)

    def shown(self, names: Collection[str]) -> Facets:
        """Keep only the types of the named inputs, without saying whether their elements are stated."""
        if not self.types:
            return self
        return self._replace(
            types=" ".join(f"{name}={dtype}" for name, dtype, _ in self.others() if name in names)
        )


def facets(case_id: str) -> Facets:
    """Read the facets of a case from its id.

    Costs a fraction of `caseid.parse`, because every result of a run passes through here; a text that is no
    id has few facets and no error.
    """
    head, _, rest = case_id.partition(":")
    known = _of(head, tuple(filter(None, map(_input, rest.split(";")))))
    if _VARIANT in case_id:
        return known._replace(variant=case_id.partition(_VARIANT)[2].partition(";")[0])
    return known


@lru_cache(maxsize=_MEMORY)
def _of(head: str, inputs: tuple[_Input, ...]) -> Facets:
    """Make facets of operator and opset and of the inputs, which many cases share."""
    operator, _, number = head.partition("@")
    dtype, rank = "", -1
    others: dict[str, dict[str, None]] = {}
    for name, kind, dimensions, stated in inputs:
        listed, _, place = name.partition(".")
        if not dtype:
            dtype, rank, first = kind, dimensions, listed
        elif not (place and listed == first and kind == dtype):
            others.setdefault(listed, {})[kind + (_STATED if stated else "")] = None
    types = " ".join(f"{name}={'+'.join(kinds)}" for name, kinds in others.items())
    return Facets(operator, int(number) if number.isdecimal() else 0, dtype, rank, types, "")


def telling(found: Iterable[Facets]) -> dict[str, frozenset[str]]:
    """Return by operator the inputs whose element types say something that the first one's does not, from the
    facets of valid cases.

    An input that always has the type of the first shares its type parameter; one whose elements are stated
    (`axes`) has only one type in most operators, and tells where it has several.
    """
    kinds: dict[tuple[str, str], set[str]] = {}
    unlike: dict[tuple[str, str], bool] = {}
    for each in found:
        for name, dtype, stated in each.others():
            key = each.operator, name
            kinds.setdefault(key, set()).add(dtype)
            if dtype != each.dtype:
                unlike[key] = unlike.get(key, True) and stated
    names_of: dict[str, set[str]] = {}
    for (operator, name), always_stated in unlike.items():
        if not always_stated or len(kinds[operator, name]) > 1:
            names_of.setdefault(operator, set()).add(name)
    return {operator: frozenset(names) for operator, names in names_of.items()}


def written(types: Iterable[str]) -> str:
    """Write the element types of further inputs that occur together or in turn: `Tind=int32, int64;
    B=float16`."""
    found: dict[str, dict[str, None]] = {}
    for each in types:
        for part in each.split():
            name, _, dtype = part.partition("=")
            found.setdefault(name, {})[dtype] = None
    return "; ".join(f"{name}={', '.join(sorted(dtypes, key=dtype_key))}" for name, dtypes in found.items())


def dtype_key(dtype: str) -> tuple[int, str]:
    """Sort key of an element type; unknown ones come last, by name."""
    return (DTYPE_ORDER.index(dtype) if dtype in DTYPE_ORDER else len(DTYPE_ORDER), dtype)


_NAMED = 6


@dataclass(kw_only=True)
class Spread:
    """How many results, and the opsets, element types and ranks that occur among them."""

    number: int = 0
    opsets: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)

    def count(self, read: Facets, number: int = 1) -> None:
        """Take one more result, or a number of them."""
        self.number += number
        self.opsets.add(read.opset)
        self.ranks.add(read.rank)
        if read.dtype:
            self.dtypes.add(read.dtype)

    def which(self, operator: str) -> str:
        """Write which cases: `Round 11, 22, float16, float32`."""
        named = sorted(self.dtypes, key=dtype_key)
        shown = ", ".join(named) if len(named) <= _NAMED else f"{len(named)} element types"
        return f"{operator} {', '.join(map(str, sorted(self.opsets)))}" + (f", {shown}" if shown else "")
