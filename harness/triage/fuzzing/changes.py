"""Random changes of a call: each makes another candidate, valid or not, or None where it has nothing to
change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import Any, NamedTuple

import msgspec
import numpy as np

from harness.model.case import CONSTANTS, Tensor, TensorValue, Value
from harness.model.dtypes import DTYPES
from harness.operators.base import NoDomain, Shape
from harness.triage.fuzzing.seeds import Seeds
from harness.triage.reduction.candidate import Candidate, Subject
from harness.triage.reduction.element_cost import plain

EXTENTS = (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 8, 9, 11, 13, 15, 16, 17, 19, 23, 24, 31, 32, 33, 48, 63, 64, 65, 96,
           100, 127, 128, 129, 255, 256, 257, 511, 513, 1023, 1025, 4097)  # fmt: skip
"""Extents around the widths of vectors and blocks, small ones more often."""
_INTEGERS = (-3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8)
_FLOATS = (-2.0, -1.0, -0.5, 0.0, 0.1, 0.25, 0.5, 0.99, 1.0, 1.5, 2.0, 3.0, 10.0)
_LONGEST_RANK = 8
FLAG = frozenset({"None", "''", "0", "1"})
"""What valid cases give an attribute that is a flag: of other integers ONNX says nothing."""
LARGEST = 1 << 16
"""Elements of an input or output."""


class Draft(NamedTuple):
    """A candidate with the facts that a change may use."""

    candidate: Candidate
    seeds: Seeds
    subject: Subject
    random: Random

    @property
    def tensors(self) -> list[int]:
        """The positions of inputs whose elements decide no shapes."""
        return [n for n, name in enumerate(self.candidate.names) if not self.subject.decides(name)]


def reshaped(draft: Draft, shapes: dict[int, Shape]) -> Candidate | None:
    """Return the candidate with other shapes at some positions, whose elements are chosen later; None where
    they are too large."""
    candidate = draft.candidate
    if any(prod(max(extent, 1) for extent in shape) > LARGEST for shape in shapes.values()):
        return None
    for position, shape in shapes.items():
        dtype = candidate.inputs[position].dtype
        array = plain(dtype, shape, payload=False)
        candidate = candidate.with_input(position, Tensor(dtype, array))
    return candidate


def extent(draft: Draft) -> Candidate | None:
    """Change an extent: at one place, at its place in all inputs, or wherever an input has it."""
    candidate, random = draft.candidate, draft.random
    shaped = [n for n in draft.tensors if candidate.shapes[n]]
    if not shaped:
        return None
    position = random.choice(shaped)
    shape = candidate.shapes[position]
    place = random.randrange(len(shape))
    old, new = shape[place], random.choice(EXTENTS)
    how = random.randrange(4)
    changed: dict[int, Shape] = {}
    for n in shaped:
        other = candidate.shapes[n]
        if how == 0 and n != position:
            continue
        if how == 3:
            places = [at for at, value in enumerate(other) if value == old]
        else:  # counted from the left, or from the right
            at = place if how < 2 else len(other) - len(shape) + place
            places = [at] if 0 <= at < len(other) and other[at] == old else []
        changed[n] = tuple(new if at in places else value for at, value in enumerate(other))
    return reshaped(draft, changed)


def rank(draft: Draft) -> Candidate | None:
    """Add a dimension to all inputs of one rank, or to one, or take one away."""
    candidate, random = draft.candidate, draft.random
    tensors = draft.tensors
    if not tensors:
        return None
    position = random.choice(tensors)
    length = len(candidate.shapes[position])
    alike = [n for n in tensors if len(candidate.shapes[n]) == length]
    chosen = alike if random.random() < 0.7 else [position]
    if random.random() < 0.5:
        if length >= _LONGEST_RANK:
            return None
        place, new = random.randint(0, length), random.choice(EXTENTS[1:10])
        return reshaped(draft, {n: (*(s := candidate.shapes[n])[:place], new, *s[place:]) for n in chosen})
    if not length:
        return None
    place = random.randrange(length)
    return reshaped(draft, {n: (*(s := candidate.shapes[n])[:place], *s[place + 1 :]) for n in chosen})


def element_type(draft: Draft) -> Candidate | None:
    """Change the element type of a type parameter to any that ONNX allows."""
    candidate, random = draft.candidate, draft.random
    groups = draft.subject.alike(candidate)
    if not groups:
        return None
    positions = random.choice(groups)
    parameter = draft.subject.spec.schema(candidate.opset).input(candidate.names[positions[0]])
    if parameter is None or not parameter.wide:
        return None
    dtype = random.choice(parameter.wide)
    for n in positions:
        tensor = candidate.inputs[n]
        if draft.subject.decides(candidate.names[n]):
            if not (DTYPES[dtype].is_integer and DTYPES[tensor.dtype].is_integer):
                return None
            array = tensor.array.astype(DTYPES[dtype].storage)
        else:
            array = plain(dtype, tensor.array.shape, payload=False)
        candidate = candidate.with_input(n, Tensor(dtype, array))
    return candidate


def attribute(draft: Draft) -> Candidate | None:
    """Give an attribute a value that a valid case has at this opset, one that its domain has, or one near to
    its own; or leave it out."""
    candidate, random = draft.candidate, draft.random
    known = draft.subject.spec.schema(candidate.opset).attributes
    if not known:
        return None
    name = random.choice(sorted(known))
    given = dict(candidate.attributes)
    choices: list[Value | None] = list(draft.seeds.attributes[candidate.opset, name])
    own = given.get(name)
    flag = set(map(repr, choices)) <= FLAG
    kind = 0 if flag else random.randrange(3)
    if kind:
        family, operator = draft.seeds.operator.family, draft.seeds.operator
        try:
            domain = list(family.domain(operator, name, draft.subject.call(candidate)))
        except (NoDomain, NotImplementedError, LookupError, TypeError, ValueError):
            kind, domain = 0, []  # only what valid cases have is known to be one
        choices = [*domain] or choices
    if kind == 2 and own is not None:
        choices = [near(own, random)]
    if not choices:
        return None
    value = random.choice(choices)
    given.pop(name, None)
    if value is not None:
        if not _is(value, known[name].type):
            return None  # a domain of the constant that the attribute is at other opsets
        given[name] = value
    return candidate._replace(attributes=tuple(sorted(given.items())))


def _is(value: object, kind: str) -> bool:
    """Say whether a value is of an attribute's type."""
    if isinstance(value, TensorValue):
        return kind == "TENSOR"
    if isinstance(value, tuple):
        return kind.endswith("S") and all(_is(each, kind[:-1]) for each in value)
    types: dict[str, type] = {"INT": int, "FLOAT": float, "STRING": str}
    return kind in types and type(value) is types[kind]


