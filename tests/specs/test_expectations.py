from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import SpecError
from harness.model.query import Query
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.specs.expand import expand
from harness.specs.expectations.expectation_entry import When
from harness.specs.expectations.expectation_lint import lint, shadowed
from harness.specs.expectations.expectations import Expectations, load_expectations
from harness.specs.expectations.target_expectations import ExpectationScope, TargetExpectations
from harness.specs.expectations.tried_conditions import Conditions
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection

TODAY = date(2026, 6, 1)
ROUND_AND_GATHER_ND = ExpectationScope({"Round", "GatherND"}, whole=False)
CPU = TargetInfo(provider="CPUExecutionProvider", onnxruntime="1.24.4")
DML = TargetInfo(
    provider="DmlExecutionProvider", onnxruntime="1.24.4", directml="1.15.4+abc", max_feature_level="5_0"
)

pytestmark = pytest.mark.usefixtures("in_folder")
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
    """Write an entry; a mismatch is one of values where nothing else is said of it."""
    if expect == "mismatch" and not any(key in more for key in ("gives:", "difference:", "memory:")):
        more += "\ndifference: {kind: value}"
    return ENTRY.format(match=match, expect=expect) + "".join(
        f"  {line}\n" for line in more.split("\n") if line
    )


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


def test_other_outputs_than_the_known_ones_are_a_regression(tmp_path: Path) -> None:
    for more in ("difference: {kind: value, ulp: 1}", "difference: {kind: value, ulp: 1}\nsometimes: true"):
        expectations = cpu(tmp_path, entry("GatherND", more=more))
        for known in (True, False):
            found = expectations.record(
                "GatherND@13:sweep=a", Outcome.MISMATCH, conforms=False, allows=lambda _, known=known: known
            )
            assert (found is not None) is known
            looked_up = expectations.entry(
                "GatherND@13:sweep=a", outcome=Outcome.MISMATCH, allows=lambda _, known=known: known
            )
            assert (looked_up is not None) is known
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
        "cpu.yaml:6: [1]: its case conforms on cpu; remove it or narrow its 'when'",
        "cpu.yaml:11: [2]: all 1,200 cases conform on cpu; remove it or narrow its 'when'",
        "cpu.yaml:16: [3]: matches no case on cpu; remove it or correct its query",
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
        "cpu.yaml:6: [1]: expects crash where cpu.yaml:1 expects mismatch: GatherND@13:axis=1",
        "cpu.yaml:10: [2]: expects mismatch where cpu.yaml:6 expects crash: GatherND@13:axis=1",
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
        "cpu.yaml:6: [1]: has the same 'match', 'unless' and 'when' as cpu.yaml:1",
        "cpu.yaml:16: [3]: expired on 2020-01-01; look whether it still holds",
    ]
    assert lint(expectations, TODAY) == before
    assert lint(expectations, TODAY, ["GatherND@13:a=1", "Round@22:a=1"], ROUND_AND_GATHER_ND) == [
        *before,
        "cpu.yaml:16: [3]: matches no case; remove it or correct its query",
    ]


def within(versions: str, match: str = "GatherND") -> str:
    return entry(f"'{match}'", "rejected", f"when: {{onnxruntime: '{versions}'}}")


CASES = {
    "GatherND": [
        "GatherND@13:sweep=a;data=int8[3]",
        "GatherND@13:sweep=a;data=int16[3]",
        "GatherND@13:sweep=b",
    ],
    "Round": ["Round@22:sweep=a"],
}


