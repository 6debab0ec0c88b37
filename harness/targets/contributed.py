"""The signatures of ONNX Runtime's own operators and of ONNX's for machine learning, as the installed onnxruntime states
them, and how they differ from those that the harness knows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx.defs

from harness.model.onnx_schemas import default_of, dtypes_of
from harness.model.reference.files import data_file
from harness.model.signatures import FILE, release

DOMAINS = ("ai.onnx.ml", "com.microsoft")
_SCRIPT = Path(__file__).parent.parent / "worker" / "signatures.py"
_MAP = re.compile(r"map\((?P<keys>\w+), ?(tensor\()?(?P<values>\w+)")
_MARKS = {("Opt", True): "?", ("Var", True): "+", ("Var", False): "*"}
"""By the first letters of a formal parameter's option, and whether all tensors have one type."""


def installed() -> tuple[str, dict[str, Any]]:
    """Return the installed release and by operator its signature as `harness.model.signatures` describes it, of those
    that ONNX does not define."""
    command = [sys.executable, str(_SCRIPT), *DOMAINS]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    defined = onnx.defs.get_all_schemas_with_history()
    known = {schema.name for schema in defined if not schema.domain}
    withdrawn = {
        (f"{schema.domain}.{schema.name}", schema.since_version) for schema in defined if schema.deprecated
    }
    found: dict[str, Any] = {}
    for each in sorted(listed["operators"], key=lambda one: (one["name"], one["since"])):
        name = each["name"]
        if name.startswith(DOMAINS) and (name, each["since"]) not in withdrawn:
            found[name] = _since(_signature(each), found.get(name))  # the newest version
        elif name not in known:
            found.setdefault(name, _signature(each))
    return str(listed["onnxruntime"]), found


def _signature(each: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {key: [_parameter(*one) for one in each[key]] for key in ("inputs", "outputs")}
    made["types"] = _types(each["types"])
    made["attributes"] = {key: _attribute(*one) for key, one in sorted(each["attributes"].items())}
    return made | ({"since": each["since"]} if each["since"] > 1 else {})


def _since(newest: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """Return a signature as that of an earlier version too, if the newest has only more attributes and types."""
    if before is None or any(
        newest["attributes"].get(key) != each for key, each in before["attributes"].items()
    ):
        return newest
    since = before.get("since", 1)
    return {key: each for key, each in newest.items() if key != "since"} | (
        {"since": since} if since > 1 else {}
    )


def _types(constraints: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the element types by type parameter; those of a map's keys and values are two."""
    found = {}
    for name, texts in sorted(constraints.items()):
        maps = [_MAP.search(text) for text in texts]
        if all(maps):
            for part in ("keys", "values"):
                found[f"{name}.{part}"] = dtypes_of(f"tensor({each[part]})" for each in maps if each)
        else:
            found[name] = dtypes_of(texts)
    return found


def _parameter(name: str, type_: str, option: str, alike: bool) -> str:
    own = dtypes_of((type_,))
    return f"{name}: {own[0] if own else type_}{_MARKS.get((option[:3], alike), '')}"


def _attribute(type_: str, default: str, required: bool) -> list[Any]:
    value = default_of(onnx.AttributeProto.FromString(bytes.fromhex(default)))
    return [type_, value, required] if required else [type_, value] if value is not None else [type_]


def changes() -> Iterator[str]:
    """Yield a line for each operator whose signature the installed release states otherwise than the harness."""
    version, found = installed()
    known = {name: json.loads(bytes(raw)) for name, raw in data_file(FILE).operators.items()}
    for each in known.values():
        each.pop("function", None)  # which no schema tells
    for name in sorted(known.keys() | found.keys()):
        before, now = known.get(name), json.loads(json.dumps(found.get(name)))
        if before == now:
            continue
        if before is None or now is None:
            what = "is new" if before is None else "is gone"
        else:
            before, now = ({**one.pop("attributes"), **one} for one in (before, now))
            parts = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
            what = f"has other {', '.join(parts)}"
        yield f"{name} {what} in onnxruntime {version}; the harness knows the signatures of {release()}"