def near(value: Value, random: Random) -> Value:
    """Return a value of the same type; a text and a tensor stay."""
    if isinstance(value, bool | str | TensorValue):
        return value
    if isinstance(value, int):
        found = random.choice((value + 1, value - 1, -value, *_INTEGERS))
        return found if abs(found) < 1 << 63 else value
    if isinstance(value, float):
        return random.choice((-value, value / 2, value * 2, *_FLOATS))
    if not value:
        return value
    elements: list[Any] = list(value)
    if random.random() < 0.2:
        random.shuffle(elements)
    else:
        place = random.randrange(len(elements))
        elements[place] = near(elements[place], random)
    return tuple(elements)


def constant(draft: Draft) -> Candidate | None:
    """Change an element of an input that decides shapes."""
    candidate, random = draft.candidate, draft.random
    deciding = [
        n
        for n, name in enumerate(candidate.names)
        if draft.subject.decides(name) and candidate.inputs[n].array.size
    ]
    if not deciding:
        return None
    position = random.choice(deciding)
    dtype, array = candidate.inputs[position]
    entry = DTYPES[dtype]
    if not entry.is_integer and dtype not in ("float32", "float64", "float16"):
        return None
    elements = near(tuple(array.reshape(-1).tolist()), random)
    try:
        with np.errstate(over="ignore"):
            changed = np.array(elements, entry.storage).reshape(array.shape)
    except OverflowError:
        return None
    return candidate.with_input(position, Tensor(dtype, changed))


def option(draft: Draft) -> Candidate | None:
    """Change one option, to any value that the graph can have."""
    candidate, random = draft.candidate, draft.random
    name = random.choice(("shapes", "optimization", "neighbours", "initializer", "outputs"))
    choices: Sequence[Any] = {
        "shapes": ("symbolic", "static", "undeclared"),
        "optimization": ("off", "basic", "extended", "all"),
        "neighbours": (False, candidate.options.optionals is None),
        "initializer": _initializers(draft),
        "outputs": tuple(dict.fromkeys(each.outputs for each in draft.seeds.options)),
    }[name]
    return candidate._replace(
        options=msgspec.structs.replace(candidate.options, **{name: random.choice(choices)})
    )


def _initializers(draft: Draft) -> tuple[str | None, ...]:
    """Return the inputs that can be an initializer beside others that are fed: with none fed the node is
    folded away."""
    schema = draft.subject.spec.schema(draft.candidate.opset)
    maps = {each.name for each in schema.inputs if each.map}
    names = [name for name in draft.candidate.names if name not in maps]
    if len(names) < 2:
        return (None,)
    deciding = [name for name in names if draft.subject.decides(name)]
    plain_names = [name for name in names if "." not in name]
    together = (CONSTANTS,) if deciding and len(deciding) < len(names) else ()
    return (None, *plain_names, *together)


def opset(draft: Draft) -> Candidate | None:
    """Take another opset of the spec."""
    return draft.candidate._replace(opset=draft.random.choice(draft.subject.spec.opsets))


def omitted(draft: Draft) -> Candidate | None:
    """Leave out an input, or one of a variadic one, or give a variadic one twice."""
    candidate, random = draft.candidate, draft.random
    if not candidate.names:
        return None
    position = random.randrange(len(candidate.names))
    name = candidate.names[position]
    formal, dot, _ = name.partition(".")
    if dot and random.random() < 0.5:
        number = sum(each.startswith(f"{formal}.") for each in candidate.names)
        last = max(n for n, each in enumerate(candidate.names) if each.startswith(f"{formal}."))
        names = (*candidate.names[: last + 1], f"{formal}.{number}", *candidate.names[last + 1 :])
        inputs = (*candidate.inputs[: last + 1], candidate.inputs[position], *candidate.inputs[last + 1 :])
        return candidate._replace(names=names, inputs=inputs)
    if candidate.options.initializer == name:
        return None
    return candidate.without_input(position)


CHANGES: tuple[Callable[[Draft], Candidate | None], ...] = (
    *(extent,) * 5,
    *(rank,) * 2,
    *(element_type,) * 2,
    *(attribute,) * 4,
    *(constant,) * 2,
    *(option,) * 3,
    opset,
    omitted,
)
