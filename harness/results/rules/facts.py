"""Packaged facts about an operator that complement a case's id: defaults that the id leaves out, inputs that
it omits, and roles."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

import msgspec

from harness.model.reference.feature_levels import load
from harness.model.reference.files import data_file
from harness.model.reference.kernels import formal_inputs

Role = Literal["dimension", "dimensions", "batch"]
_FILE = "attribute_defaults.json"


class Facts(NamedTuple):
    """Defaults of attributes as ids write them, and the names of all formal inputs, empty for an unknown
    operator."""

    defaults: dict[str, str]
    inputs: tuple[str, ...]


@cache
def facts(operator: str, opset: int) -> Facts:
    """Return the facts of an operator at an opset.

    An attribute that only later versions have stands with its default there: that is what earlier ones do.
    """
    found = data_file(_FILE).operators.get(operator)
    versions = {} if found is None else msgspec.json.decode(found, type=dict[int, dict[str, int | str]])
    since = max((version for version in versions if version <= opset), default=0)
    later = [versions[version] for version in sorted(versions, reverse=True) if version > since]
    defaults = {name: value for each in (*later, versions.get(since, {})) for name, value in each.items()}
    return Facts(
        {name: str(value) for name, value in defaults.items()},
        tuple(name for name, _ in formal_inputs(operator, opset)),
    )


@cache
def roles() -> dict[str, Role]:
    """Return the facts about an attribute, or about an input whose elements are known before a run, by
    name."""
    found: dict[str, Role] = load("roles.yaml")["attributes"]
    return found


@cache
def tuples(operator: str) -> str | None:
    """Return the input of an operator whose last dimension holds tuples that point into the first input."""
    found: dict[str, str] = load("roles.yaml")["tuples"]
    return found.get(operator)
