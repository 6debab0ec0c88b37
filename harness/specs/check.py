"""Check a spec against what ONNX says of its operator, and its literal values against their dtypes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from harness import onnx_schemas
from harness.onnx_schemas import OperatorSchema, OpsetUnavailable, UnknownOperator
from harness.records import Validity
from harness.specs import literals
from harness.specs.schema import ALL, CaseInput, LiteralCase, Sweep, SweepInput
from harness.specs.source import Key, KeyPath, Source, shown

MAX_COMBINATIONS = 1 << 24
_MAX_PER_TENSOR = 3


class Checks:
    """What the format alone cannot say; works on the parts of a file that are well-formed, so that one mistake hides few others."""

    def __init__(self, file: Source) -> None:
        self.file = file
        self.problems: list[str] = []
        self.operator = file.tree.get("operator")
        self.opsets = self._opsets(file.tree.get("opsets"))

    def problem(self, path: KeyPath, what: str, *, given: str | None = None, allowed: Iterable[str] = ()) -> None:
        """Note a problem at its line."""
        self.problems.append(self.file.problem(path, what, given=given, allowed=allowed))

    def _opsets(self, opsets: Any) -> dict[int, OperatorSchema]:
        """Return the operator's schema at each opset of the spec that has one."""
        found: dict[int, OperatorSchema] = {}
        if not isinstance(self.operator, str) or not self.operator:
            return found
        if not isinstance(opsets, tuple):
            opsets = ()
        for position, opset in enumerate(opsets):
            if type(opset) is int and opset > 0:
                try:
                    found[opset] = onnx_schemas.operator_schema(self.operator, opset)
                except OpsetUnavailable as error:
                    self.problem(("opsets", position), str(error))
                except UnknownOperator:
                    break
                if opset in found and opset not in onnx_schemas.IR_VERSIONS:
                    what = f"a run cannot do opset {opset}: its IR version is not known"
                    self.problem(("opsets", position), what, allowed=map(str, onnx_schemas.IR_VERSIONS))
        if not found and self.operator not in (names := onnx_schemas.operator_versions()):
            self.problem(("operator",), f"ONNX has no operator {shown(self.operator)}", given=self.operator, allowed=names)
        return found

    def input_names(self) -> list[str]:
        """Return the operator's inputs, at any of the opsets."""
        return list(dict.fromkeys(p.name for schema in self.opsets.values() for p in schema.inputs))

    def sweep_keys(self) -> None:
        """Report keys of sweeps that are neither the format's nor an input, and drop them, or they would be read as inputs."""
        sweeps = self.file.tree.get("sweeps")
        fields, inputs = list(Sweep.model_fields), self.input_names()
        for position, sweep in enumerate(sweeps if isinstance(sweeps, tuple) else ()):
            unknown = [k for k in sweep if k not in fields and k not in inputs] if isinstance(sweep, dict) and inputs else []
            for key in unknown:
                what = f"unknown key {shown(key)}; it is no input of {self.operator} either"
                self.problem(("sweeps", position, key), what, given=key, allowed=[*fields, *inputs])
                del sweep[key]

    def entries(self) -> None:
        """Check every entry: a well-formed one in full, of others at least the names in it."""
        names: dict[tuple[Key, str], KeyPath] = {}
        for path, raw, kind in _entries(self.file):
            try:
                entry = kind.model_validate(raw)
            except ValidationError:  # reported by the validation of the whole file
                self.names(path, raw, kind)
                continue
            if (first := names.setdefault((path[0], entry.name), path)) != path:
                self.problem((*path, "name"), f"the name {entry.name!r} is already used, {self.file.where(*first, 'name')}")
            for position, opset in enumerate(entry.opsets or ()):
                if self.opsets and opset not in self.opsets:
                    self.problem((*path, "opsets", position), f"opset {opset} is not one of the spec's", allowed=map(str, self.opsets))
            schemas = {n: s for n, s in self.opsets.items() if entry.opsets is None or n in entry.opsets}
            if entry.directml is not None:  # it has no opset, and stands once, at the newest
                schemas = dict(list(schemas.items())[-1:])
            if schemas and isinstance(entry, Sweep):
                self.sweep(path, entry, schemas)
            elif schemas and isinstance(entry, LiteralCase):
                self.case(path, entry, schemas)

    def names(self, path: KeyPath, raw: object, kind: type[LiteralCase | Sweep]) -> None:
        """Check attribute and input names of an entry that is not well-formed."""
        if not isinstance(raw, dict) or not self.opsets:
            return
        if isinstance(attributes := raw.get("attributes"), dict):
            self._attributes(path, attributes, self.opsets, every=False)
        if kind is LiteralCase and isinstance(inputs := raw.get("inputs"), dict):
            self.inputs(path, inputs, self.opsets)

    def inputs(self, path: KeyPath, names: Collection[str], schemas: dict[int, OperatorSchema]) -> None:
        """Check that the inputs of a literal case are the operator's."""
        for name in names:
            if name not in self.input_names():
                what = f"{self.operator} has no input {shown(name)}"
                self.problem((*path, "inputs", name), what, given=name, allowed=self.input_names())
        for name in dict.fromkeys(p.name for schema in schemas.values() for p in schema.inputs if not p.optional):
            if name not in names:
                self.problem((*path, "inputs"), f"{self.operator} needs the input {name!r}")

    def case(self, path: KeyPath, case: LiteralCase, schemas: dict[int, OperatorSchema]) -> None:
        """Check a literal case; what it uses must exist at every opset it runs at."""
        self._attributes(path, case.attributes, schemas, every=True)
        self._options(path, [case.options.initializer])
        self.inputs(path, case.inputs, schemas)
        for name, given in case.inputs.items():
            at = (*path, "inputs", name)
            if name in self.input_names() and case.validity is not Validity.INVALID and case.directml is None:
                self._dtype((*at, "dtype"), name, given.dtype, schemas, every=True)
            self.elements(at, given)
        if case.documents_output and case.validity is Validity.INVALID:
            self.problem((*path, "output"), "an invalid case has no output")
        dtype = next(iter(schemas.values())).output_dtype({name: given.dtype for name, given in case.inputs.items()})
        if case.documents_output and dtype is not None:
            self.convert((*path, "output"), dtype, case.output, None)

    def elements(self, at: KeyPath, given: CaseInput) -> None:
        """Check the written-out elements of an input."""
        if given.fill is not None:
            return
        if self.convert((*at, "values"), given.dtype, given.values, given.shape) == 0 and given.shape is None:
            self.problem((*at, "values"), "an empty tensor needs a 'shape'")

    def convert(self, at: KeyPath, dtype: str, values: Any, shape: Sequence[int] | None) -> int | None:
        """Report what is wrong with literal values; return how many there are."""
        try:
            return literals.to_array(dtype, values, shape).size
        except literals.LiteralError as error:
            for below, what in error.problems[:_MAX_PER_TENSOR]:
                self.problem((*at, *below), what)
            if len(error.problems) > _MAX_PER_TENSOR:
                self.problem(at, f"{len(error.problems) - _MAX_PER_TENSOR} more of its elements are wrong")
            return None

    def sweep(self, path: KeyPath, sweep: Sweep, schemas: dict[int, OperatorSchema]) -> None:
        """Check a sweep; what it names must exist at one of its opsets, since combinations that do not are left out."""
        self._attributes(path, sweep.attributes, schemas, every=False)
        self._options(path, sweep.options.initializer)
        for name in dict.fromkeys(p.name for schema in schemas.values() for p in schema.inputs if not p.optional):
            if name not in sweep.inputs:
                self.problem(path, f"the input {name!r} of {self.operator} is missing")
        for name, given in sweep.inputs.items():
            free = given.dtype == ALL or sweep.validity is Validity.INVALID or sweep.directml is not None
            for position, dtype in enumerate(() if free else given.dtype):
                self._dtype((*path, name, "dtype", position), name, dtype, schemas, every=False)
        if (count := combinations(sweep, schemas)) > MAX_COMBINATIONS:
            self.problem(path, f"up to {count:,} combinations are above the limit of {MAX_COMBINATIONS:,} per sweep; shorten its lists")

    def _attributes(self, path: KeyPath, names: Iterable[str], schemas: dict[int, OperatorSchema], *, every: bool) -> None:
        known = list(dict.fromkeys(a for s in self.opsets.values() for a, kind in s.attributes.items() if kind.type == "INT"))
        for name in names:
            at = (*path, "attributes", name)
            having = [n for n, schema in schemas.items() if name in schema.attributes]
            if name not in known:
                self.problem(at, f"{self.operator} has no integer attribute {shown(name)}", given=name, allowed=known)
            elif not having or (every and len(having) < len(schemas)):
                lacking = [n for n in schemas if n not in having]
                hint = f"; restrict 'opsets' to {having}" if having else ""
                self.problem(at, f"{self.operator} has no attribute {shown(name)} at opset {', '.join(map(str, lacking))}{hint}")

    def _options(self, path: KeyPath, initializers: Iterable[str | None]) -> None:
        for name in initializers:
            if name is not None and name not in self.input_names():
                at = (*path, "options", "initializer")
                self.problem(at, f"{self.operator} has no input {shown(name)}", given=name, allowed=self.input_names())

    def _dtype(self, at: KeyPath, name: str, dtype: str, schemas: dict[int, OperatorSchema], *, every: bool) -> None:
        allowing = {n: dtype in parameter.dtypes for n, schema in schemas.items() if (parameter := schema.input(name))}
        if all(allowing.values()) if every else any(allowing.values()):
            return
        refusing = ", ".join(str(n) for n, allowed in allowing.items() if not allowed)
        parameters = [p for schema in schemas.values() if (p := schema.input(name))]
        allowed = [d for d in parameters[0].dtypes if all(d in p.dtypes for p in parameters)]
        self.problem(at, f"{self.operator} does not take {dtype} for {name!r} at opset {refusing}", allowed=allowed)


