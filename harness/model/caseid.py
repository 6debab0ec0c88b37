"""Case ids: readable queries that name exactly one case, and the parser that reads an id back.

    GatherElements@13:sweep=dtype_rank;data=float16[3,4];indices=int64[3,2];axis=1;values=negative

An id is `operator@opset:` and `;`-separated `key=value` terms: the origin (`sweep` or `case`) with its name,
one term a tensor (`name=dtype[shape]`; `axes=int64{0,2}` or `k=int64(3)` for one whose elements decide
shapes), the attributes, the kinds of values, then the options that differ from their defaults. It never
depends on position.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from harness.model.case import DirectmlOptions, Options, TensorSpec, TensorValue, Value

MODEL_CALL, MODEL_REGION = "call_", "Region"
"""How the names of a model's calls, and of the graphs that are cut out of it, begin: entries speak of them as `case=call_*`
and `Region*`."""
_HEAD = re.compile(r"(?P<operator>[A-Za-z_][A-Za-z0-9_.]*)@(?P<opset>\d+):(?P<terms>.+)\Z")
_INPUT = re.compile(r"([a-z][a-z0-9]*)(?:\[([\d,]*)\]|([{(])([^;]*)[})])\Z")
_LIST = re.compile(r"\[([^;]*)\]\Z")
INTEGER = re.compile(r"-?\d{1,19}\Z")
_TERMS = 100_000
"""Terms that stay read: those of a run's cases repeat."""
_ENDS_A_VALUE = re.compile(r"[%;:=<>\s\x00-\x1f\x7f]")
"""What no value of a query may hold; an id writes it as in a URL, so that every id is a query."""


class CaseKey(NamedTuple):
    """An id in its parts, of any text: `GatherElements@13`, then what stands between semicolons behind the colon."""

    head: str
    terms: tuple[str, ...]

    @property
    def operator(self) -> str:
        return self.head.partition("@")[0]

    @property
    def opset(self) -> str:
        return self.head.partition("@")[2]

    @property
    def origin(self) -> str:
        """The first term: the sweep or the literal case that it is from."""
        return self.terms[0]

    @classmethod
    def of(cls, case_id: str) -> CaseKey:
        """Cut an id at its colon and semicolons; a text that is no id has parts too, and no error."""
        head, _, terms = case_id.partition(":")
        return cls(head, tuple(terms.split(";")))


class IdTerm(NamedTuple):
    """A term of an id. `dtype` is empty where it is no input; `shape` is that of an input whose elements the id does
    not state, `elements` are those of one whose elements it states, or of a list."""

    key: str
    value: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    elements: tuple[str, ...] | None = None
    scalar: bool = False

    @property
    def integers(self) -> tuple[int, ...] | None:
        """The elements as numbers; None where one is no integer, or none is stated."""
        if self.elements is None or not all(map(INTEGER.match, self.elements)):
            return None
        return tuple(map(int, self.elements))

    @property
    def integer(self) -> int | None:
        """The number that an attribute is given, None for any other value."""
        return int(self.value) if INTEGER.match(self.value) else None


@lru_cache(maxsize=_TERMS)
def read_term(term: str) -> IdTerm:
    """Split a term of an id into key and value; a text without `=` is a key, or a value without information, and no
    error."""
    key, _, value = term.partition("=")
    if found := _INPUT.match(value):
        dtype, shape, bracket, elements = found.groups()
        if bracket is None:
            return IdTerm(key, value, dtype, tuple(int(size) for size in shape.split(",") if size))
        scalar = bracket == "("
        return IdTerm(key, value, dtype, None, _split(elements, scalar), scalar)
    listed = _LIST.match(value)
    return IdTerm(key, value, elements=_split(listed[1], False) if listed else None)


def _split(elements: str, scalar: bool) -> tuple[str, ...]:
    return (elements,) if scalar else tuple(elements.split(",")) if elements else ()


def elements(case_id: str) -> int:
    """Count the elements of a case's inputs, as far as its id says."""
    terms = map(read_term, case_id.partition(":")[2].split(";"))
    return sum(
        len(term.elements or ()) if term.shape is None else math.prod(term.shape)
        for term in terms
        if term.dtype
    )


def operator_of(case_id: str) -> str:
    """Return the operator that an id begins with."""
    return case_id.partition("@")[0]


