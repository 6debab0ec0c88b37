"""The sweeps of a spec: those that it writes out, and those of the families that it uses.

`families/<name>.yaml` beside the specs holds a family's sweeps, in the format of a spec's. Inputs are named
by their position, `input_0`, `input_1`, since each operator has its own names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harness.model.case import CONSTANTS
from harness.model.errors import SpecError
from harness.operators.base import Operator
from harness.specs.reading import source
from harness.specs.reading.entry_schema import Sweep, SweepInput, Use
from harness.specs.reading.load import LoadedSpec, checked, default_folder
from harness.specs.reading.problems import validation_problems
from harness.specs.reading.schema import Spec

_PLACE = re.compile(r"input_(\d+)\Z")
_SWEEPS = TypeAdapter(tuple[Sweep, ...], config=ConfigDict(defer_build=True))


def folder() -> Path:
    """Return where the sweeps of families stand."""
    return default_folder() / "families"


def families() -> list[str]:
    """Return the families that have sweeps."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def sweeps_of(spec: LoadedSpec, operator: Operator, problems: list[str]) -> Iterator[tuple[int, Sweep]]:
    """Yield the sweeps of a spec, each with the number of its entry; add problems of a `use` to
    `problems`."""
    for number, entry in enumerate(spec.model.sweeps):
        if isinstance(entry, Sweep):
            yield number, entry
            continue
        if entry.use not in families():
            what = f"no family has sweeps of the name {entry.use!r}"
            problems.append(
                spec.problem(("sweeps", number, "use"), what, given=entry.use, allowed=families())
            )
            continue
        known = {sweep.name for sweep in family_sweeps(entry.use)}
        for place, name in enumerate(entry.without):
            if name not in known:
                what = f"the family {entry.use} has no sweep {name!r}"
                problems.append(
                    spec.problem(
                        ("sweeps", number, "without", place), what, given=name, allowed=sorted(known)
                    )
                )
        yield from ((number, _used(spec, operator, entry, sweep)) for sweep in sweeps_in(entry))


def named_sweeps(spec: Spec) -> Iterator[Sweep]:
    """Return the sweeps whose names the cases of a spec carry: its own, and those of the families that it
    uses, as they stand there."""
    return (sweep for entry in spec.sweeps for sweep in sweeps_in(entry))


def sweeps_in(entry: Sweep | Use) -> list[Sweep]:
    """Return the sweeps that an entry stands for, as they are written: itself, or those of the family that it uses."""
    if isinstance(entry, Sweep):
        return [entry]
    return [sweep for sweep in family_sweeps(entry.use) if sweep.name not in entry.without]


@cache
def family_sweeps(name: str) -> tuple[Sweep, ...]:
    """Read the sweeps of a family. Errors: SpecError."""
    path = folder() / f"{name}.yaml"
    return checked(path, source.label_of(path), source.contents(path), _checked)[1]


def _checked(file: source.Source) -> tuple[Sweep, ...]:
    try:
        return _SWEEPS.validate_python(file.tree)
    except ValidationError as error:
        raise SpecError(file.by_line(validation_problems(file, error, Sweep))) from error


def _named(key: str, names: list[str]) -> str | None:
    """Return an operator's name for the input at a place, `input_1`; None if it has no such input; any other name
    unchanged."""
    place = _PLACE.match(key)
    if place is None:
        return key
    return names[int(place[1])] if int(place[1]) < len(names) else None


def _used(spec: LoadedSpec, operator: Operator, entry: Use, sweep: Sweep) -> Sweep:
    """Return a family's sweep as an operator uses it: its inputs under the operator's names, what the entry
    gives in place of its own."""
    schema = spec.schema(spec.opsets[-1])
    names = [parameter.name for parameter in schema.inputs]
    inputs = {name: given for key, given in sweep.inputs.items() if (name := _named(key, names)) is not None}
    for name, given in entry.inputs.items():
        own = inputs.get(name, SweepInput())
        inputs[name] = own.model_copy(update={key: getattr(given, key) for key in given.model_fields_set})
    known = {name for opset in spec.opsets for name in spec.schema(opset).attributes} | set(names)
    attributes = {name: value for name, value in sweep.attributes.items() if name in known} | entry.attributes
    initializers = [None if key is None else _named(key, names) for key in sweep.options.initializer]
    initializers = [key for key in initializers if key != CONSTANTS or operator.constants] or [None]
    options = sweep.options.model_copy(update={"initializer": tuple(dict.fromkeys(initializers))})
    changed: dict[str, Any] = {"attributes": attributes, "options": options}
    if sweep.opsets is None and entry.opsets is not None:
        changed["opsets"] = entry.opsets
    if entry.budget is not None:
        changed["budget"] = entry.budget
    made = sweep.model_copy(update=changed)
    object.__setattr__(made, "__pydantic_extra__", inputs)
    return made