@pytest.mark.parametrize(
    ("first", "second", "is_shadowed"),
    [
        (entry("GatherND", "rejected"), entry("'GatherND:data=int8'", "rejected"), True),
        (entry("GatherND", "rejected"), entry("['GatherND:data=int8', Round]", "rejected"), False),
        (entry("['GatherND:sweep=a', Round]", "rejected"), entry("['GatherND:data=int8', Round]", "rejected"), True),
        (entry("GatherND", "rejected", "unless: 'data=int8'"), entry("'GatherND:sweep=a'", "rejected"), False),
        (entry("GatherND", "rejected", "unless: 'sweep=b'"), entry("'GatherND:sweep=a'", "rejected"), True),
        (entry("GatherND", "rejected"), entry("GatherND", "crash"), False),
        (entry("GatherND", "rejected", "kernel: none"), entry("'GatherND:sweep=a'", "rejected"), False),
        (entry("GatherND"), entry("'GatherND:sweep=a'"), True),
        (entry("GatherND"), entry("'GatherND:sweep=a'", more="difference: {kind: sign}"), False),
        (entry("GatherND", more="memory: unwritten"), entry("'GatherND:sweep=a'"), False),
        (entry("GatherND", "accepted_invalid"), entry("'GatherND:sweep=a'", "accepted_invalid", "gives: as_if_allowed"), True),
        (entry("GatherND", "rejected", "when: {target: cpu}"), entry("'GatherND:sweep=a'", "rejected"), False),
        (entry("GatherND", "rejected", "when: {target: 'cpu*'}"), entry("'GatherND:sweep=a'", "rejected", "when: {target: cpu}"), True),
        (entry("GatherND", "rejected", "when: {provider: [X, Y]}"), entry("'GatherND:sweep=a'", "rejected", "when: {provider: Y}"), True),
        (entry("GatherND", "rejected", "when: {provider: Y}"), entry("'GatherND:sweep=a'", "rejected", "when: {provider: [X, Y]}"), False),
        (entry("GatherND", "rejected", "when: {provider: X}"), entry("'GatherND:sweep=a'", "rejected", "when: {provider: Y}"), False),
        (within("<1.32"), within(">=1.20,<1.24", "GatherND:sweep=a"), True),
        (within("<1.24"), within(">=1.20,<1.24.3", "GatherND:sweep=a"), False),
        (within("<1.24,!=1.21.*"), within(">=1.20,<1.23", "GatherND:sweep=a"), False),
        (entry("GatherND", "rejected", "when: {onnxruntime: '<1.24'}"), entry("'GatherND:sweep=a'", "rejected"), False),
    ],
)  # fmt: skip
def test_an_entry_that_never_speaks_is_shadowed(
    tmp_path: Path, first: str, second: str, is_shadowed: bool
) -> None:
    found = list(shadowed(entries(tmp_path, first + second).entries, Conditions(CASES, CASES.__getitem__)))
    line = 1 + first.count("\n")
    wanted = f"cpu.yaml:{line}: [1]: is shadowed: of each of its cases cpu.yaml:1 speaks first; remove it, or narrow that"
    assert found == ([wanted] if is_shadowed else [])


def test_entries_shadow_one_together(tmp_path: Path) -> None:
    text = "".join(
        entry(match, "rejected") for match in ("'GatherND:sweep=a'", "'GatherND:sweep=b'", "GatherND")
    )
    found = list(shadowed(entries(tmp_path, text).entries, Conditions(CASES, CASES.__getitem__)))
    assert found == [
        "cpu.yaml:9: [2]: is shadowed: of each of its cases cpu.yaml:1, cpu.yaml:5 speaks first; remove it, or narrow that"
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


@pytest.mark.slow
def test_what_an_id_starts_with_leaves_out_no_entry_that_matches_it() -> None:
    """The short way finds what all entries find one by one, also where neighbours change from one sweep to the next."""
    entries = load_expectations().entries
    known = TargetExpectations("cpu", entries)
    queries = tuple(map(Query.parse, ("Abs", "Celu", "Dropout", "Erf")))
    ids = [case.id for case in Selection(expand(load_specs((), queries), queries), queries)]
    found = [known.matching(each) for each in ids]
    assert any(found)
    for case_id, positions in zip(ids, found, strict=True):
        assert positions == [n for n, located in enumerate(entries) if located.matches(case_id)]
    assert not Query.parse("Abs:sweep=types").may_go_on("Abs@13:sweep=values")
    assert not Query.parse("Abs@6").may_go_on("Abs@13:sweep=values")
