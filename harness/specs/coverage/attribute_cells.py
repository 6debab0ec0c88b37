"""Counts which cells of an operator have a case: element type × rank × attribute value, each with its feature level.

Types are those that ONNX's schemas allow for the first input, ranks those that a case has or a table of DirectML
documents, values the words below. A cell counts as covered by a valid or an unspecified case; one
whose call breaks a rule of the operator is impossible.

A word stands for values of an attribute and can be a row of a table. An attribute that ONNX gives a few values has
these; one that names a dimension `first`, `middle`, `last` and `negative`; any other `default` and `other`, or
`left out` and `given`. An input that decides shapes counts as the attribute that it is at other opsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

from harness.model.case import BEYOND, Case, Validity
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES
from harness.model.onnx_schemas import operator_schema
from harness.model.operator_schema import Attribute, OperatorSchema
from harness.model.reference.directml import PREFIX, directml_operator
from harness.model.reference.feature_levels import documented_tensor, level_key, load
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, TensorType
from harness.results.rules.facts import roles
from harness.specs.coverage.coverage import Levels
from harness.specs.selection import Selection
from harness.specs.sweeps.calls import call_of, make_call

_DIMENSION = ("first", "middle", "last", "negative")
_NEEDED = {"first": 1, "last": 2, "middle": 3, "negative": 1}
"""The least rank at which a word of a dimension says something of its own."""
LEFT_OUT, GIVEN, NEGATIVE = "left out", "given", "negative"
Word = tuple[str, str]
"""An attribute and one of its words."""


@cache
def documented_values(operator: str, attribute: str) -> tuple[str, ...]:
    """Return the values that ONNX documents for an attribute, () where they cannot be listed."""
    known = load("attribute_values.yaml")
    if attribute in known["flags"]:
        return "0", "1"
    values = known["values"]
    return tuple(values.get(f"{operator}.{attribute}", values.get(attribute, ())))


@lru_cache(maxsize=1024)
def possible_words(name: str, opset: int) -> tuple[Word, ...]:
    """Return every word of the attributes of an operator at an opset; of an attribute with a single word none."""
    operator, schema = OPERATORS[name], operator_schema(name, opset)
    found: list[Word] = []
    for attribute, described in schema.attributes.items():
        words = tuple(_words(name, schema, attribute, described))
        found += [(attribute, word) for word in words if len(words) > 1]
    for parameter in schema.inputs:
        if parameter.name in operator.constants:
            words = (LEFT_OUT, GIVEN) if parameter.optional else (GIVEN,)
            words += (NEGATIVE,) if roles().get(parameter.name) in ("dimension", "dimensions") else ()
            found += [(parameter.name, word) for word in words if len(words) > 1]
    return tuple(found)


def _words(operator: str, schema: OperatorSchema, name: str, attribute: Attribute) -> Iterator[str]:
    optional = attribute.default is None and not attribute.required
    if values := documented_values(operator, name):
        yield from values
    elif name in load("attribute_values.yaml")["types"]:
        yield from (each for each in schema.outputs[0].wide if each in DTYPES)
    elif roles().get(name) == "dimension":
        yield from ((LEFT_OUT, *_DIMENSION) if optional else _DIMENSION)
    elif attribute.default is not None:
        yield from ("default", "other")
    else:
        yield from (*((LEFT_OUT,) if optional else ()), GIVEN)
        if roles().get(name) == "dimensions":
            yield NEGATIVE


def has_meaning(word: Word, rank: int) -> bool:
    """Say whether a first input of this rank can show a word."""
    return roles().get(word[0]) not in ("dimension", "dimensions") or rank >= _NEEDED.get(word[1], 0)


def value_of(attribute: str, word: str, rank: int) -> int | None:
    """Return the value that a word stands for with a first input of this rank, where it is legal or not whatever
    the other attributes are; None for any other word."""
    if attribute in load("attribute_values.yaml")["types"]:
        return DTYPES[word].onnx
    if roles().get(attribute) == "dimension" and word in _DIMENSION:
        return {"first": 0, "middle": 1, "last": max(rank - 1, 0), NEGATIVE: -1}[word]
    return None


def shown_words(operator: Operator, call: Call) -> frozenset[Word]:
    """Return the words that a call shows."""
    schema = operator_schema(operator.name, call.opset)
    found: set[Word] = set()
    for name, attribute in schema.attributes.items():
        found |= {(name, word) for word in _of(operator.name, name, attribute, call)}
    for parameter in schema.inputs:
        if parameter.name in operator.constants:
            given = parameter.name in call.inputs
            found.add((parameter.name, GIVEN if given else LEFT_OUT))
            value = call.parameter(parameter.name) if given else None
            if value is not None and _any_below_zero(value):
                found.add((parameter.name, NEGATIVE))
    return frozenset(found & set(possible_words(operator.name, call.opset)))


def _of(operator: str, name: str, attribute: Attribute, call: Call) -> Iterator[str]:
    value = call.attributes.get(name)
    if value is None:
        yield LEFT_OUT
    elif documented_values(operator, name):
        yield str(int(bool(value))) if isinstance(value, int) else str(value)
    elif isinstance(value, int) and name in load("attribute_values.yaml")["types"]:
        yield BY_ONNX_NUMBER[value].name if value in BY_ONNX_NUMBER else ""
    elif isinstance(value, int) and roles().get(name) == "dimension":
        yield from _place(value, len(call.first.shape))
    elif attribute.default is not None:
        yield "default" if value == attribute.default else "other"
    else:
        yield GIVEN
        if _any_below_zero(value):
            yield NEGATIVE


def _place(axis: int, rank: int) -> Iterator[str]:
    place = axis + rank if axis < 0 else axis
    if axis < 0:
        yield NEGATIVE
    yield "first" if place <= 0 else "last" if place >= rank - 1 else "middle"


def _any_below_zero(value: Any) -> bool:
    return any(
        isinstance(each, int) and each < 0 for each in (value if isinstance(value, tuple) else (value,))
    )


OPSET, TYPE, RANK, ATTRIBUTE = "opset", "type", "rank", "attribute"
KINDS = ((OPSET, TYPE), (TYPE, RANK), (TYPE, ATTRIBUTE), (RANK, ATTRIBUTE), (TYPE, RANK, ATTRIBUTE))
"""What is combined in a cell, from the coarsest."""
_MOST_RANKS = 8
"""The most DimensionCounts that DirectML documents."""


class CellCount(NamedTuple):
    """Cells of one kind: how many have a case, and are possible; those without, and the rules that forbid
    others."""

    kind: tuple[str, ...]
    covered: int
    possible: int
    missing: list[Levels]
    forbidden: Counter[str]


class CellCoverage(NamedTuple):
    """What the cases of an operator cover; `levels` counts cells of type × rank by feature level, covered and
    possible."""

    operator: str
    cases: int
    counts: tuple[CellCount, ...]
    levels: dict[str, tuple[int, int]]


class _ShownCells:
    """The cells that cases show, with a call for each that others can be tried from."""

    def __init__(self, operator: Operator, lowers_to: tuple[str, ...]) -> None:
        self.operator, self.lowers_to = operator, lowers_to
        self.cases = 0
        self.cells: dict[tuple[int, str, int], set[Word]] = {}
        self.calls: dict[tuple[str, int] | tuple[int, Word], Call] = {}

    def add(self, case: Case) -> None:
        call = call_of(case)
        if not call.inputs:
            return
        self.cases += 1
        dtype, rank = call.first.dtype, len(call.first.shape)
        words = shown_words(self.operator, call)
        self.cells.setdefault((call.opset, dtype, rank), set()).update(words)
        if case.validity is Validity.VALID:
            self.calls.setdefault((dtype, rank), call)
            for word in words:
                self.calls.setdefault((rank, word), call)


def cell_coverages(selection: Selection) -> list[CellCoverage]:
    """Count for every operator of a selection, by name; of graphs ONNX documents no values."""
    seen = {
        spec.model.operator: _ShownCells(OPERATORS[spec.model.operator], spec.directml)
        for spec in selection.plan.specs
        if spec.graph is None
    }
    for case in selection:
        if (
            case.operator in seen
            and case.directml is None
            and case.validity is not Validity.INVALID
            and case.options.variant is None
        ):
            seen[case.operator].add(case)
    opsets = {spec.model.operator: spec.opsets for spec in selection.plan.specs}
    return [_coverage(each, opsets[name]) for name, each in sorted(seen.items()) if each.cases]


def _coverage(seen: _ShownCells, opsets: Iterable[int]) -> CellCoverage:
    cells = _all_cells(seen, opsets)
    covered: set[_Cell] = {(*key, None) for key in seen.cells}
    covered |= {(*key, word) for key, words in seen.cells.items() for word in words}
    covered &= cells
    levels: dict[str, tuple[int, int]] = {}
    has = {(dtype, rank) for _, dtype, rank, _ in covered}
    for dtype, rank in sorted({(dtype, rank) for _, dtype, rank, _ in cells}):
        level = level_of(seen.lowers_to, dtype, rank)
        one, all_ = levels.get(level, (0, 0))
        levels[level] = one + ((dtype, rank) in has), all_ + 1
    counts = tuple(_count(seen, kind, cells, covered) for kind in KINDS)
    ordered = {level: levels[level] for level in sorted(levels, key=level_key)}
    return CellCoverage(seen.operator.name, seen.cases, counts, ordered)


_Cell = tuple[int, str, int, Word | None]


def _all_cells(seen: _ShownCells, opsets: Iterable[int]) -> set[_Cell]:
    shown = (rank for _, _, rank in seen.cells if rank <= _MOST_RANKS)
    ranks = {*shown, *_documented_ranks(seen)}
    found: set[_Cell] = set()
    for opset in opsets:
        schema = operator_schema(seen.operator.name, opset)
        words: list[Word | None] = [None, *possible_words(seen.operator.name, opset)]
        for dtype, rank, word in product(schema.inputs[0].wide if schema.inputs else (), ranks, words):
            if word is None or has_meaning(word, rank):
                found.add((opset, dtype, rank, word))
    return found


def _count(seen: _ShownCells, kind: tuple[str, ...], cells: set[_Cell], covered: set[_Cell]) -> CellCount:
    """Count the cells of one kind; the other inputs and attributes may have any value."""
    pick = [(OPSET, TYPE, RANK, ATTRIBUTE).index(part) for part in kind]
    several = ATTRIBUTE in kind

    def of(every: set[_Cell]) -> set[tuple[object, ...]]:
        return {tuple(each[place] for place in pick) for each in every if (each[3] is not None) == several}

    possible, shown = of(cells), of(covered)
    missing: list[Levels] = []
    forbidden: Counter[str] = Counter()
    for cell in sorted(possible - shown, key=str):
        named = dict(zip(kind, cell, strict=True))
        rule = _forbidden(seen, named)
        if rule is None:
            missing.append(tuple(_levels(seen, named)))
        else:
            forbidden[rule] += 1
    number = len(possible) - forbidden.total()
    return CellCount(kind, number - len(missing), number, missing, forbidden)


def _levels(seen: _ShownCells, named: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for part, value in named.items():
        if part == ATTRIBUTE:
            assert isinstance(value, tuple)
            yield value
        else:
            yield part, str(value)
    if TYPE in named and RANK in named:
        yield "level", level_of(seen.lowers_to, str(named[TYPE]), int(str(named[RANK])))


def _forbidden(seen: _ShownCells, named: Mapping[str, object]) -> str | None:
    """Return the rule that calls of a cell with an attribute break, None where one breaks none or none could be
    tried: calls that show the word, with the cell's type, and those of the cell's type with the word's value."""
    dtype = named.get(TYPE)
    if ATTRIBUTE not in named:
        return None
    word: Any = named[ATTRIBUTE]
    rules: list[str | None] = []
    for (one, other), call in seen.calls.items():
        rank = one if isinstance(one, int) else other
        if named.get(RANK, rank) != rank:
            continue
        if other == word and isinstance(dtype, str):
            rules.append(_broken(seen.operator, _with_type(seen.operator, call, dtype)))
        elif one == dtype or (dtype is None and isinstance(one, str)):
            tried = _with_word(seen.operator, call, *word)
            rules += [_broken(seen.operator, tried)] if tried is not None else []
        if rules and rules[-1] is None:
            return None
    return rules[0] if rules else None


