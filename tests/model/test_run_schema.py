"""The published JSON Schema of the lines of a run file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec

from harness.model.header import End, Header
from harness.model.run_schema import run_json_schema
from harness.model.target_info import TargetInfo
from tests import synthetic

_SCHEMA = Path(__file__).parents[2] / "docs" / "run.schema.json"


def test_the_checked_in_schema_is_fresh() -> None:
    assert _SCHEMA.read_text(encoding="utf-8") == run_json_schema(), (
        "run: python -m harness.model.run_schema > docs/run.schema.json"
    )


def test_lines_satisfy_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(_SCHEMA.read_text(encoding="utf-8")))
    header = Header(1, "id", "harness run", 0, {"specs": "0"}, {"cpu": TargetInfo("CPUExecutionProvider")})
    for record in (
        header,
        synthetic.result("Round@11:case=a;X=float32[1]"),
        End(1, 1, {}, {"pass": 1}, {"expected": 1}),
    ):
        validator.validate(json.loads(msgspec.json.encode(record)))
    assert not validator.is_valid({"type": "result", "case": "x"})
