"""`docs/operators.md` is that of the specs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.specs.reading.load import load_specs
from tools.operators import formula_modules, page

PAGE = Path(__file__).parents[2] / "docs/operators.md"


def test_every_operator_has_its_row() -> None:
    rows = re.findall(
        r"^\| \[(\w+)\]\(\.\./specs/(?:([\w.]+)/)?\1\.yaml\) \| ([\d, ]+) \|.*\[([\w/]+)\.py\]",
        PAGE.read_text("utf-8"),
        re.M,
    )
    modules = formula_modules()
    assert [(f"{domain}.{name}".strip("."), *rest) for name, domain, *rest in rows] == [
        (spec.model.operator, ", ".join(map(str, spec.opsets)), modules[spec.model.operator])
        for spec in load_specs(())
        if spec.graph is None
    ]


@pytest.mark.slow
def test_the_page_is_fresh() -> None:
    assert "\n".join(page()).rstrip() + "\n" == PAGE.read_text("utf-8"), "python -m tools.operators"
