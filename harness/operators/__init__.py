"""The operators that the harness knows: collects `OPERATOR`, or several as `OPERATORS`, from every module
here; each has a file in `specs/`.

The environment variable `HARNESS_OPERATORS` names folders with further modules, for operators of your own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from harness.operators.base import Operator

VARIABLE = "HARNESS_OPERATORS"


def _modules() -> Iterator[ModuleType]:
    for found in iter_modules(__path__):
        yield import_module(f"{__name__}.{found.name}")
    for folder in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        for path in sorted(Path(folder).glob("*.py")):
            yield _loaded(path)


def _loaded(path: Path) -> ModuleType:
    """Import a file as `harness_operators.<its name>`."""
    spec = spec_from_file_location(f"harness_operators_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _collected() -> dict[str, Operator]:
    found: dict[str, Operator] = {}
    for module in _modules():
        one: Operator | None = getattr(module, "OPERATOR", None)
        for operator in (*getattr(module, "OPERATORS", ()), *([one] if one is not None else [])):
            found[operator.name] = operator
    return dict(sorted(found.items()))


OPERATORS: dict[str, Operator] = _collected()
