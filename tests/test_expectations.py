from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import SpecError
from harness.model.query import Query
from harness.model.result import Diff
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.specs.expand import expand
from harness.specs.expectation_entry import When
from harness.specs.expectation_lint import lint
from harness.specs.expectation_scope import ExpectationScope
from harness.specs.expectations import Expectations, load_expectations
from harness.specs.load import load_specs
from harness.specs.selection import select
from harness.specs.target_expectations import TargetExpectations

TODAY = date(2026, 6, 1)
ROUND_AND_GATHER_ND = ExpectationScope({"Round", "GatherND"}, whole=False)
CPU = TargetInfo(provider="CPUExecutionProvider", onnxruntime="1.24.4")
DML = TargetInfo(
    provider="DmlExecutionProvider", onnxruntime="1.24.4", directml="1.15.4+abc", max_feature_level="5_0"
)
ENTRY = """\
- match: {match}
  expect: {expect}
  reason: the indices are read as 32 bits
  link: https://example.org/issues/1
"""


def expected(expectations: TargetExpectations, case_id: str) -> Outcome | None:
    entry = expectations.entry(case_id)
    return entry and entry.expect


def entries(folder: Path, text: str) -> Expectations:
    path = folder / "cpu.yaml"
    path.write_text(text, encoding="utf-8")
    return load_expectations([path])


def entry(match: str, expect: str = "mismatch", more: str = "") -> str:
    return ENTRY.format(match=match, expect=expect) + "".join(f"  {line}\n" for line in more.splitlines())


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cpu(folder: Path, text: str) -> TargetExpectations:
    return entries(folder, text).for_target("cpu", CPU)


def test_expected_outcome_of_the_cases_that_match(tmp_path: Path) -> None:
    expectations = cpu(
        tmp_path, entry("['GatherND@13:data=int8', 'axis=3']") + entry("Gat*Elements", "crash")
    )
    assert expected(expectations, "GatherND@13:sweep=a;data=int8[3]") is Outcome.MISMATCH
    assert expected(expectations, "GatherND@13:sweep=a;data=int16[3]") is None
    assert expected(expectations, "Round@13:axis=3") is Outcome.MISMATCH
    assert expected(expectations, "GatherElements@13:sweep=a") is Outcome.CRASH
    assert expected(expectations, "Round@22:sweep=a") is None


def test_another_difference_than_the_known_one_is_a_regression(tmp_path: Path) -> None:
    known = Diff(1, 1, 4, (0,), "1.0 (0x3f800000)", "1.0000001 (0x3f800001)")
    other = Diff(None, 1, 4, (0,), "1.0 (0x3f800000)", "nan (0x7fc00000)")
    for more in ("", "\nsometimes: true"):
        expectations = cpu(tmp_path, entry("GatherND", more="difference: {kind: value, ulp: 1}" + more))
        for diff, expects in ((known, True), (other, False)):
            found = expectations.record("GatherND@13:sweep=a", Outcome.MISMATCH, conforms=False, diff=diff)
            assert (found is not None) is expects
            looked_up = expectations.entry("GatherND@13:sweep=a", outcome=Outcome.MISMATCH, diff=diff)
            assert (looked_up is not None) is expects
        assert expectations.problems(TODAY, ROUND_AND_GATHER_ND) == []


def test_exceptions_are_not_spoken_of(tmp_path: Path) -> None:
    expectations = cpu(tmp_path, entry("GatherND", more="unless: ['data=int8', 'axis=3']"))
    assert expected(expectations, "GatherND@13:sweep=a;data=int16[3]") is Outcome.MISMATCH
    assert expected(expectations, "GatherND@13:sweep=a;data=int8[3]") is None
    assert expected(expectations, "GatherND@13:sweep=a;data=int16[3];axis=3") is None


def test_entries_earn_their_place(tmp_path: Path) -> None:
    expectations = cpu(tmp_path, "".join(entry(f"GatherND@13:sweep={name}") for name in ("a", "b", "c", "d")))
    expectations.record("GatherND@13:sweep=a;x=1", None, conforms=False)
    expectations.record("GatherND@13:sweep=a;x=2", None, conforms=True)
    expectations.record("GatherND@13:sweep=b;x=1", None, conforms=True)
    for number in range(1200):
        expectations.record(f"GatherND@13:sweep=c;x={number}", None, conforms=True)
    assert [(used.matched, used.not_conforming) for used in expectations.used] == [
        (2, 1),
        (1, 0),
        (1200, 0),
        (0, 0),
    ]
    assert expectations.problems(TODAY, ROUND_AND_GATHER_ND) == [
        "cpu.yaml:5: [1]: its case conforms on cpu; remove it or narrow its 'when'",
        "cpu.yaml:9: [2]: all 1,200 cases conform on cpu; remove it or narrow its 'when'",
        "cpu.yaml:13: [3]: matches no case on cpu; remove it or correct its query",
    ]
    assert expectations.problems(TODAY, None) == []


@pytest.mark.parametrize(
    ("match", "judged"),
    [
        ("Round@22:sweep=a", True),
        ("[Round, GatherElements]", True),
        ("sweep=a", True),
        ("Gather*", True),
        ("Rond", True),
        ("GatherElements", False),
        ("Gather?lements", False),
    ],
)
def test_an_entry_for_an_operator_that_was_not_run_need_not_match(
    tmp_path: Path, match: str, judged: bool
) -> None:
    """A mistyped operator is none that could have been run."""
    expectations = cpu(tmp_path, entry(match))
    wanted = "cpu.yaml:1: [0]: matches no case on cpu; remove it or correct its query"
    assert expectations.problems(TODAY, ROUND_AND_GATHER_ND) == ([wanted] if judged else [])


