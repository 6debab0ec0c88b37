"""Every class of the package has a name of its own, so that a name in a message or a traceback says which it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "harness"


def test_no_two_classes_share_a_name() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                found[statement.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
    assert len(found) > 200
