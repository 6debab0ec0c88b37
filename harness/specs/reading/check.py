"""Checks a spec against ONNX's definition of its operator, and its literal values against their dtypes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from harness.model import onnx_schemas
from harness.model.case import Validity
from harness.model.caseid import value_text
from harness.model.onnx_schemas import OpsetUnavailable, UnknownOperator
from harness.model.operator_schema import OperatorSchema
from harness.specs.reading import literals
from harness.specs.reading.attribute_values import WrongValue, alternatives, typed
from harness.specs.reading.entry_schema import CaseInput, LiteralCase, Sweep, SweepInput, Use
from harness.specs.reading.schema import Spec
from harness.specs.reading.schema_types import ALL
from harness.specs.reading.source import KeyPath, Source, shown
from harness.specs.reading.stored import stored_array

MAX_COMBINATIONS = 1 << 24
_LETTERS = 3000
"""Letters of an attribute in an id that people read."""
_MAX_PER_TENSOR = 3


class Checks:
    """What the format alone cannot say; works on the parts of a file that are well-formed, so that one
    mistake hides few others."""

    def __init__(self, file: Source) -> None:
        self.file = file
        self.problems: list[str] = []
        self.operator, domain = file.tree.get("operator"), file.tree.get("domain")
        if domain and isinstance(self.operator, str):
            self.operator = f"{domain}.{self.operator}"
        self.opsets = self._opsets(file.tree.get("opsets"))

    def problem(
        self, path: KeyPath, what: str, *, given: str | None = None, allowed: Iterable[str] = ()
    ) -> None:
        """Note a problem at its line."""
        self.problems.append(self.file.problem(path, what, given=given, allowed=allowed))

    def _opsets(self, opsets: Any) -> dict[int, OperatorSchema]:
        """Return the operator's schema at each opset of the spec that has one."""
        found: dict[int, OperatorSchema] = {}
        if not isinstance(self.operator, str) or not self.operator:
            return found
        if opsets == ALL:
            opsets = onnx_schemas.opsets_of_versions(self.operator)
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
                if opset in found and "." not in self.operator and opset not in onnx_schemas.IR_VERSIONS:
                    what = f"a run cannot do opset {opset}: its IR version is not known"
                    self.problem(("opsets", position), what, allowed=map(str, onnx_schemas.IR_VERSIONS))
        if not found and self.operator not in (names := onnx_schemas.operator_versions()):
            self.problem(
                ("operator",),
                f"ONNX has no operator {shown(self.operator)}"
                if "." not in str(self.operator)
                else f"the harness does not know {shown(self.operator)}: write its formula and its signature in a module of a folder "
                "that HARNESS_OPERATORS names (docs/specs.md, An operator of your own)",
                given=self.operator,
                allowed=names,
            )
        return found

    def input_names(self) -> list[str]:
        """Return the operator's inputs, at any of the opsets."""
        return list(dict.fromkeys(p.name for schema in self.opsets.values() for p in schema.inputs))

    def sweep_keys(self) -> None:
        """Report keys of sweeps that are neither the format's nor an input, and drop them, or they would be
        read as inputs."""
        inputs = self.input_names()
        sweeps = self.file.tree.get("sweeps")
        for position, sweep in enumerate(sweeps if isinstance(sweeps, tuple) and inputs else ()):
            if not isinstance(sweep, dict):
                continue
            fields = list((Use if "use" in sweep else Sweep).model_fields)
            for key in [each for each in sweep if each not in fields and each not in inputs]:
                what = f"unknown key {shown(key)}; it is no input of {self.operator} either"
                self.problem(("sweeps", position, key), what, given=key, allowed=[*fields, *inputs])
                del sweep[key]

    def entries(self, model: Spec | None) -> None:
        """Check every entry: a well-formed one in full, of others at least the names in it; `model` is the file's where
        all are well-formed."""
        for path, raw, kind in _entries(self.file):
            try:
                entry = kind.model_validate(raw) if model is None else getattr(model, str(path[0]))[path[1]]
            except ValidationError:  # reported by the validation of the whole file
                self.names(path, raw, kind)
                continue
            for position, opset in enumerate(entry.opsets or ()):
                if self.opsets and opset not in self.opsets:
                    self.problem(
                        (*path, "opsets", position),
                        f"opset {opset} is not one of the spec's",
                        allowed=map(str, self.opsets),
                    )
            schemas = {n: s for n, s in self.opsets.items() if entry.opsets is None or n in entry.opsets}
            if not schemas:
                continue
            if isinstance(entry, Use):  # words, since a sweep of its family may cover
                self._attributes(path, entry.attributes, schemas, every=False, alternatives_=True, words=True)
                continue
            if entry.directml is not None:  # it has no opset, and stands once, at the newest
                schemas = dict(list(schemas.items())[-1:])
            if isinstance(entry, Sweep):
                self.sweep(path, entry, schemas)
            else:
                self.case(path, entry, schemas)

    def names(self, path: KeyPath, raw: object, kind: type[LiteralCase | Sweep | Use]) -> None:
        """Check attribute and input names of an entry that is not well-formed."""
        if not isinstance(raw, dict) or not self.opsets:
            return
        if isinstance(attributes := raw.get("attributes"), dict):
            self._attributes(
                path, attributes, self.opsets, every=False, alternatives_=kind is not LiteralCase
            )
        if kind is LiteralCase and isinstance(inputs := raw.get("inputs"), dict):
            self.inputs(path, inputs, self.opsets)

    def inputs(self, path: KeyPath, names: Collection[str], schemas: dict[int, OperatorSchema]) -> None:
        """Check that the inputs of a literal case are the operator's."""
        for name in names:
            if name not in self.input_names():
                what = f"{self.operator} has no input {shown(name)}"
                self.problem((*path, "inputs", name), what, given=name, allowed=self.input_names())
        for name in dict.fromkeys(p.name for schema in schemas.values() for p in schema.inputs if p.needed):
            if name not in names:
                self.problem((*path, "inputs"), f"{self.operator} needs the input {name!r}")

    def case(self, path: KeyPath, case: LiteralCase, schemas: dict[int, OperatorSchema]) -> None:
        """Check a literal case; all its inputs and attributes must exist at every opset that it runs at."""
        self._attributes(path, case.attributes, schemas, every=True)
        self.inputs(path, case.inputs, schemas)
        for name, each in case.inputs.items():
            for number, given in enumerate(each):
                at = (*path, "inputs", name) if len(each) == 1 else (*path, "inputs", name, number)
                if (
                    name in self.input_names()
                    and case.validity is not Validity.INVALID
                    and case.directml is None
                ):
                    self._dtype((*at, "dtype"), name, given.dtype, schemas, every=True)
                self.elements(at, given)
        if case.documents_output and case.validity is Validity.INVALID:
            self.problem((*path, "output"), "an invalid case has no output")
        self._outputs(path, case, next(iter(schemas.values())))

    def _outputs(self, path: KeyPath, case: LiteralCase, schema: OperatorSchema) -> None:
        """Check the documented results whose element types the inputs decide."""
        inputs = {name: each[0].dtype for name, each in case.inputs.items()}
        if case.documents_output and (dtype := schema.output_dtype(inputs)) is not None:
            self.documented((*path, "output"), dtype, case.output)
        names = [parameter.name for parameter in schema.outputs]
        for name, values in case.outputs.items():
            formal = name.partition(".")[0]
            if formal not in names:
                self.problem(
                    (*path, "outputs", name),
                    f"{self.operator} has no output {shown(name)}",
                    given=name,
                    allowed=names,
                )
            elif (dtype := schema.output_dtype(inputs, names.index(formal))) is not None:
                self.documented((*path, "outputs", name), dtype, values)

    def elements(self, at: KeyPath, given: CaseInput) -> None:
        """Check the written-out elements of an input."""
        if given.fill is not None:
            return
        at = (*at, "values" if given.file is None else "file")
        try:
            if given.file is not None:
                stored_array(self.file.path.parent, given)
            elif not literals.to_array(given.dtype, given.values, given.shape).size and given.shape is None:
                self.problem(at, "an empty tensor needs a 'shape'")
        except literals.LiteralError as error:
            self._wrong_elements(at, error)

    def documented(self, at: KeyPath, dtype: str, given: Any) -> None:
        """Report the problems of a documented result."""
        try:
            literals.documented_array(dtype, given)
        except literals.LiteralError as error:
            self._wrong_elements(at, error)

    def _wrong_elements(self, at: KeyPath, error: literals.LiteralError) -> None:
        for below, what in error.problems[:_MAX_PER_TENSOR]:
            self.problem((*at, *below), what)
        if len(error.problems) > _MAX_PER_TENSOR:
            self.problem(at, f"{len(error.problems) - _MAX_PER_TENSOR} more of its elements are wrong")

    def sweep(self, path: KeyPath, sweep: Sweep, schemas: dict[int, OperatorSchema]) -> None:
        """Check a sweep; its inputs and attributes must exist at one of its opsets, since impossible
        combinations are left out."""
        covering = sweep.cover is not None
        self._attributes(path, sweep.attributes, schemas, every=False, alternatives_=True, words=covering)
        for name in dict.fromkeys(p.name for schema in schemas.values() for p in schema.inputs if p.needed):
            if name not in sweep.inputs and name not in sweep.attributes:
                self.problem(path, f"the input {name!r} of {self.operator} is missing")
        for name, given in sweep.inputs.items():
            free = (
                given.dtype in (ALL, None) or sweep.validity is Validity.INVALID or sweep.directml is not None
            )
            for position, dtype in enumerate(() if free else given.dtype or ()):
                self._dtype((*path, name, "dtype", position), name, dtype, schemas, every=False)
        if sweep.cover is None and (count := combinations(sweep, schemas)) > MAX_COMBINATIONS:
            self.problem(
                path,
                f"up to {count:,} combinations are above the limit of {MAX_COMBINATIONS:,} per sweep; shorten its lists",
            )

    def _attributes(
        self,
        path: KeyPath,
        given: Mapping[str, Any],
        schemas: dict[int, OperatorSchema],
        *,
        every: bool,
        alternatives_: bool = False,
        words: bool = False,
    ) -> None:
        """Check names and values; in a sweep an input that decides shapes may stand among the attributes."""
        known = list(dict.fromkeys(name for schema in self.opsets.values() for name in schema.attributes))
        for name, listed in given.items():
            at = (*path, "attributes", name)
            value = _without_words(listed) if words else listed
            having = [n for n, schema in schemas.items() if name in schema.attributes]
            if name in known and (what := self._wrong_value(name, value, alternatives_)):
                self.problem(at, what)
            elif alternatives_ and name in self.input_names():
                continue
            elif name not in known:
                self.problem(at, f"{self.operator} has no attribute {shown(name)}", given=name, allowed=known)
            elif not having or (every and len(having) < len(schemas)):
                lacking = [n for n in schemas if n not in having]
                hint = f"; restrict 'opsets' to {having}" if having else ""
                self.problem(
                    at,
                    f"{self.operator} has no attribute {shown(name)} at opset {', '.join(map(str, lacking))}{hint}",
                )

    def _wrong_value(self, name: str, given: Any, alternatives_: bool) -> str | None:
        """Say why a value is none of an attribute's type."""
        kind = next(
            schema.attributes[name].type for schema in self.opsets.values() if name in schema.attributes
        )
        if alternatives_ and given == ALL and kind != "STRING":
            return None
        try:
            found = alternatives(kind, given) if alternatives_ else (typed(kind, given),)
        except WrongValue as wrong:
            if alternatives_:
                return str(wrong).replace("an integer, not", "an integer or 'all', not")
            return str(wrong)
        letters = max((len(value_text(each)) for each in found if each is not None), default=0)
        if alternatives_ and letters > _LETTERS:
            return f"an id holds {_LETTERS:,} letters of an attribute, and a value has {letters:,}; write a literal case"
        return None

    def _dtype(
        self, at: KeyPath, name: str, dtype: str, schemas: dict[int, OperatorSchema], *, every: bool
    ) -> None:
        allowing = {
            n: dtype in parameter.dtypes for n, schema in schemas.items() if (parameter := schema.input(name))
        }
        if all(allowing.values()) if every else any(allowing.values()):
            return
        refusing = ", ".join(str(n) for n, allowed in allowing.items() if not allowed)
        parameters = [p for schema in schemas.values() if (p := schema.input(name))]
        allowed = [d for d in parameters[0].dtypes if all(d in p.dtypes for p in parameters)]
        self.problem(
            at, f"{self.operator} does not take {dtype} for {name!r} at opset {refusing}", allowed=allowed
        )