def test_the_shipped_entries_are_judged_by_all_shipped_specs_alone() -> None:
    expectations = load_expectations().for_target("cpu", CPU)
    certain = [
        each.entry
        for each in expectations.entries
        if not (each.entry.sometimes or each.entry.pending or each.entry.level)
    ]
    assert (
        len(expectations.problems(TODAY, ExpectationScope(OPERATORS.keys(), whole=True))) == len(certain) > 5
    )
    assert expectations.problems(TODAY, ExpectationScope(OPERATORS.keys(), whole=False)) == []


def test_expired(tmp_path: Path) -> None:
    expectations = cpu(
        tmp_path, entry("GatherND", more="expires: 2026-05-31") + entry("Round", more="expires: 2026-06-01")
    )
    assert expectations.problems(TODAY, None) == [
        "cpu.yaml:1: [0]: expired on 2026-05-31; look whether it still holds"
    ]


def test_conflict_is_told_once(tmp_path: Path) -> None:
    expectations = cpu(tmp_path, entry("GatherND") + entry("GatherND@13", "crash") + entry("axis=1"))
    for case in ("GatherND@13:axis=1", "GatherND@13:axis=2"):
        expectations.record(case, None, conforms=False)
    assert expected(expectations, "GatherND@13:axis=1") is Outcome.MISMATCH
    assert expectations.problems(TODAY, ROUND_AND_GATHER_ND) == [
        "cpu.yaml:5: [1]: expects crash where cpu.yaml:1 expects mismatch: GatherND@13:axis=1",
        "cpu.yaml:9: [2]: expects mismatch where cpu.yaml:5 expects crash: GatherND@13:axis=1",
    ]


@pytest.mark.parametrize(
    ("when", "on_cpu", "on_dml"),
    [
        ("{}", True, True),
        ("{target: cpu}", True, False),
        ("{target: ['dml*', 'cpu@*']}", False, True),
        ("{provider: DmlExecutionProvider}", False, True),
        ("{onnxruntime: '>=1.20,<1.25'}", True, True),
        ("{onnxruntime: '<1.24'}", False, False),
        ("{directml: '>=1.15'}", False, True),
        ("{directml: '==1.15.4'}", False, True),
        ("{max_feature_level: '<=5_0'}", False, True),
        ("{max_feature_level: '>5_0'}", False, False),
        ("{target: 'dml*', directml: '<1.15'}", False, False),
    ],
)
def test_when(tmp_path: Path, when: str, on_cpu: bool, on_dml: bool) -> None:
    expectations = entries(tmp_path, entry("Round", more=f"when: {when}"))
    assert bool(expectations.for_target("cpu", CPU).entries) is on_cpu
    assert bool(expectations.for_target("dml@windows", DML).entries) is on_dml


def test_a_version_that_is_none_lies_in_no_range() -> None:
    strange = TargetInfo(provider="CPUExecutionProvider", onnxruntime="built from source")
    assert not When(onnxruntime=">=1").holds("cpu", strange)
    assert When(onnxruntime=">=1").holds(
        "cpu", TargetInfo(provider="", onnxruntime="1.25.0.dev20260101+cu12")
    )


def test_a_missing_folder_is_a_problem_but_an_empty_one_is_not(tmp_path: Path) -> None:
    assert load_expectations([tmp_path]).entries == ()
    with pytest.raises(SpecError, match="cannot read"):
        load_expectations([tmp_path / "none"])


def test_lint(tmp_path: Path) -> None:
    text = (
        entry("GatherND")
        + entry("GatherND", "crash")
        + entry("GatherND", more="when: {target: dml}")
        + entry("Rond", more="expires: 2020-01-01")
    )
    expectations = entries(tmp_path, text)
    before = [
        "cpu.yaml:5: [1]: has the same 'match', 'unless' and 'when' as cpu.yaml:1",
        "cpu.yaml:14: [3]: expired on 2020-01-01; look whether it still holds",
    ]
    assert lint(expectations, TODAY) == before
    assert lint(expectations, TODAY, ["GatherND@13:a=1", "Round@22:a=1"], ROUND_AND_GATHER_ND) == [
        *before,
        "cpu.yaml:14: [3]: matches no case; remove it or correct its query",
    ]


@given(
    st.binary(max_size=60)
    | st.sampled_from([b"[]", b"- 1", b"- {match: a}", b"- {match: [[]], when: 3}", b"null"])
)
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "x.yaml"
    path.write_bytes(data)
    try:
        assert load_expectations([path]).entries == ()
    except SpecError:
        return


def test_what_an_id_starts_with_leaves_out_no_entry_that_matches_it() -> None:
    """The short way finds what all entries find one by one, also where neighbours change from one sweep to the next."""
    entries = load_expectations().entries
    known = TargetExpectations("cpu", entries)
    queries = tuple(map(Query.parse, ("Abs", "Celu", "Dropout", "Erf")))
    ids = [case.id for case in select(expand(load_specs((), queries), queries), queries)]
    found = [known.matching(each) for each in ids]
    assert any(found)
    for case_id, positions in zip(ids, found, strict=True):
        assert positions == [n for n, located in enumerate(entries) if located.matches(case_id)]
    assert not Query.parse("Abs:sweep=types").may_go_on("Abs@13:sweep=values")
    assert not Query.parse("Abs@6").may_go_on("Abs@13:sweep=values")
