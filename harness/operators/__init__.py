"""The operators that the harness knows: collects `OPERATOR`, or several as `OPERATORS`, from every module of
`CLASSES`; each has a file in `specs/`.

Here is what the classes share: the contract (`base`), the ways to judge (`formulas`), kinds of elements, general
families. `bounded` computes with bounds, `directml` lowers calls, `deviations` has what providers compute instead.

The environment variable `HARNESS_OPERATORS` names folders with further modules, for operators of your own. A
module that replaces operators of the harness names them: `REPLACES = {"Softmax"}`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from harness.model import signatures
from harness.model.errors import UsageError, naming
from harness.operators.base import Family, Operator

VARIABLE = "HARNESS_OPERATORS"
CLASSES = (
    "attention", "contrib", "data_movement", "elementwise", "generation", "image", "machine_learning",
    "normalization", "pooling", "products", "quantization", "recurrence", "reduction", "sequence", "signal",
    "text",
)  # fmt: skip
"""The folders with formulas, as ONNX's documentation divides operators; `contrib` has those of com.microsoft."""


def _own_modules() -> tuple[Path, ...]:
    folders = [Path(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{VARIABLE}: {folder}: there is no such folder")
    found: list[Path] = []
    for folder in folders:
        with naming(f"{VARIABLE}: {folder}", "read"):
            found += sorted(path.absolute() for path in folder.iterdir() if path.suffix == ".py")
    return tuple(found)


def _loaded(path: Path) -> ModuleType:
    """Import a file as `harness_operators.<its name>`."""
    spec = spec_from_file_location(f"harness_operators_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def modules() -> Iterator[str]:
    """Yield the name of each module that may define operators."""
    for package in (f"{__name__}.{each}" for each in CLASSES):
        yield from (found.name for found in iter_modules(import_module(package).__path__, f"{package}."))


def operators_of(module: ModuleType) -> dict[str, Operator]:
    """Return the operators that a module defines, by name. Errors: TypeError for an object that is no Operator, or whose name
    or family is of another type."""
    one: Operator | None = getattr(module, "OPERATOR", None)
    found = (*getattr(module, "OPERATORS", ()), *([one] if one is not None else []))
    for each in found:
        if not isinstance(each, Operator):
            raise TypeError(f"expected an Operator, not {each!r}")
        for part, type_ in (("name", str), ("family", Family)):
            if not isinstance(getattr(each, part), type_):
                raise TypeError(
                    f"Operator {each.name!r}: {part} should be a {type_.__name__}, not {getattr(each, part)!r}"
                )
    return {operator.name: operator for operator in found}


def _collected() -> dict[str, Operator]:
    found: dict[str, Operator] = {}
    for name in modules():
        found |= operators_of(import_module(name))
    _register(found)
    places = dict.fromkeys(found, "the harness")
    for path in OWN_MODULES:
        try:
            module = _loaded(path)
            own, replaced = operators_of(module), set(getattr(module, "REPLACES", ()))
            _register(own)
        except (Exception, SystemExit) as error:  # whatever a module of the user raises is the user's
            said = " ".join(str(error).split())
            raise UsageError(f"{_place(error, path)}: {type(error).__name__}: {said}") from error
        for name in own:
            if name in places and not (places[name] == "the harness" and name in replaced):
                how = (
                    f'; to replace it, write REPLACES = {{"{name}"}}' if places[name] == "the harness" else ""
                )
                raise UsageError(f"{path}: {name} is an operator of {places[name]} already{how}")
            places[name] = str(path)
        found |= own
    return dict(sorted(found.items()))


def _register(operators: dict[str, Operator]) -> None:
    for operator in operators.values():
        if operator.signature is not None:
            signatures.register(operator.name, operator.signature)


def _place(error: BaseException, path: Path) -> str:
    """Return file and line where a module failed."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.filename}:{error.lineno}"
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == str(path)]
    return f"{path}:{lines[-1] if lines else 1}"


OWN_MODULES = _own_modules()
"""The modules of `HARNESS_OPERATORS`."""
OPERATORS: dict[str, Operator] = _collected()
COLLECTED = dict(OPERATORS)
"""Those of modules; a graph joins `OPERATORS` when its spec is read."""