def _with_word(operator: Operator, call: Call, attribute: str, word: str) -> Call | None:
    """Return a call with the value that a word stands for, None where it does not tell one."""
    value = value_of(attribute, word, len(call.first.shape))
    if value is None or attribute not in operator_schema(operator.name, call.opset).attributes:
        return None
    return make_call(operator, call.opset, call.inputs, {**call.attributes, attribute: value}, call.constants)


def _with_type(operator: Operator, call: Call, dtype: str) -> Call:
    """Return a call with another element type of the first input, and of those that share its parameter."""
    schema = operator_schema(operator.name, call.opset)
    parameter = schema.inputs[0].type_param
    inputs = {}
    for name, given in call.inputs.items():
        formal = schema.input(name)
        shares = formal is not None and formal.type_param == parameter
        inputs[name] = TensorType(dtype, given.shape) if shares else given
    return make_call(operator, call.opset, inputs, call.attributes, call.constants)


def _broken(operator: Operator, call: Call) -> str | None:
    try:
        return operator.broken_rule(call)
    except (ValueError, KeyError, IndexError) as error:
        return str(error)


def _documented_ranks(seen: _ShownCells) -> Iterator[int]:
    """Yield the ranks that tables document, where a first input of theirs may have any: from a rank that
    cases have, padded in front, no rule is broken."""
    for name in seen.lowers_to:
        tensor = _first_tensor(name)
        if tensor is None:
            continue
        for level in directml_operator(name).table_levels:
            least, most, _ = documented_tensor(name.removeprefix(PREFIX), tensor, level)
            yield from (rank for rank in range(least, min(most, _MOST_RANKS) + 1) if _may_have(seen, rank))


