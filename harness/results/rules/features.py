"""Features of a case, read from its id and packaged facts: the vocabulary of rules that separate failing from
passing cases.

A feature is a column with an integer or a word: `opset`, `data` (an element type), `data.rank`, `axis`,
`batch_sizes`. ONNX's defaults and the options that an id leaves out are filled in. Columns without a tensor's
name (`dtype`, `rank`, `elements`) refer to the first input, so that a rule can hold for several operators. A
list, or an input whose elements the id contains, is a column with these elements as text, with `axes.count`,
`axes.first` and the like beside it; a scalar is a column with its value. `names_asked` and `numbers_asked` give the columns
that a query can select: as the id says it, without defaults and derived numbers.
"""

from __future__ import annotations

import re
from functools import cache
from math import prod

from harness.model.case import Options
from harness.model.caseid import CaseKey, read_term
from harness.results.rules.facts import facts, tuples
from harness.results.rules.relations import Shape, Value, relations, yes

ABSENT = ""
"""A word column that a case does not have."""

_REAL = re.compile(r"[-+]?(\d+\.\d*(e[-+]?\d+)?|\d+e[-+]?\d+|inf)\Z")
_KINDS = {"int": "signed", "uint": "unsigned", "bfloat": "float"}
_BITS = {"bool": 8, "string": 0}
_OPTIONS = Options.__struct_fields__
HAS = "has."
"""Begins the columns that say whether an id names an option."""
_ASKED = re.compile(r"[^;:=<>\s*?]+\Z")
"""What a query can ask for as it stands."""
_DEFAULT = ":"
"""Ends the key of a term that the id leaves out: what ONNX defaults to."""


def split(case_id: str) -> tuple[str, str]:
    """Part an id into what shapes and numbers say and what names say; each half is shared by many cases, and
    both give the features."""
    key = CaseKey.of(case_id)
    names, numbers = [key.head], [key.operator]
    for term in (*key.terms, *_left_out(key)):
        name, number = _halves(term)
        if name:
            names.append(name)
        if number:
            numbers.append(number)
    return ";".join(numbers), ";".join(names)


def _left_out(key: CaseKey) -> tuple[str, ...]:
    """Return terms for the attributes that an id leaves to their defaults, and for the inputs that it
    omits."""
    if not key.opset.isdecimal():
        return ()
    known = facts(key.operator, int(key.opset))
    given = {term.partition("=")[0] for term in key.terms}
    listed = {name.partition(".")[0] for name in given}
    missing = [f"{name}{_DEFAULT}={value}" for name, value in known.defaults.items() if name not in given]
    omitted = [name for name in known.inputs if name not in listed]
    return (*missing, f"omitted{_DEFAULT}={','.join(omitted)}") if omitted else tuple(missing)


@cache
def _halves(term: str) -> tuple[str, str]:
    read = read_term(term)
    if read.shape is not None:
        return f"{read.key}={read.dtype}[]", f"{read.key}={read.value[len(read.dtype) :]}"
    if read.elements is not None:
        stated = f"{read.key}={read.dtype}{'(' if read.scalar else '{'}" if read.dtype else ""
        return stated, f"{read.key}:{read.value}"
    return (term, "") if read.integer is None else ("", term)


def features(case_id: str) -> dict[str, Value]:
    """Return every feature of a case by column; a text that is no id has few."""
    numbers, names = split(case_id)
    return {**of_numbers(numbers), **of_names(names)}


def of_names(half: str) -> dict[str, Value]:
    """Features of the half of an id that holds names: operator, opset, element types, kinds of values,
    options."""
    head, *terms = half.split(";")
    operator, _, opset = head.partition("@")
    found: dict[str, Value] = {
        "operator": operator,
        "sweep": ABSENT,
        "case": ABSENT,
        "omitted": "none",
        **_defaults(),
    }
    if opset.isdecimal():
        found["opset"] = int(opset)
    first = True
    for term in terms:
        key, _, value = term.partition("=")
        key = key.removesuffix(_DEFAULT)
        stated = value.endswith(("{", "("))
        if not stated and not value.endswith("[]"):
            found[column_of(key)] = value
            if _REAL.match(value):
                found[f"{key}.sign"] = _sign(float(value))
            continue
        dtype = value[:-1] if stated else value[:-2]
        for prefix, column in (
            (f"{key}.", f"{key}.dtype" if stated else key),
            *((("", "dtype"),) if first else ()),
        ):
            found[column] = dtype
            found[f"{prefix}kind"], found[f"{prefix}bits"] = _kind(dtype)
        first = False
    return found


def column_of(key: str) -> str:
    """The column of a term of an id: `operator=DML_OPERATOR_…` names DirectML's operator, not the case's."""
    return f"call.{key}" if key == "operator" else key


@cache
def _kind(dtype: str) -> tuple[str, int]:
    family = dtype.rstrip("0123456789")
    bits = dtype[len(family) :]
    return _KINDS.get(family, family), int(bits) if bits else _BITS.get(family, 0)


