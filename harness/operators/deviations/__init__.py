"""Formulas of known deviations: the results that a target gives in place of an operator's.

An expectation names one with `gives`; the target's outputs are then held against it as they are held against
the operator's own formula, exactly or within its bound. A formula may ask the operator's own one of another
call: `asked.formula(inputs=…)` with inputs cut to fewer bits, `asked.formula(axis=0)` with another attribute.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from harness.operators.deviations.base import DEVIATIONS, Deviating

for _found in iter_modules(__path__):
    import_module(f"{__name__}.{_found.name}")

__all__ = ["DEVIATIONS", "Deviating"]
