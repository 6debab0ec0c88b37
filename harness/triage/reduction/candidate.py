"""A candidate for a smaller case, its cost, and the failing case that it must resemble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from harness.model.case import BEYOND, Case, DirectmlOptions, Options, Tensor, TensorSpec, Validity, Value
from harness.model.caseid import parse
from harness.model.errors import UsageError
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, Shape
from harness.operators.directml.levels import levels_of
from harness.specs.reading.literal_cases import identified, unlike
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps import api
from harness.specs.sweeps.calls import call_of
from harness.specs.sweeps.family_sweeps import named_sweeps
from harness.specs.sweeps.sessions import refusal
from harness.targets.execution import Prepared
from harness.triage.reduction.element_cost import tensor_cost, value_cost

DTYPE_ORDER = (
    "float32", "int64", "int32", "uint8", "float16", "float64", "int8", "uint16", "int16", "uint32", "uint64", "bool", "string", "bfloat16",
    "complex64", "complex128", "int4", "uint4", "int2", "uint2", "float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz",
    "float4e2m1", "float8e8m0",
)  # fmt: skip
"""Element types from the plainest on; a case is reduced towards the first one that fails alike."""
_NAME_LENGTH = 60
_NO_ANSWER = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)


def changed_options(options: Options) -> list[str]:
    """Name the options that are not at their defaults."""
    default = Options()
    return [name for name in options.__struct_fields__ if getattr(options, name) != getattr(default, name)]


class Candidate(NamedTuple):
    """Everything that can be made smaller.

    `attributes` are sorted by name; `inputs` are those that are present, in the order of the specification,
    and `names` theirs: a variadic input `data_0` stands as `data_0.0`, `data_0.1` and so on. `directml` is what a
    call of DirectML's own API asks for.
    """

    opset: int
    attributes: tuple[tuple[str, Value], ...]
    options: Options
    inputs: tuple[Tensor, ...]
    names: tuple[str, ...]
    directml: DirectmlOptions | None = None

    @classmethod
    def of(cls, case: Case, inputs: tuple[Tensor, ...]) -> Candidate:
        """Return a case with its elements as a candidate."""
        attributes = tuple(sorted(case.attributes.items()))
        names = tuple(each.name for each in case.inputs)
        return cls(case.opset, attributes, case.options, inputs, names, case.directml)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(tensor.array.shape for tensor in self.inputs)

    def with_input(self, position: int, tensor: Tensor) -> Candidate:
        """Return the candidate with another tensor at a position."""
        return self._replace(inputs=(*self.inputs[:position], tensor, *self.inputs[position + 1 :]))

    def without_input(self, position: int) -> Candidate:
        """Return the candidate without an input; those of a variadic one that stand behind it move up."""
        formal, dot, _ = self.names[position].partition(".")
        names: list[str] = []
        for name in (*self.names[:position], *self.names[position + 1 :]):
            of = name.partition(".")[0]
            names.append(
                f"{formal}.{sum(each.startswith(f'{formal}.') for each in names)}"
                if dot and of == formal
                else name
            )
        return self._replace(
            inputs=(*self.inputs[:position], *self.inputs[position + 1 :]), names=tuple(names)
        )

    def key(self) -> tuple[Any, ...]:
        """Return a key that only equal candidates share."""
        return (
            self.opset,
            repr(self.attributes),  # 0, 0.0 and -0.0 are three values, and NaN is one
            msgspec.structs.astuple(self.options),
            self.names,
            repr(self.directml),
            tuple(
                (
                    t.dtype,
                    t.array.shape,
                    tuple(t.array.reshape(-1)) if t.dtype == "string" else t.array.tobytes(),
                )
                for t in self.inputs
            ),
        )


class Subject:
    """The failing case: makes cases of candidates, and says which of them keep its validity and the rule that
    it breaks."""

    def __init__(self, prepared: Prepared, spec: LoadedSpec, name: str | None = None) -> None:
        """Take the case; `name` is that of the entries that are made of it, by default one that the spec does
        not have."""
        case = prepared.case
        if case.directml is not None and case.validity is not Validity.VALID:
            raise UsageError(
                f"{case.id}: what breaks a rule of Microsoft's documents are members of its own, which no smaller case would "
                "break for certain; `harness repro` writes it as it is"
            )
        self.origin = case
        self.spec = spec
        self.operator: Operator = OPERATORS[case.operator]
        self.start = Candidate.of(case, prepared.inputs)
        self.name = name or self._free_name()
        self.rule = self.broken(self.start)
        if (self.rule is None) is not (case.validity is Validity.VALID):
            raise UsageError(
                f"{case.id}: the harness cannot tell which rule it breaks, so it cannot keep it while it reduces the case"
            )

    def _free_name(self) -> str:
        terms = parse(self.origin.id).terms
        stem = str(terms.get("case") or terms.get("sweep"))[: _NAME_LENGTH - 12] + "_reduced"
        taken = {entry.name for entry in (*self.spec.model.cases, *named_sweeps(self.spec.model))}
        return next(
            name for n in range(1, len(taken) + 2) if (name := stem if n == 1 else f"{stem}_{n}") not in taken
        )

    def alike(self, candidate: Candidate) -> list[list[int]] | None:
        """Return the positions of the inputs that have one element type, of each such type; None where an input is
        none of the operator's."""
        schema = self.spec.schema(candidate.opset)
        groups: dict[str, list[int]] = {}
        for position, name in enumerate(candidate.names):
            parameter = schema.input(name)
            if parameter is None:
                return None
            groups.setdefault(parameter.type_param if parameter.alike else name, []).append(position)
        return list(groups.values())

    def kinds(self, name: str) -> tuple[str, ...]:
        """Return the ways to choose the elements of an input; () for one that takes any bits."""
        return tuple(kind.name for kind in self.operator.family.kinds(self.operator, name))

    def decides(self, name: str) -> bool:
        """Say whether the elements of an input decide shapes, or stand for an attribute."""
        return name in self.operator.constants

    def payload(self, name: str) -> bool:
        """Say whether the elements of an input are only moved."""
        return not self.kinds(name) and not self.decides(name)

    def call(self, candidate: Candidate) -> Call:
        """Return the call of a candidate."""
        return call_of(self._written(candidate, {}))

    def broken(self, candidate: Candidate, *, by_values: bool = True) -> str | None:
        """Return the rule of the operator that a candidate breaks, None if it is valid; without `by_values` its
        elements count only where they decide shapes."""
        case = self._written(candidate, {})
        inputs = dict(zip(candidate.names, candidate.inputs, strict=True))
        try:
            with np.errstate(all="ignore"):
                call = call_of(case)
                broken = self.operator.broken(call, inputs) if by_values else self.operator.broken_rule(call)
        except (
            _NO_ANSWER
        ) as error:  # from what no spec gives to a rule: infinite scales, axes without elements
            return f"a rule that has no answer: {error}"
        if broken is not None:
            return broken
        if candidate.directml is not None:
            return self._undocumented(candidate, case, call)
        schema = self.spec.schema(candidate.opset)
        for name, tensor in inputs.items():
            parameter = schema.input(name)
            if parameter is not None and tensor.dtype not in parameter.dtypes:
                return f"the element type of {parameter.name}"
        return unlike(schema, case.inputs)

    def _undocumented(self, candidate: Candidate, case: Case, call: Call) -> str | None:
        """Return why Microsoft's tables do not allow a call of DirectML's own API that they allowed of the failing
        case, None where they do."""
        asked = candidate.directml
        assert asked is not None
        unfit = api.unfit(self.operator, asked, call)
        if unfit is not None:
            return unfit
        if asked.tensors and candidate.shapes != tuple(spec.shape for spec in self.origin.inputs):
            return "tensors whose members the case writes itself keep their shapes"
        if BEYOND in levels_of(case, call).values() and BEYOND not in self.origin.levels.values():
            return "a published table of the operator"
        return None

    def keeps(self, candidate: Candidate) -> bool:
        """Say whether a candidate is as valid as the failing case, or invalid by the same rule."""
        return self.formed(candidate) and self.broken(candidate) == self.rule and self.follows(candidate)

    def follows(self, candidate: Candidate) -> bool:
        """Say whether a call of the size that the options ask for can run before."""
        return refusal(self.operator, self.call(candidate), candidate.options) is None

    def formed(self, candidate: Candidate) -> bool:
        """Say whether a candidate has the inputs and attributes that the operator needs, and no others."""
        schema = self.spec.schema(candidate.opset)
        given = dict(candidate.attributes)
        if any(name not in schema.attributes for name in given):
            return False
        if any(attribute.required and name not in given for name, attribute in schema.attributes.items()):
            return False
        formal = [name.partition(".")[0] for name in candidate.names]
        known = {parameter.name for parameter in schema.inputs}
        if any(name not in known for name in formal):
            return False
        if any(self._of_another_rank(candidate, position) for position in range(len(candidate.names))):
            return False
        least = {p.name: p.least if p.variadic else int(not p.optional) for p in schema.inputs}
        return all(formal.count(name) >= number for name, number in least.items())

    def _of_another_rank(self, candidate: Candidate, position: int) -> bool:
        """Say whether an input that decides shapes has a rank that neither the operator nor the failing case
        gives it."""
        name = candidate.names[position]
        if not self.decides(name):
            return False
        ranks = {self.operator.constants[name]}
        ranks |= {len(spec.shape) for spec in self.origin.inputs if spec.name == name}
        return len(candidate.shapes[position]) not in ranks

    def case(self, candidate: Candidate, fills: Mapping[int, str] | None = None) -> Case:
        """Make the case of a candidate, with its elements written out but for the inputs that are to be
        filled."""
        case = self._written(candidate, fills or {})
        return msgspec.structs.replace(case, levels=levels_of(case, call_of(case)))

    def _written(self, candidate: Candidate, fills: Mapping[int, str]) -> Case:
        specs = tuple(
            TensorSpec(name, tensor.dtype, tensor.array.shape, fills.get(position, "literal"))
            for position, (name, tensor) in enumerate(zip(candidate.names, candidate.inputs, strict=True))
        )
        case = Case(
            id=self.name,
            operator=self.operator.name,
            opset=candidate.opset,
            attributes=dict(candidate.attributes),
            inputs=specs,
            options=candidate.options,
            validity=self.origin.validity,
            rule=self.origin.rule,
            source=self.origin.source,
            lowers_to=self.spec.directml,
            directml=candidate.directml,
            literals=tuple(
                None if position in fills else tensor.array
                for position, tensor in enumerate(candidate.inputs)
            ),
        )
        return identified(case)

    def cost(self, candidate: Candidate) -> tuple[int, ...]:
        """Return what every step makes smaller: options, inputs, dimensions, their sizes, element types,
        attributes, elements, opset."""
        optimization = ("off", "basic", "extended", "all").index(candidate.options.optimization)
        asked = msgspec.structs.astuple(candidate.directml) if candidate.directml is not None else ()
        members = sum(len(each) if isinstance(each, tuple) else each is not None for each in asked)
        return (
            (len(changed_options(candidate.options)) + members) * 4 + optimization,
            len(candidate.inputs),
            sum(map(len, candidate.shapes)),
            sum(map(sum, candidate.shapes)),
            sum(DTYPE_ORDER.index(tensor.dtype) for tensor in candidate.inputs),
            sum(value_cost(value) + 1 for _, value in candidate.attributes),
            sum(
                tensor_cost(tensor, payload=self.payload(name))
                for name, tensor in zip(candidate.names, candidate.inputs, strict=True)
            ),
            candidate.opset,
        )