def _without_words(listed: Any) -> Any:
    """Return the values of an attribute for which its operator has no words."""
    if not isinstance(listed, tuple):
        return ALL if isinstance(listed, str) else listed
    return tuple(value for value in listed if not isinstance(value, str)) or ALL


def _entries(file: Source) -> Iterator[tuple[KeyPath, object, type[LiteralCase | Sweep | Use]]]:
    for key in ("cases", "sweeps"):
        entries = file.tree.get(key)
        for position, entry in enumerate(entries if isinstance(entries, tuple) else ()):
            uses = isinstance(entry, dict) and "use" in entry
            yield (key, position), entry, LiteralCase if key == "cases" else Use if uses else Sweep


def combinations(sweep: Sweep, schemas: dict[int, OperatorSchema]) -> int:
    """Return an upper bound of the combinations that a sweep expands to, without expanding it."""
    total = len(schemas)
    for name, given in sweep.inputs.items():
        allowed = max((len(p.wide) for schema in schemas.values() if (p := schema.input(name))), default=1)
        total *= allowed if given.dtype == ALL else _length(given.dtype)
        total *= _length(given.values)
        if isinstance(given.shape, dict):
            total *= math.prod(
                _range(sweep) if listed == ALL else _length(listed) for listed in given.shape.values()
            )
        else:
            total *= _length(given.shape)
    if (asked := sweep.directml) is not None:
        total *= (
            len(asked.operator)
            * len(asked.dimension_count)
            * len(asked.in_place)
            * math.prod(map(len, asked.layout.values()))
        )
    for values in sweep.attributes.values():
        total *= 2 * _range(sweep) if values == ALL else _length(values)
    return total * math.prod(len(getattr(sweep.options, name)) for name in type(sweep.options).model_fields)


def _length(listed: Any) -> int:
    return len(listed) if isinstance(listed, tuple) else 1


def _range(sweep: Sweep) -> int:
    """Return the largest rank of any input: `all` axes are at most twice as many, `all` index tuples at most
    as many."""
    inputs: Iterable[SweepInput] = sweep.inputs.values()
    listed = [shape for given in inputs for shape in (given.shape if isinstance(given.shape, tuple) else ())]
    return max((len(shape) for shape in listed if isinstance(shape, tuple)), default=1) or 1
