"""Make `harness/model/data/attribute_defaults.json` again:
what ONNX's operators take for attributes that a node leaves out, from `onnx.defs`.

`python -m tools.attribute_defaults` writes the file; defaults that are lists or tensors are left out, since
no rule speaks of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.defs

FILE = Path(__file__).parent.parent / "harness" / "model" / "data" / "attribute_defaults.json"
_TYPES = ("INT", "FLOAT", "STRING")


def defaults() -> dict[str, dict[str, dict[str, int | str]]]:
    """Return the defaults by operator of ONNX's default domain, since-version and attribute; floats are
    written as in case ids."""
    found: dict[str, dict[str, dict[str, int | str]]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain:
            continue
        values: dict[str, int | str] = {}
        for name, attribute in schema.attributes.items():
            if str(attribute.type).rpartition(".")[2] in _TYPES and attribute.default_value.name:
                value = onnx.helper.get_attribute_value(attribute.default_value)
                values[name] = (
                    value.decode()
                    if isinstance(value, bytes)
                    else value
                    if isinstance(value, int)
                    else written(value)
                )
        if values or found.get(schema.name):
            found.setdefault(schema.name, {})[str(schema.since_version)] = dict(sorted(values.items()))
    return {
        name: dict(sorted(versions.items(), key=lambda item: int(item[0])))
        for name, versions in sorted(found.items())
    }


def written(value: float) -> str:
    """Write a float32 as a case id does: with as few digits as tell it from its neighbours."""
    import numpy as np

    return str(float(str(np.float32(value))))


def text() -> str:
    """Return what the file should say: a line an operator."""
    lines = [
        f'"{name}":{json.dumps(versions, separators=(",", ":"))}' for name, versions in defaults().items()
    ]
    return f'{{"onnx":"{onnx.__version__}",\n"operators":{{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8", newline="\n")
