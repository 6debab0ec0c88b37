"""The JSON Schema of a run file's lines, `docs/run.schema.json`."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from harness.model.header import End, Header
from harness.model.result import Result


def run_json_schema() -> str:
    """Return the JSON Schema of a run file's lines, as the text of `docs/run.schema.json`."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a run file",
        **msgspec.json.schema(_Line),
    }
    return msgspec.json.format(msgspec.json.encode(_dedented(schema)), indent=2).decode() + "\n"


def _dedented(schema: Any) -> Any:
    """Return a schema whose descriptions, which are docstrings, have no indentation: Python 3.13 takes it
    away, older ones do not."""
    if isinstance(schema, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" else _dedented(value)
            for key, value in schema.items()
        }
    return [_dedented(value) for value in schema] if isinstance(schema, list) else schema


_Line = Header | Result | End


if __name__ == "__main__":
    print(run_json_schema(), end="")