class TensorTerm(NamedTuple):
    """A tensor as an id names it."""

    dtype: str
    shape: tuple[int, ...]


class ParsedId(NamedTuple):
    """The parts of an id: `terms` keeps every `key=value` in order, `tensors` are the terms that name a
    tensor."""

    operator: str
    opset: int
    terms: dict[str, str]
    tensors: dict[str, TensorTerm]

    def dtypes(self) -> Iterator[tuple[str, str]]:
        """Yield the name and element type of every input, those whose elements stand in the id too."""
        for name, value in self.terms.items():
            if dtype := read_term(f"{name}={value}").dtype:
                yield name, dtype


def tensor_term(name: str, dtype: str, shape: tuple[int, ...]) -> str:
    """Write one tensor as an id does: `data=float16[3,4]`, a scalar as `x=float32[]`."""
    return f"{name}={dtype}[{','.join(map(str, shape))}]"


def input_term(spec: TensorSpec) -> str:
    """Write one input as an id does: its shape, or the elements of one that decides shapes."""
    if spec.elements is None:
        return tensor_term(spec.name, spec.dtype, spec.shape)
    written = elements_text(spec.elements)
    return f"{spec.name}={spec.dtype}{{{written}}}" if spec.shape else f"{spec.name}={spec.dtype}({written})"


def value_text(value: Value) -> str:
    """Write the value of an attribute: `1`, `0.5`, `linear`, `[0,2]`, `float32{1.5}`, a tensor of several dimensions
    as `float32[2,1]{1.5,2.5}`, a sparse one as `float32[2,9]{1.5}at{4}`. Characters that no query may hold are
    percent-encoded, Einsum's `->` as `-%3E`."""
    if isinstance(value, TensorValue):
        written = elements_text(value.elements)
        if len(value.shape) > 1 or value.indices is not None:
            places = "" if value.indices is None else f"at{value_text(value.indices).removeprefix('int64')}"
            return f"{tensor_term('', value.dtype, value.shape)[1:]}{{{written}}}{places}"
        return f"{value.dtype}{{{written}}}" if value.shape else f"{value.dtype}({written})"
    if isinstance(value, tuple):
        return f"[{elements_text(value)}]"
    return _element_text(value)


def elements_text(elements: tuple[object, ...]) -> str:
    """Write elements with commas between."""
    return ",".join(map(_element_text, elements))


def _element_text(element: object) -> str:
    if type(element) is int:
        return str(element)
    if isinstance(element, bool):
        return "true" if element else "false"
    return _ENDS_A_VALUE.sub(lambda found: f"%{ord(found[0]):02X}", str(element))


@lru_cache(maxsize=1024)
def option_terms(options: Options) -> str:
    """Write the options that differ from their defaults as terms of an id."""
    default = Options()
    terms = []
    for name in Options.__struct_fields__:
        value = getattr(options, name)
        if value != getattr(default, name):
            terms.append(f";{name}={'true' if value is True else value}")
    return "".join(terms)


def directml_terms(options: DirectmlOptions | None) -> str:
    """Write the part of an id that concerns DirectML's own API; the case's name identifies the replaced
    members."""
    if options is None:
        return ""
    terms = [";api=directml"]
    for name in ("operator", "dimension_count", "in_place"):
        value = getattr(options, name)
        if value is not None:
            terms.append(f";{name}={value}")
    terms.extend(f";layout.{tensor}={layout}" for tensor, layout in options.layout)
    return "".join(terms)


def parse(case_id: str) -> ParsedId:
    """Take an id apart; raise ValueError for a text that is not one."""
    head = _HEAD.match(case_id)
    if head is None:
        raise ValueError(f"not a case id: {case_id!r}")
    terms: dict[str, str] = {}
    tensors: dict[str, TensorTerm] = {}
    for term in head["terms"].split(";"):
        key, equals, value = term.partition("=")
        if not equals or not key or key in terms:
            raise ValueError(f"not a case id: {case_id!r}: bad term {term!r}")
        terms[key] = value
        read = read_term(term)
        if read.shape is not None:
            tensors[key] = TensorTerm(read.dtype, read.shape)
    return ParsedId(head["operator"], int(head["opset"]), terms, tensors)
