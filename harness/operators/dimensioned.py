"""A family whose shapes are written down: inputs and outputs by named dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.float_formats import encode
from harness.operators.base import Call, Entropy, Operator, Relation, Shape, ValueKind
from harness.operators.broadcasting import RELATIONS, broadcast, related
from harness.operators.computing import Conditioned

Dimensions = dict[str, Any]
"""Extents by name; under `...` the leading dimensions; attributes of integers, and scalars that decide shapes, by their
names; under `inputs` the names of the inputs that are present."""
_OTHER = ("deeper", "second", "third", "fourth")


class Chosen(NamedTuple):
    """A kind of values of one input: its name, how it is made of random numbers of 32 bits, and the rule it breaks."""

    name: str
    choose: Callable[[Array, Dimensions], Any]
    breaks: str | None = None


SCALES = Chosen("scale", lambda raw, _: (raw % 16 + 1.0) / 64)
SMALL = Chosen("small", lambda raw, _: (raw % 16 + 1.0) / 4096)
PADDED = Chosen("padded", lambda raw, _: np.arange(raw.shape[-1]) < 1 + raw[..., :1] % raw.shape[-1])
"""Ones up to a length of each row, at the least one."""


class Dimensioned(Conditioned):
    """Inputs and outputs as written: `Dimensioned("A: ... K; B: N K; bias: N | 1 N", "... N")`.

    A name is one extent throughout a call, that of an integer attribute where there is one; `...` any leading
    dimensions; `*` alone any shape, as an output that of the first input; `~` alone one that can be broadcast; a number
    itself; `|` stands between alternatives, nothing for a scalar. `sizes` makes extents of those that are known,
    `defaults` are those that no input decides, `rule` says what else is wrong, `by_values` what is wrong about elements,
    `chosen` has the kinds of values that an input alone has, `types` the element types of the outputs that no type
    parameter tells.

    In a sweep `shape:` of a further input is by default the first alternative, or the `second`, `third` or `fourth`; a mapping
    gives extents by name; `unlike` has one more in the last dimension, `deeper` a leading 1 more.
    """

    def __init__(
        self,
        inputs: str,
        outputs: str,
        sizes: Mapping[str, Callable[[Dimensions], Any]] | None = None,
        rule: Callable[[Dimensions, Call], str | None] = lambda _dimensions, _call: None,
        chosen: Mapping[str, tuple[Chosen, ...]] | None = None,
        types: Callable[[Call], tuple[str | None, ...]] = lambda _call: (),
        count: int = 1,
        defaults: Mapping[str, int] | None = None,
        by_values: Callable[[Dimensions, Call, Mapping[str, Tensor]], str | None] = lambda *_: None,
    ) -> None:
        written = (part.split(":") for part in inputs.split(";"))
        self.inputs = {name.strip(): [each.split() for each in text.split("|")] for name, text in written}
        self.outputs = [text.split() for text in outputs.split(";")]
        self.sizes, self.rule, self.chosen, self.types = sizes or {}, rule, chosen or {}, types
        self.count, self.defaults, self.by_values = count, defaults or {}, by_values
        names = {word for each in self.inputs.values() for form in each for word in form} | set(self.sizes)
        self.relations = {"*": (*sorted(names - {"..."}), *_OTHER, *RELATIONS)}  # type: ignore[misc] # of this operator alone

    def dimensions(self, call: Call) -> tuple[Dimensions, str | None]:
        """Return the extents of a call by name, and the rule that its shapes break."""
        found: Dimensions = {
            key: value for key, value in call.attributes.items() if isinstance(value, (int, tuple))
        }
        found |= {key: int(value.item()) for key, value in call.constants.items() if value.size == 1}
        found["inputs"] = tuple(call.inputs)
        more = True
        for name, forms in self.inputs.items():
            more = more and self._derive(found)
            if name in call.inputs:
                shape = call.inputs[name].shape
                bound = next(filter(None, (_matched(form, shape, found) for form in forms)), None)
                if bound is None:
                    return found, f"{name} has the shape [{'] or ['.join(', '.join(form) for form in forms)}]"
                found, more = bound, True
        self._derive(found)
        for name, extent in self.defaults.items():
            found.setdefault(name, extent)
        self._derive(found)
        return found, None

    def _derive(self, found: Dimensions) -> bool:
        """Add the sizes that follow from those found, and say whether there was one: others may follow from it."""
        before = len(found)
        for name, size in self.sizes.items():
            try:
                if name not in found:
                    found[name] = size(found)
            except (KeyError, ZeroDivisionError):
                continue  # of extents that are not known yet, or of an attribute that is none
        return len(found) > before

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Of an attribute that is an extent of the first input, this extent."""
        others = {key: value for key, value in call.attributes.items() if key != attribute}
        found, _ = self.dimensions(call._replace(attributes=others))
        return (found[attribute],) if attribute in found else super().domain(operator, attribute, call)

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of a further input."""
        found, broken = self.dimensions(call)
        forms = self.inputs[name]
        if forms[0] == ["~"] and isinstance(relation, str):
            return related(relation, call.first.shape)
        place = {"second": 1, "third": 2, "fourth": 3}.get(str(relation), 0)
        if place >= len(forms):
            return None
        given = {} if isinstance(relation, str) else dict(relation)
        found |= given
        self._derive(found)
        found = {**self.defaults, **found}
        self._derive(found)
        if any(
            word not in found and (broken or word in self.sizes) and not word.isdigit()
            for word in forms[place]
        ):
            return None
        shape = _made(forms[place], found)
        if min(shape, default=0) < 0:
            return None
        if relation == "unlike":
            return (*shape[:-1], shape[-1] + 1) if shape else (2,)
        return (1, *shape) if relation == "deeper" else shape

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Those of an input alone, before the usual ones."""
        own = tuple(ValueKind(each.name, breaks=each.breaks) for each in self.chosen.get(name, ()))
        usual = super().kinds(operator, name)
        return own + tuple(each for each in usual if each.name not in {one.name for one in own})

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the input's type."""
        own = any(each.name == kind for each in self.chosen.get(name, ()))
        return own or super().applies(operator, kind, name, call)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose elements by kind."""
        own = next((each for each in self.chosen.get(name, ()) if each.name == kind), None)
        if own is None:
            return super().generate(operator, kind, name, call, entropy)
        dtype, shape = call.inputs[name]
        raw = np.frombuffer(entropy, "<u4", prod(shape)).astype(np.int64).reshape(shape)
        try:
            made = np.asarray(own.choose(raw, self.dimensions(call)[0]))
        except KeyError:  # an extent that shapes which break a rule do not decide
            made = raw % 2
        return encode(dtype, made.astype(str) if dtype == "string" else made)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Shapes that are not as written, then the rule of the operator."""
        found, broken = self.dimensions(call)
        return broken or self.rule(found, call)

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """The rule of the operator about elements."""
        return self.by_values(self.dimensions(call)[0], call, inputs)

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The outputs as written."""
        found = {**self.dimensions(call)[0], "*": call.first.shape}
        return tuple(
            _made(form, found) if all(w in found or w.isdigit() for w in form) else ()
            for form in self.outputs
        )

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return the types of outputs without a type parameter."""
        return self.types(call)


def _matched(form: list[str], shape: Shape, found: Dimensions) -> Dimensions | None:
    """Return the extents with those of a shape; None where it is not of the form."""
    if form == ["*"]:
        return found or {"": 0}
    if form == ["~"]:
        together = broadcast((found.get("~", ()), shape))
        return None if together is None else {**found, "~": together}
    bound, rest = found, shape
    if form[:1] == ["..."]:
        leading = len(shape) - len(form) + 1
        if leading < 0 or found.get("...", shape[:leading]) != shape[:leading]:
            return None
        form, rest = form[1:], shape[leading:]
        bound = {**found, "...": shape[:leading]}
    if len(form) != len(rest):
        return None
    bound = dict(bound)
    for word, extent in zip(form, rest, strict=True):
        if (int(word) if word.isdigit() else bound.setdefault(word, extent)) != extent:
            return None
    return bound or {"": 0}


def _made(form: list[str], found: Dimensions) -> Shape:
    shape: list[int] = []
    for word in form:
        shape += found[word] if word in ("...", "~", "*") else [int(word) if word.isdigit() else found[word]]
    return tuple(shape)
