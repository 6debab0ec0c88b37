"""`docs/families.md` names every family with sweeps, every kind of values and every function with a bound."""

from __future__ import annotations

from pathlib import Path

from harness.model import onnx_schemas
from harness.operators import OPERATORS, bounded
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.family_sweeps import families, family_sweeps

PAGE = (Path(__file__).parents[2] / "docs/families.md").read_text("utf-8")


def test_everything_is_on_the_page() -> None:
    wanted = {*families(), *(name for name in bounded.__all__ if name.islower())}
    wanted |= {sweep.name for name in families() for sweep in family_sweeps(name)}
    for spec in load_specs(()):
        if spec.graph is not None:
            continue
        operator = OPERATORS[spec.model.operator]
        newest = onnx_schemas.opsets_of_versions(operator.name)[-1]
        for given in onnx_schemas.operator_schema(operator.name, newest).inputs:
            kinds = (
                *operator.family.kinds(operator, given.name),
                *operator.family.fills(operator, given.name),
            )
            wanted |= {kind.name for kind in kinds}
        for words in operator.family.words.values():
            wanted |= set(words)
    assert sorted(name for name in wanted if f"`{name}`" not in PAGE) == [], (
        "python -m tools.families > docs/families.md"
    )
