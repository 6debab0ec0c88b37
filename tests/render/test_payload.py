from __future__ import annotations

import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.model.facets import facets
from harness.model.result import Diff, Error, Result
from harness.model.result_key import artifact_name
from harness.model.verdict import Outcome, Verdict
from harness.render.payload import MESSAGE, Payload
from harness.results.tables import Tables
from tests import synthetic
from tests.synthetic import ABSENT, CPU, DML


def decoded(given: tuple[Tables, Payload]) -> dict[str, Any]:
    """Decode what a payload encodes."""
    tables, payload = given
    return decoded_text(payload.encode(tables))


def decoded_text(text: str) -> dict[str, Any]:
    """Do what the page's module does."""
    data = zlib.decompress(b64decode(text), -15)
    length = int.from_bytes(data[:4], "little")
    run: dict[str, Any] = msgspec.json.decode(data[4 : 4 + length])
    offset = 4 + length
    for name, width, count in run["columns"]:
        planes = [data[offset + place * count : offset + (place + 1) * count] for place in range(width)]
        run[name] = [sum(plane[n] << 8 * place for place, plane in enumerate(planes)) for n in range(count)]
        offset += width * count
    assert offset == len(data)
    return run


def payload_of(results: list[Result], targets: dict[str, Any] | None = None) -> tuple[Tables, Payload]:
    tables, payload = Tables(synthetic.header(targets)), Payload()
    for result in results:
        payload.add(result, *tables.add(result))
    return tables, payload


def test_every_result_comes_back() -> None:
    targets = {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}
    results = sorted(synthetic.results(3000, targets, faults=0.1), key=lambda result: result.target)
    run = decoded(payload_of(results, targets))
    starts = np.concatenate([[0], np.cumsum(run["length"])])
    number = -1
    for n, result in enumerate(results):
        number = (number + run["case"][n]) & 0xFFFFFFFF
        parts = run["part"][starts[number] : starts[number + 1]]
        assert ";".join(run["parts"][part] for part in parts) == result.case
        kind = [
            value if place in (1, 3) else run["words"][value]
            for place, value in enumerate(run["kinds"][run["kind"][number]])
        ]
        assert kind == [*facets(result.case), result.levels["directml"], result.validity.value]
        target, outcome, verdict, reading, unexpected = run["states"][run["state"][n]]
        assert (target, outcome, verdict) == (result.target, result.outcome.value, result.verdict.value)
        assert run["judgements"][reading] == result.reading.value
        assert unexpected == ("yes" if result.unexpected(baseline=False) else "no")
        assert run["places"][run["place"][n]] == [result.stage or "", result.placed_on or ""]
        assert run["durations"][run["time"][n]] == pytest.approx(result.seconds * 1000, rel=0.05)
        detail = run["details"][run["detail"][n]]
        assert (detail is None) == (result.error is None and result.diff is None)
        if result.error is not None:
            assert detail[0] == [result.error.class_, result.error.message]
        if result.diff is not None:
            assert detail[1][:4] == [
                result.diff.max_ulp,
                result.diff.differing,
                result.diff.total,
                list(result.diff.first_index or ()),
            ]


def test_a_case_has_the_level_of_each_targets_call() -> None:
    """On `directml` the level is that of the call that was made: the page counts each result at its own."""
    found = [
        synthetic.result("Round@22:a=b", Outcome.REJECTED, target=target, levels={"directml": level})
        for target, level in (("cpu", "2_1"), ("dml", "3_0"), ("cpu", "2_1"))
    ]
    run = decoded(payload_of(found, {"cpu": CPU, "dml": DML}))
    steps = np.array(run["case"], np.uint32).astype(np.int32)
    kinds = [run["kinds"][run["kind"][number]] for number in np.cumsum(steps) - 1]
    assert [run["words"][kind[-2]] for kind in kinds] == ["2_1", "3_0", "2_1"]
    assert len(run["length"]) == 2