@cache
def _defaults() -> dict[str, str]:
    default = Options()
    return {name: _word(getattr(default, name)) for name in Options.__struct_fields__}


def _word(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def of_numbers(half: str) -> dict[str, Value]:
    """Features of the half of an id that holds shapes and numbers: ranks, extents, attributes, and how these
    relate."""
    operator, *terms = half.split(";")
    found: dict[str, Value] = {}
    shapes: dict[str, Shape] = {}
    numbers: dict[str, int] = {}
    lists: dict[str, tuple[int, ...]] = {}
    counts: dict[str, int] = {}
    for term in terms:
        key, equals, value = term.partition("=")
        if ":" in key.removesuffix(_DEFAULT) or not equals:
            key, _, value = term.partition(":")
            found.update(_of_elements(key, value, numbers, lists))
        elif value.startswith("["):
            shape = tuple(int(size) for size in value[1:-1].split(",") if size)
            for prefix in (f"{key}.", *(() if shapes else ("",))):
                found.update((prefix + name, feature) for name, feature in _of_shape(shape).items())
            shapes[key] = shape
            listed, _, place = key.partition(".")
            if place:
                counts[listed] = counts.get(listed, 0) + 1
        else:
            numbers[key.removesuffix(_DEFAULT)] = int(value)
    found.update((f"{name}.count", count) for name, count in counts.items())
    found.update(relations(shapes, numbers, lists, tuples(operator)))
    found.update(numbers)
    return found


def _of_elements(
    key: str, value: str, numbers: dict[str, int], lists: dict[str, tuple[int, ...]]
) -> dict[str, Value]:
    """Read `[0,2]`, `int64{0,2}` or `int64(3)`; integers join the attributes that relations speak of."""
    term = read_term(f"{key}={value}")
    elements, given = term.elements or (), term.integers
    text = ",".join(elements)
    if term.scalar:
        if given is not None:
            numbers[key] = given[0]
            return {}
        return {key: text, **({f"{key}.sign": _sign(float(text))} if _REAL.match(text) else {})}
    found: dict[str, Value] = {key: f"[{text}]", f"{key}.count": len(elements)}
    if given is not None:
        lists[key] = given
        found[f"{key}.negative"] = yes(any(each < 0 for each in given))
        if given:
            found |= {
                f"{key}.first": given[0],
                f"{key}.last": given[-1],
                f"{key}.smallest": min(given),
                f"{key}.largest": max(given),
            }
    return found


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _of_shape(shape: Shape) -> dict[str, Value]:
    found: dict[str, Value] = {
        "rank": len(shape),
        "elements": prod(shape),
        "shape": f"[{','.join(map(str, shape))}]",
    }
    found["multiple_of_4"] = yes(found["elements"] != 0 and prod(shape) % 4 == 0)
    found["empty"] = yes(0 in shape)
    if shape:
        found.update(first=shape[0], last=shape[-1], smallest=min(shape), largest=max(shape))
        found["has_extent_1"] = yes(1 in shape)
    return found


FIRST_INPUT = frozenset({"dtype", "kind", "bits", *_of_shape((1,))})
"""The columns that speak of the first input, whatever it is called."""


def names_asked(half: str) -> dict[str, Value]:
    """Features of the half of an id that holds names; see `split`."""
    head, *terms = half.split(";")
    operator, _, opset = head.partition("@")
    found: dict[str, Value] = {
        "operator": operator,
        "opset": f"@{opset}",
        **{f"{HAS}{name}": "no" for name in _OPTIONS},
    }
    for term in terms:
        key, _, value = term.partition("=")
        if key.endswith(_DEFAULT) or value.endswith(("{", "(")) or not _ASKED.match(value):
            continue  # the id does not say it, the other half says it whole, or a query cannot
        found[column_of(key)] = value.removesuffix("[]")
        if key in _OPTIONS:
            found[f"{HAS}{key}"] = "yes"
    return found


def numbers_asked(half: str) -> dict[str, Value]:
    """Features of the half of an id that holds shapes and integers."""
    found: dict[str, Value] = {}
    for term in half.split(";")[1:]:
        key, _, value = term.partition("=")
        if key.endswith(_DEFAULT):
            continue
        stated, colon, elements = term.partition(":")
        if colon:
            if _ASKED.match(elements):
                found[stated] = elements
            continue
        if not value.startswith("["):
            found[key] = int(value)
            continue
        sizes = value[1:-1].split(",") if len(value) > 2 else []
        found[f"{key}.rank"] = len(sizes)
        found[f"{key}.shape"] = value
        if len(sizes) > 1:
            stars = ",".join(["*"] * (len(sizes) - 1))
            found[f"{key}.begins"] = f"[{sizes[0]},{stars}]"
            found[f"{key}.ends"] = f"[{stars},{sizes[-1]}]"
    return found
