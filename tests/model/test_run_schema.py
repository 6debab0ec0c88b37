"""The lines of a run file: what cannot be represented, and the published JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from harness.model.case import Validity
from harness.model.header import End, Header
from harness.model.result import Result
from harness.model.run_schema import run_json_schema
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict

_SCHEMA = Path(__file__).parents[2] / "docs" / "run.schema.json"
_RESULT_KEYS = [
    *(
        "type",
        "case",
        "operator",
        "target",
        "validity",
        "levels",
        "outcome",
        "verdict",
        "stage",
        "placed_on",
        "error",
        "diff",
        "seconds",
    ),
]


def _result(outcome: Outcome, placed_on: str | None) -> Result:
    return Result(
        case="Round@11:case=a;X=float32[1]",
        operator="Round",
        target="cpu",
        validity=Validity.VALID,
        levels={"directml": "2_1"},
        outcome=outcome,
        verdict=Verdict.EXPECTED,
        placed_on=placed_on,
    )


def test_a_pass_without_a_proven_provider_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="proven provider"):
        _result(Outcome.PASS, None)
    assert _result(Outcome.REJECTED, None).placed_on is None


def test_a_pass_without_a_proven_provider_cannot_be_read() -> None:
    line = msgspec.json.encode(_result(Outcome.PASS, "CPUExecutionProvider")).replace(
        b'"CPUExecutionProvider"', b"null"
    )
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=Result)


def test_a_result_has_exactly_the_published_keys() -> None:
    assert (
        list(json.loads(msgspec.json.encode(_result(Outcome.PASS, "CPUExecutionProvider")))) == _RESULT_KEYS
    )


def test_the_checked_in_schema_is_fresh() -> None:
    assert _SCHEMA.read_text(encoding="utf-8") == run_json_schema(), (
        "run: python -m harness.model.run_schema > docs/run.schema.json"
    )


def test_lines_satisfy_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(_SCHEMA.read_text(encoding="utf-8")))
    header = Header(1, "id", "harness run", 0, {"specs": "0"}, {"cpu": TargetInfo("CPUExecutionProvider")})
    for record in (
        header,
        _result(Outcome.PASS, "CPUExecutionProvider"),
        End(1, 1, {}, {"pass": 1}, {"expected": 1}),
    ):
        validator.validate(json.loads(msgspec.json.encode(record)))
    assert not validator.is_valid({"type": "result", "case": "x"})