def _entries(file: Source) -> Iterator[tuple[KeyPath, object, type[LiteralCase | Sweep]]]:
    kinds: dict[str, type[LiteralCase | Sweep]] = {"cases": LiteralCase, "sweeps": Sweep}
    for key, kind in kinds.items():
        entries = file.tree.get(key)
        for position, entry in enumerate(entries if isinstance(entries, tuple) else ()):
            yield (key, position), entry, kind


def combinations(sweep: Sweep, schemas: dict[int, OperatorSchema]) -> int:
    """Return an upper bound of the combinations that a sweep expands to, without expanding it."""
    total = len(schemas)
    for name, given in sweep.inputs.items():
        allowed = max((len(p.dtypes) for schema in schemas.values() if (p := schema.input(name))), default=1)
        total *= allowed if given.dtype == ALL else len(given.dtype)
        total *= _length(given.shape) * _length(given.extent) * _length(given.outer) * _length(given.values)
        total *= _range(sweep) if given.tuple_ == ALL else _length(given.tuple_)
    if (asked := sweep.directml) is not None:
        total *= len(asked.operator) * len(asked.dimension_count) * len(asked.in_place) * math.prod(map(len, asked.layout.values()))
    for values in sweep.attributes.values():
        total *= 2 * _range(sweep) if values == ALL else len(values)
    return total * math.prod(len(getattr(sweep.options, name)) for name in type(sweep.options).model_fields)


def _length(alternatives: Sequence[Any] | None) -> int:
    return 1 if alternatives is None else len(alternatives)


def _range(sweep: Sweep) -> int:
    """Return the largest rank of any input: `all` axes are at most twice as many, `all` index tuples at most as many."""
    inputs: Iterable[SweepInput] = sweep.inputs.values()
    return max((len(shape) for given in inputs for shape in given.shape or ()), default=1) or 1
