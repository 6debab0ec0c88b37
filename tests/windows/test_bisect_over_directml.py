"""`harness bisect --over directml` over real releases of onnxruntime-directml, in the Windows runtime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden import check_golden
from tests.running import harness

pytestmark = [pytest.mark.windows_runtime, pytest.mark.slow]

GOLDEN = Path(__file__).parent.parent / "golden"
_CASE = "Round@11:sweep=variants;X=float16[24];values=specials;variant=toward_zero"
"""A composed rounding mode on a multiple of 4 elements: DirectML fails the call from the release with ONNX
Runtime 1.17.1 on."""


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_release_that_broke_a_case_is_found() -> None:
    ended = harness("bisect", _CASE, "--over", "directml", "--good", "1.15.1", "--bad", "1.17.1")
    assert ended.code == 0, ended.err
    told = [line for line in ended.err.splitlines() if line.startswith("1.")]
    assert told == ["1.17.1: rejected", "1.15.1: pass", "1.16.3: pass"]
    check_golden(GOLDEN / "bisect_directml.txt", ended.out)


def test_a_query_tells_which_cases_broke() -> None:
    query = "Round@11:sweep=variants;X=float16"
    ended = harness(
        "bisect", query, "--over", "directml", "--good", "1.16", "--bad", "1.17", "--format", "json"
    )
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    assert (document["over"], document["versions"], document["first"]) == (
        "directml",
        ["1.16.3", "1.17.1"],
        "1.17.1",
    )
    (change,) = document["changes"]
    assert change["cases"][_CASE] == {"before": "pass", "after": "rejected"}
    before, after = (measured["not_conforming"] for measured in document["measured"])
    assert _CASE not in before
    assert after[_CASE] == "rejected"


def test_what_does_not_change_is_said() -> None:
    ended = harness(
        "bisect", "Round@11:case=documented_onnx", "--over", "directml", "--good", "1.16.3", "--bad", "1.17.1"
    )
    assert ended.code == 1, ended.err
    assert ended.out.startswith("nothing changes from 1.16.3 to 1.17.1: 0 of 5 fail\n")
