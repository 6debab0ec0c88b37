"""Make `harness/model/data/contributed_operators.json` again: the signatures of ONNX Runtime's own operators, as the
installed onnxruntime states them. `python -m tools.contributed_operators` writes the file, a line an operator."""

from __future__ import annotations

import json
from pathlib import Path

from onnx.defs import get_all_schemas_with_history

from harness.model.signatures import FILE
from harness.targets.contributed import installed
from harness.worker.signatures import listed

FUNCTIONS = tuple(f"com.microsoft.{name}" for name in ("BiasGelu", "FastGelu", "Gelu", "QuickGelu"))
"""Those that ONNX Runtime defines by a body of other operators as well, which its schemas do not tell."""
LAYOUTS = ("com.microsoft.nchwc", "com.ms.internal.nhwc")
"""The domains of operators that the optimizer makes for another layout, and no model has."""
PATH = Path(__file__).parent.parent / "harness" / "model" / "data" / FILE


def text() -> str:
    """Return what the file should say."""
    version, found = installed()
    for name in FUNCTIONS:
        found[name]["function"] = True
    lines = [f'"{name}":{json.dumps(each, separators=(",", ":"))}' for name, each in found.items()]
    earlier = json.dumps(_earlier())
    layouts = json.dumps(
        sorted({each["name"] for each in listed(*LAYOUTS)["operators"] if each["name"].startswith(LAYOUTS)})
    )
    return (
        f'{{"onnxruntime":"{version}",\n"layouts":{layouts},\n"earlier":{earlier},\n"operators":{{\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )


def _earlier() -> list[str]:
    """Return the operators that the release has before ONNX's first version of them, which has the same attributes."""
    first = {
        schema.name: schema
        for schema in sorted(get_all_schemas_with_history(), key=lambda one: -one.since_version)
        if not schema.domain
    }
    return sorted(
        each["name"]
        for each in listed()["operators"]
        if (known := first.get(each["name"])) is not None
        and each["since"] < known.since_version
        and each["attributes"].keys() == known.attributes.keys()
    )


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8", newline="\n")
