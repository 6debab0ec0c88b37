"""What an author of specs may write of an operator: its signature, the sweeps of families, the kinds of values and the words
of shapes that each input takes, each kind with elements of a case that has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.sweep_schema import Sweep
from harness.specs.sweeps import family_sweeps
from harness.specs.sweeps.calls import call_of
from harness.specs.sweeps.values import case_inputs

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


class Description(NamedTuple):
    """An operator as an author of specs sees it, at its newest version; `sweeps` has by name how many cases each has."""

    schema: OperatorSchema
    versions: tuple[int, ...]
    family: str
    uses: dict[str, tuple[str, ...]]
    sweeps: dict[str, int]
    kinds: tuple[KindRow, ...]
    words: tuple[WordsRow, ...]


def describe(spec: LoadedSpec) -> Description:
    """Describe the operator of a spec, which is not a graph's."""
    name = spec.model.operator
    operator = OPERATORS[name]
    versions = onnx_schemas.opsets_of_versions(name)
    schema = onnx_schemas.operator_schema(name, versions[-1])
    cases = list(expand((spec,)))
    sweeps: dict[str, int] = {}
    for case in cases:
        key, _, _ = case.id.partition(":")[2].partition(";")
        if key.startswith("sweep="):
            sweeps[key[len("sweep=") :]] = sweeps.get(key[len("sweep=") :], 0) + 1
    uses = {
        entry.use: tuple(
            sweep.name for sweep in family_sweeps.family_sweeps(entry.use) if sweep.name not in entry.without
        )
        for entry in spec.model.sweeps
        if not isinstance(entry, Sweep)
    }
    return Description(
        schema,
        versions,
        operator.family.name,
        uses,
        sweeps,
        tuple(_kinds(operator, [each.name for each in schema.inputs], cases)),
        tuple(_words(operator)),
    )


def _kinds(operator: Operator, names: Sequence[str], cases: Sequence[Case]) -> Iterable[KindRow]:
    """Yield the kinds of each input, with a case that has it, or else elements that a case would have."""
    having: dict[tuple[str, str], Case] = {}
    others: dict[tuple[str, str], Case] = {}
    for case in sorted(cases, key=lambda case: case.validity is not Validity.VALID):
        for tensor in case.inputs:
            name = tensor.name.partition(".")[0]
            for cases_of, key in ((having, tensor.values), (others, tensor.dtype)):
                if cases_of is others and (case.validity is not Validity.VALID or not all(tensor.shape)):
                    continue
                known = cases_of.get((name, key))
                if known is None or _worth(known, name) < _worth(case, name):
                    cases_of[name, key] = case
    for name in names:
        known = (*operator.family.kinds(operator, name), *operator.family.fills(operator, name)) or (RANDOM,)
        for kind in known:
            case = having.get((name, kind.name))
            elements = "" if case is None else _elements(case, name, kind.name)
            for other in (others.get((name, dtype)) for dtype in _BEST):
                if not elements and other is not None:
                    elements = _elements(other, name, kind.name)
            yield KindRow(name, kind.name, kind.breaks or "", case.id if case else "", elements)


_BEST = ("float32", "float64", "int32", "int64", "uint8", "int8", "string", "bool")


def _worth(case: Case, name: str) -> tuple[bool, bool, int]:
    """Say how well an input of a case shows its kind: of numbers that can be read, and of few elements, but more than
    one."""
    given = next(each for each in case.inputs if each.name.partition(".")[0] == name)
    size = prod(given.shape)
    return case.validity is Validity.VALID, given.dtype in _BEST, size if size <= _MANY else _MANY - size


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