def _may_have(seen: _ShownCells, rank: int) -> bool:
    for call in list(seen.calls.values()):
        own = len(call.first.shape)
        if own == rank:
            return True
        if own > rank or own == 0:
            continue
        padded = {
            name: TensorType(given.dtype, (1,) * (rank - own) + given.shape)
            if len(given.shape) == own
            else given
            for name, given in call.inputs.items()
        }
        tried = make_call(seen.operator, call.opset, padded, call.attributes, call.constants)
        if _broken(seen.operator, tried) is None:
            return True
    return False


@lru_cache(maxsize=512)
def _first_tensor(name: str) -> str | None:
    inputs = [each.name for each in directml_operator(name).tensors if "input" in each.type]
    return inputs[0] if inputs else None


@lru_cache(maxsize=8192)
def level_of(lowers_to: tuple[str, ...], dtype: str, rank: int) -> str:
    """Return the lowest feature level whose table has an element type and a rank, which may be padded, for the
    first tensor of one of these DirectML operators; `beyond` for none."""
    found = [BEYOND]
    own = DTYPES[dtype].directml if dtype in DTYPES else None
    for name in lowers_to:
        tensor = _first_tensor(name)
        for level in directml_operator(name).table_levels if tensor else ():
            _, most, dtypes = documented_tensor(name.removeprefix(PREFIX), tensor or "", level)
            if rank <= most and (own in dtypes or (not dtypes and most > 0 and own is not None)):
                found.append(level)
    return min(found, key=level_key)
