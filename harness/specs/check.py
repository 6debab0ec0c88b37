"""Check a spec against what ONNX says of its operator, and its literal values against their dtypes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness import onnx_schemas
from harness.onnx_schemas import OperatorSchema, OpsetUnavailable, UnknownOperator
from harness.records import Validity
from harness.specs import literals
from harness.specs.schema import ALL, CaseInput, LiteralCase, Sweep, SweepInput
from harness.specs.source import KeyPath, Source, shown

MAX_COMBINATIONS = 1 << 24
_MAX_PER_TENSOR = 3


class Checks:
    """What the format alone cannot say; works on the parts of a file that are well-formed, so that one mistake hides no other."""

    def __init__(self, file: Source) -> None:
        self.file = file
        self.problems: list[str] = []
        self.operator = file.tree.get("operator")
        self.opsets = self._opsets(file.tree.get("opsets"))

    def problem(self, path: KeyPath, what: str, *, given: str | None = None, allowed: Iterable[str] = ()) -> None:
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
        names = onnx_schemas.operator_versions()
        if self.operator not in names:
            self.problem(("operator",), f"ONNX has no operator {shown(self.operator)}", given=self.operator, allowed=names)
        return found

    def input_names(self) -> list[str]:
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
        names: dict[tuple[str, str], KeyPath] = {}
        for path, entry in (*_well_formed(self.file, "cases", LiteralCase), *_well_formed(self.file, "sweeps", Sweep)):
            if (first := names.setdefault((str(path[0]), entry.name), path)) != path:
                self.problem((*path, "name"), f"the name {entry.name!r} is already used, {self.file.where(*first, 'name')}")
            for position, opset in enumerate(entry.opsets or ()):
                if self.opsets and opset not in self.opsets:
                    self.problem((*path, "opsets", position), f"opset {opset} is not one of the spec's", allowed=map(str, self.opsets))
            schemas = {n: s for n, s in self.opsets.items() if entry.opsets is None or n in entry.opsets}
            if schemas and isinstance(entry, Sweep):
                self.sweep(path, entry, schemas)
            elif schemas:
                self.case(path, entry, schemas)

    def case(self, path: KeyPath, case: LiteralCase, schemas: dict[int, OperatorSchema]) -> None:
        self.attributes(path, case.attributes, schemas, every=True)
        self.options(path, [case.options.initializer])
        for schema in _distinct(schemas):
            required = [p.name for p in schema.inputs if not p.optional]
            for name in required:
                if name not in case.inputs:
                    self.problem((*path, "inputs"), f"{schema.name} needs the input {name!r}")
        for name, given in case.inputs.items():
            at = (*path, "inputs", name)
            if name not in self.input_names():
                self.problem(at, f"{self.operator} has no input {shown(name)}", given=name, allowed=self.input_names())
            elif case.validity is not Validity.INVALID:
                self.dtype((*at, "dtype"), name, given.dtype, schemas, every=True)
            self.elements(at, given)
        dtype = next(iter(schemas.values())).output_dtype({name: given.dtype for name, given in case.inputs.items()})
        if case.documents_output and dtype is not None:
            self.convert((*path, "output"), dtype, case.output, None)

    def elements(self, at: KeyPath, given: CaseInput) -> None:
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
        self.attributes(path, sweep.attributes, schemas, every=False)
        self.options(path, sweep.options.initializer)
        for schema in _distinct(schemas):
            for parameter in schema.inputs:
                if not parameter.optional and parameter.name not in sweep.inputs:
                    self.problem(path, f"the input {parameter.name!r} of {schema.name} is missing")
        for name, given in sweep.inputs.items():
            for position, dtype in enumerate(() if given.dtype == ALL or sweep.validity is Validity.INVALID else given.dtype):
                self.dtype((*path, name, "dtype", position), name, dtype, schemas, every=False)
        if (count := combinations(sweep, schemas)) > MAX_COMBINATIONS:
            self.problem(path, f"up to {count:,} combinations are above the limit of {MAX_COMBINATIONS:,} per sweep; shorten its lists")

    def attributes(self, path: KeyPath, names: Iterable[str], schemas: dict[int, OperatorSchema], *, every: bool) -> None:
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

    def options(self, path: KeyPath, initializers: Iterable[str | None]) -> None:
        for name in initializers:
            if name is not None and name not in self.input_names():
                at = (*path, "options", "initializer")
                self.problem(at, f"{self.operator} has no input {shown(name)}", given=name, allowed=self.input_names())

    def dtype(self, at: KeyPath, name: str, dtype: str, schemas: dict[int, OperatorSchema], *, every: bool) -> None:
        allowing = {n: dtype in parameter.dtypes for n, schema in schemas.items() if (parameter := schema.input(name))}
        if all(allowing.values()) if every else any(allowing.values()):
            return
        refusing = ", ".join(str(n) for n, allowed in allowing.items() if not allowed)
        parameters = [p for schema in schemas.values() if (p := schema.input(name))]
        allowed = [d for d in parameters[0].dtypes if all(d in p.dtypes for p in parameters)]
        self.problem(at, f"{self.operator} does not take {dtype} for {name!r} at opset {refusing}", allowed=allowed)


def _distinct(schemas: dict[int, OperatorSchema]) -> Iterable[OperatorSchema]:
    """Return one schema for each set of inputs."""
    return {s.inputs: s for s in schemas.values()}.values()


def _well_formed(file: Source, key: str, kind: type[Any]) -> Iterator[tuple[KeyPath, Any]]:
    entries = file.tree.get(key)
    adapter = TypeAdapter(kind)
    for position, entry in enumerate(entries if isinstance(entries, tuple) else ()):
        try:
            yield (key, position), adapter.validate_python(entry)
        except ValidationError:
            continue  # reported by the validation of the whole file


def combinations(sweep: Sweep, schemas: dict[int, OperatorSchema]) -> int:
    """Return an upper bound of the combinations that a sweep expands to, without expanding it."""
    total = len(schemas)
    for name, given in sweep.inputs.items():
        allowed = max((len(p.dtypes) for schema in schemas.values() if (p := schema.input(name))), default=1)
        total *= allowed if given.dtype == ALL else len(given.dtype)
        total *= _length(given.shape) * _length(given.extent) * _length(given.outer) * _length(given.values)
        total *= _range(sweep) if given.tuple_ == ALL else _length(given.tuple_)
    for values in sweep.attributes.values():
        total *= 2 * _range(sweep) if values == ALL else len(values)
    return total * math.prod(len(getattr(sweep.options, name)) for name in type(sweep.options).model_fields)


def _length(alternatives: Sequence[Any] | None) -> int:
    return 1 if alternatives is None else len(alternatives)


def _range(sweep: Sweep) -> int:
    """Return the largest rank of any input: `all` axes are at most twice as many, `all` index tuples at most as many."""
    inputs: Iterable[SweepInput] = sweep.inputs.values()
    return max((len(shape) for given in inputs for shape in given.shape or ()), default=1) or 1