@pytest.mark.parametrize(
    ("outcome", "verdict", "expected"),
    [
        (Outcome.MISMATCH, Verdict.REGRESSION, ("wrong", "yes")),
        (Outcome.PASS, Verdict.IMPROVEMENT, ("correct", "yes")),
        (Outcome.MISMATCH, Verdict.EXPECTED, ("wrong", "no")),
        (Outcome.UNAVAILABLE, Verdict.MISSING, ("not judged", "no")),
        (Outcome.PASS, Verdict.EXPECTED, ("correct", "no")),
    ],
)
def test_reading(outcome: Outcome, verdict: Verdict, expected: tuple[str, str]) -> None:
    run = decoded(
        payload_of(
            [synthetic.result("Round@22:a=b", outcome, verdict)],
            {"cpu": CPU},
        )
    )
    *_, reading, unexpected = run["states"][0]
    assert (run["judgements"][reading], unexpected) == expected


def test_an_empty_run() -> None:
    assert decoded(payload_of([]))["case"] == []


def test_details_have_a_budget_that_failures_use_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.render.payload.DETAILS_BUDGET", 1000)
    known = [
        synthetic.result(f"Round@22:a={n}", Outcome.REJECTED, error=Error("Fail", f"{n} " + "k" * 90))
        for n in range(20)
    ]
    failing = msgspec.structs.replace(known[0], verdict=Verdict.REGRESSION, error=Error("Fail", "the reason"))
    run = decoded(payload_of([*known, failing], {"cpu": CPU}))
    assert run["details"][run["detail"][19]] == [["Fail"], []]
    assert run["details"][run["detail"][20]] == [["Fail", "the reason"], []]


def test_a_megabyte_of_message_is_cut() -> None:
    result = synthetic.result(
        "Round@22:a=1", Outcome.REJECTED, Verdict.REGRESSION, error=Error("Fail", "m" * 1_000_000)
    )
    run = decoded(payload_of([result], {"cpu": CPU}))
    assert run["details"][-1][0][1] == "m" * MESSAGE + "… [1,000,000 characters in the run file]"


def test_tensors_of_failing_results_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.render.payload.TENSOR_CASES", 1)
    diff = Diff(1, 1, 2, (0,), "1.0", "2.0")
    results = [
        synthetic.result("Round@22:case=a;X=float32[2]", Outcome.MISMATCH, verdict, diff=diff)
        for verdict in (Verdict.EXPECTED, Verdict.REGRESSION)
    ]
    results[1] = msgspec.structs.replace(results[1], case="Round@22:case=b;X=float32[2]")
    for result in results:
        np.savez(
            tmp_path / artifact_name(result.case, "cpu"),
            expected=np.float32([1, 2]),
            actual=np.float32([1, 3]),
        )
    tables, payload = payload_of(results, {"cpu": CPU})
    payload.add_tensors(tmp_path)
    payload.add_tensors(tmp_path / "absent")
    assert list(decoded((tables, payload))["tensors"]) == ["1"]


def test_the_same_results_give_the_same_text() -> None:
    results = list(synthetic.results(500))
    (first_tables, first), (second_tables, second) = payload_of(results), payload_of(results)
    assert first.encode(first_tables) == second.encode(second_tables)


def test_a_page_of_one_target_is_the_same_without_remembering_its_cases() -> None:
    targets = {"cpu": synthetic.CPU}
    texts = []
    for one_target in (False, True):
        tables, payload = Tables(synthetic.header(targets)), Payload(one_target=one_target)
        for result in synthetic.results(500, targets):
            payload.add(result, *tables.add(result))
        texts.append(payload.encode(tables))
    assert texts[0] == texts[1]


def test_error_and_bound_are_told_where_there_is_a_bound() -> None:
    diffs = [
        Diff(1, 1, 2, (0,), "a", "b"),
        Diff(None, 1, 2, (0,), "2 ± 0.1", "2.25", 0.25, 0.1),
        Diff(None, 1, 2, (0,), "2 ± 0.1", "nan", None, 0.1),
    ]
    results = [
        synthetic.result(f"Exp@13:case={n}", Outcome.MISMATCH, Verdict.NEW, diff=diff)
        for n, diff in enumerate(diffs)
    ]
    run = decoded(payload_of(results, {"cpu": CPU}))
    assert [run["details"][number][1] for number in run["detail"]] == [
        [1, 1, 2, [0], "a", "b"],
        [None, 1, 2, [0], "2 ± 0.1", "2.25", 0.25, 0.1],
        [None, 1, 2, [0], "2 ± 0.1", "nan", None, 0.1],
    ]
