"""Everything that a spec can express for an operator: its signature, the sweeps of families, and for each
input the kinds of values and words of shapes, each kind with the elements of a case that has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from msgspec.structs import replace

from harness.model import onnx_schemas
from harness.model.case import Case, Validity
from harness.model.dtypes import DTYPES, Array
from harness.model.operator_schema import OperatorSchema
from harness.operators import OPERATORS
from harness.operators.base import RANDOM, Operator
from harness.specs.expand import expand
from harness.specs.reading.entry_schema import Sweep
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps import family_sweeps
from harness.specs.sweeps.calls import call_of, case_inputs

_SHOWN = 6
_MANY = 64


class KindRow(NamedTuple):
    """A kind of values of an input: the rule that it breaks, empty for none, the id of a case that has it, empty for none,
    and its first elements, empty where no case can have it."""

    input: str
    kind: str
    breaks: str
    case: str
    elements: str


class WordsRow(NamedTuple):
    """What `shape:` of an input may say: words, or a key, and the words that stand under it."""

    input: str
    key: str
    words: tuple[str, ...]


class OperatorDescription(NamedTuple):
    """An operator as an author of specs sees it, at its newest version; `sweeps` has by name how many cases each has."""

    schema: OperatorSchema
    versions: tuple[int, ...]
    family: str
    uses: dict[str, tuple[str, ...]]
    sweeps: Mapping[str, int]
    kinds: tuple[KindRow, ...]
    words: tuple[WordsRow, ...]


def describe(spec: LoadedSpec) -> OperatorDescription:
    """Describe the operator of a spec, which is not a graph's."""
    name = spec.model.operator
    operator = OPERATORS[name]
    versions = onnx_schemas.opsets_of_versions(name)
    schema = onnx_schemas.operator_schema(name, versions[-1])
    cases = list(expand((spec,)))
    origins = (case.id.partition(":")[2].partition(";")[0] for case in cases)
    sweeps = Counter(each.removeprefix("sweep=") for each in origins if each.startswith("sweep="))
    uses = {
        entry.use: tuple(sweep.name for sweep in family_sweeps.sweeps_in(entry))
        for entry in spec.model.sweeps
        if not isinstance(entry, Sweep)
    }
    return OperatorDescription(
        schema,
        versions,
        type(operator.family).__name__,
        uses,
        sweeps,
        tuple(_kinds(operator, [each.name for each in schema.inputs], cases)),
        tuple(_words(operator)),
    )


def _kinds(operator: Operator, names: Sequence[str], cases: Sequence[Case]) -> Iterable[KindRow]:
    """Yield the kinds of values of each input, with the elements of a case that has it, or elements that a case would
    have."""
    having: dict[tuple[str, str], tuple[_Worth, Case]] = {}
    others: dict[tuple[str, str], tuple[_Worth, Case]] = {}
    for case in cases:
        for tensor in case.inputs:
            name, size = tensor.name.partition(".")[0], prod(tensor.shape)
            valid = case.validity is Validity.VALID
            worth = valid, tensor.dtype in _BEST, size if size <= _MANY else _MANY - size
            for cases_of, key in ((having, tensor.values), (others, tensor.dtype))[
                : 1 + (valid and size > 0)
            ]:
                if (name, key) not in cases_of or cases_of[name, key][0] < worth:
                    cases_of[name, key] = worth, case
    for name in names:
        known = (*operator.family.kinds(operator, name), *operator.family.fills(operator, name)) or (RANDOM,)
        for kind in known:
            shown = [each[1] for each in (having.get((name, kind.name)),) if each]
            tried = [
                *shown,
                *(each[1] for each in map(others.get, ((name, dtype) for dtype in _BEST)) if each),
            ]
            elements = next(filter(None, (_elements(case, name, kind.name) for case in tried)), "")
            yield KindRow(name, kind.name, kind.breaks or "", shown[0].id if shown else "", elements)


_Worth = tuple[bool, bool, int]
"""How well an input of a case shows its kind: valid, of numbers that can be read, of several elements and not many."""
_BEST = ("float32", "float64", "int32", "int64", "uint8", "int8", "string", "bool")


def _elements(case: Case, name: str, kind: str) -> str:
    """Write elements of a kind as an input of a case would have them, nothing where the kind has no meaning there."""
    operator, call = OPERATORS[case.operator], call_of(case)
    number = next(n for n, each in enumerate(case.inputs) if each.name.partition(".")[0] == name)
    given = case.inputs[number]
    if not operator.family.applies(operator, kind, given.name, call):
        return ""
    inputs = list(case.inputs)
    inputs[number] = replace(given, values=kind)
    made = case_inputs(call, replace(case, inputs=tuple(inputs)), 0)[number]
    return _text(made.array, given.dtype)


def _text(array: Array, dtype: str) -> str:
    """Write the first elements; numbers that NumPy lacks by their bits."""
    values = array.reshape(-1)[:_SHOWN].tolist()
    more = ", …" if array.size > _SHOWN else ""
    if DTYPES[dtype].is_float or dtype == "bfloat16":
        values = [f"{float(each):.6g}" for each in values]
    return f"{dtype}: {', '.join(map(repr, values) if dtype == 'string' else map(str, values))}{more}"


def _words(operator: Operator) -> Iterable[WordsRow]:
    family = operator.family
    for name, words in family.relations.items():
        keys = [word for word in words if word in family.words]
        plain = tuple(word for word in words if word not in keys)
        if plain:
            yield WordsRow(name, "", plain)
        yield from (WordsRow(name, key, family.words[key]) for key in keys)
