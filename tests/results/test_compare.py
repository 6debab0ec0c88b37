"""Two runs held against each other: every kind of change, what is comparable, exit codes, damaged input."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.commands.compare import RENDERINGS
from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.header import Asked
from harness.model.result import (
    Diff,
    Error,
    Repeats,
    Result,
)
from harness.model.signature import Signature
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.compare.comparison import (
    Change,
    ComparedResult,
    Comparison,
    classify,
    compared_result,
)
from harness.results.compare.joined import compare_runs
from harness.results.compare.tables import (
    both_rows,
    environment_differences,
    exit_code,
    said,
    summarize_comparison,
)
from harness.results.runfile import RunReader
from tests import synthetic
from tests.running import ROUND, complaint, harness, script_of, without_onnxruntime
from tests.sampled import one_of
from tests.synthetic import ABSENT, CPU, DML

V, O = Validity, Outcome  # noqa: E741 - tables below stay readable


@dataclass
class Run:
    """A run of cases whose outcomes are given."""

    folder: Path
    name: str
    targets: dict[str, TargetInfo] = field(default_factory=lambda: {"cpu": CPU})
    seed: int = 7
    specs: str = "aa"
    asked: Asked | None = None
    results: list[Result] = field(default_factory=list)

    def add(
        self,
        case: str,
        outcome: Outcome = O.PASS,
        *,
        target: str = "cpu",
        validity: Validity = V.VALID,
        error: str = "",
        ulp: int | None = None,
        placed: str | None = None,
        repeats: dict[str, int] | None = None,
    ) -> Run:
        ran = outcome in (O.PASS, O.MISMATCH, O.ACCEPTED_INVALID, O.ORACLE_ERROR)
        provider = placed or (self.targets[target].provider if ran else None)
        diff = Diff(ulp, 1, 4, (0,), "1.0", "2.0") if outcome in (O.MISMATCH, O.ORACLE_ERROR) else None
        self.results.append(
            synthetic.result(
                f"Round@22:case={case};X=float16[3]",
                outcome,
                Verdict.MISSING if outcome is O.UNAVAILABLE else Verdict.EXPECTED,
                target=target,
                validity=validity,
                placed_on=provider,
                error=None if ran or outcome is O.UNAVAILABLE else Error(error or "Fail", "because"),
                diff=diff,
                repeats=Repeats(sum(repeats.values()), repeats[outcome.value], repeats)
                if repeats
                else msgspec.UNSET,
            )
        )
        return self

    def write(self, *, whole: bool = True) -> Path:
        path = self.folder / f"{self.name}.jsonl"
        return synthetic.write_results(
            path,
            self.results,
            self.targets,
            end=whole,
            run_id=self.name,
            seed=self.seed,
            hashes={"specs": self.specs, "oracle": "bb"},
            selection=self.asked,
        )


@pytest.fixture
def base(tmp_path: Path) -> Run:
    return Run(tmp_path, "base")


@pytest.fixture
def head(tmp_path: Path) -> Run:
    return Run(tmp_path, "head")


def compared(base: Run, head: Run) -> Comparison:
    return compare_runs(RunReader(base.write()), RunReader(head.write()))


def changes(comparison: Comparison) -> dict[str, str]:
    """The change of each case that changed."""
    return {
        found.result.case.split("case=")[1].split(";")[0]: change.value
        for change, all_ in comparison.kept.items()
        for found in all_
    }


def test_every_kind_of_change(base: Run, head: Run) -> None:
    base.add("same").add("regression").add("fix", O.CRASH, error="Crash").add(
        "other", O.CRASH, error="Crash"
    ).add("missing")
    head.add("same").add("regression", O.REJECTED, error="Fail").add("fix").add(
        "other", O.TIMEOUT, error="Timeout"
    ).add("new")
    found = compared(base, head)
    assert changes(found) == {name: name for name in ("regression", "fix", "new", "missing")} | {
        "other": "changed"
    }
    total = found.total
    assert (total.compared, total.equal, total.neither) == (4, 1, 0)
    assert {change: total.changes[change] for change in Change} == dict.fromkeys(Change, 1)
    assert [group.kind.change for group in found.groups()] == list(Change)
    (row,) = both_rows(found)
    assert row.total.status == "worse"
    assert row.by_level["2_1"].words == "1 regression, 1 fix, 1 changed, 1 new, 1 missing"
    assert exit_code(found) == 1


_FLAKY = {"pass": 2, "mismatch": 4}


def test_changes_of_flaky_cases_say_so(base: Run, head: Run) -> None:
    base.add("was", O.MISMATCH, repeats=_FLAKY).add("is").add("broken").add(
        "both", O.MISMATCH, repeats=_FLAKY
    ).add("steady", O.MISMATCH)
    base.add("gone", O.MISMATCH, repeats=_FLAKY)
    head.add("was").add("is", O.MISMATCH, repeats=_FLAKY).add("broken", O.MISMATCH, repeats={"mismatch": 6})
    head.add("both", O.MISMATCH, repeats=_FLAKY).add("steady", O.MISMATCH, repeats=_FLAKY)
    found = compared(base, head)
    assert changes(found) == {"was": "fix", "is": "regression", "broken": "regression", "gone": "missing"}
    assert {said(one) for change in Change for one in found.kept[change]} == {
        "flaky in BASE",
        "flaky in HEAD",
        "",
    }
    remark = "1 regression, 1 fix, 1 missing are of flaky cases: repeated in one run, they did not always do the same."
    assert remark in summarize_comparison(found).remarks
    assert len([group for group in found.groups() if group.kind.change is Change.REGRESSION]) == 2, (
        "a flake is no part of a failure's group"
    )
    assert exit_code(found) == 1
    rate = "flaky: failed 4 of 6 repeats (pass 2, mismatch 4)"
    for format_ in RENDERINGS.formats:
        text = RENDERINGS.text(found, format_)
        if format_ == "json":
            document = json.loads(text)
            assert document["flaky"] == {"regression": 1, "fix": 1, "missing": 1}
            sides = {
                change["case"].split("case=")[1].split(";")[0]: (change["before"], change["after"])
                for change in document["changes"]
            }
            assert [
                side and side["flaky"] for name in ("was", "is", "broken", "gone") for side in sides[name]
            ] == [*(True, False, False, True, False, False, True, None)]
            assert (
                sides["is"][1]["repeats"]
                == sides["gone"][0]["repeats"]
                == {"runs": 6, "failed": 4, "outcomes": _FLAKY}
            )
        elif format_ == "html":
            assert remark in text
            assert f"flaky in HEAD · {rate}" in text
        else:
            shown = " ".join(text.replace("\\", "").split())
            assert remark in shown
            assert f"flaky in HEAD · {rate}" in shown
            assert "flaky in BASE" in shown


@pytest.mark.parametrize(
    ("before", "after", "change", "why", "words"),
    [
        ({"ulp": 1}, {"ulp": 3}, "changed", ("ULP",), "max ULP 1 → 3"),
        ({"ulp": 3}, {"ulp": 1}, None, (), ""),
        ({"ulp": None}, {"ulp": 3}, None, (), ""),
        ({"ulp": 0}, {"ulp": 1}, "changed", ("ULP",), "max ULP 0 → 1"),
        (
            {"ulp": 1 << 63},
            {"ulp": (1 << 64) - 1},
            "changed",
            ("ULP",),
            "max ULP 9,223,372,036,854,775,808 → 18,446,744,073,709,551,615",
        ),
    ],
)
def test_a_larger_distance_is_a_change(
    base: Run, head: Run, before: Any, after: Any, change: str | None, why: tuple[str, ...], words: str
) -> None:
    base.add("case", O.MISMATCH, **before)
    found = compared(base, head.add("case", O.MISMATCH, **after))
    assert changes(found).get("case") == change
    for one in found.kept[Change.CHANGED]:
        assert (one.kind.why, said(one)) == (why, words)


def test_error_class_and_placement(base: Run, head: Run) -> None:
    base.add("error", O.REJECTED, error="Fail", validity=V.INVALID).add(
        "placed", O.NOT_PLACED, placed="A"
    ).add("silent", O.CRASH)
    head.add("error", O.REJECTED, error="Other", validity=V.INVALID).add(
        "placed", O.NOT_PLACED, placed="B"
    ).add("silent", O.CRASH, placed="B")
    found = compared(base, head)
    assert changes(found) == {"error": "changed", "placed": "changed"}
    assert [said(one) for one in found.kept[Change.CHANGED]] == [
        "error class Fail → Other",
        "placed on A → B",
    ]
    assert exit_code(found) == 0


@pytest.mark.parametrize("validity", V)
@pytest.mark.parametrize("before", O)
@pytest.mark.parametrize("after", O)
def test_what_a_change_is(validity: Validity, before: Outcome, after: Outcome) -> None:
    change, _ = classify(
        ComparedResult(validity, Signature(before), ""),
        ComparedResult(validity, Signature(after), ""),
        ulp_grew=False,
    )
    absent = (O.UNAVAILABLE, O.NOT_RUN)
    good = {V.VALID: O.PASS, V.INVALID: O.REJECTED}.get(validity)
    if before in absent or after in absent:
        expected = (
            None
            if before in absent and after in absent
            else Change.NEW
            if before in absent
            else Change.MISSING
        )
    elif before is after:
        expected = None
    elif good in (before, after):
        expected = Change.REGRESSION if before is good else Change.FIX
    else:
        expected = Change.CHANGED
    assert change is expected


def test_an_unspecified_case_never_regresses(base: Run, head: Run) -> None:
    base.add("a", validity=V.UNSPECIFIED).add("b", O.CRASH, validity=V.UNSPECIFIED).add(
        "c", validity=V.UNSPECIFIED
    )
    head.add("a", O.CRASH, validity=V.UNSPECIFIED).add("b", validity=V.UNSPECIFIED).add(
        "c", O.REJECTED, validity=V.VALID
    )
    found = compared(base, head)
    assert changes(found) == dict.fromkeys("abc", "changed")
    assert exit_code(found) == 0


def test_a_case_judged_by_another_rule_is_changed(base: Run, head: Run) -> None:
    found = compared(base.add("a"), head.add("a", O.REJECTED, validity=V.INVALID))
    assert changes(found) == {"a": "changed"}
    assert said(found.kept[Change.CHANGED][0]) == "valid → invalid"


def test_unavailable_is_missing_and_no_regression(base: Run, head: Run) -> None:
    head.targets = {"cpu": msgspec.structs.replace(CPU, unavailable="gone")}
    found = compared(base.add("a"), head.add("a", O.UNAVAILABLE))
    assert changes(found) == {"a": "missing"}
    summary = summarize_comparison(found)
    assert (
        summary.sentence
        == "Nothing can be compared: no result ran in both runs (0 new, 1 missing, 0 not run in either)."
    )
    assert "cpu was not available in HEAD: gone" in summary.remarks
    assert exit_code(found) == 4


def test_other_specs_compare_only_what_both_have(base: Run, head: Run) -> None:
    head.specs = "cc"
    found = compared(base.add("a").add("gone"), head.add("a").add("come").add("also"))
    assert summarize_comparison(found).remarks[0] == (
        "The specs differ: only cases in both runs are compared, 1 result; 1 of BASE and 2 of HEAD are not."
    )
    assert [(name, fact.name, fact.base, fact.head) for name, fact in environment_differences(found)] == [
        ("run", "specs", "aa", "cc")
    ]
    assert exit_code(found) == 0


@pytest.mark.parametrize(
    ("files", "specs", "said"),
    [
        ((), "aa", "-k Round:case=a narrowed HEAD"),
        (
            ("specs/graphs",),
            "cc",
            "BASE is of all specs, HEAD of specs/graphs; -k Round:case=a narrowed HEAD",
        ),
        ((), "cc", "The specs differ; -k Round:case=a narrowed HEAD"),
        (("specs",), "aa", "-k Round:case=a narrowed HEAD"),
    ],
)
def test_what_a_query_narrowed_is_told_and_other_files_are_no_other_specs(
    base: Run, head: Run, files: tuple[str, ...], specs: str, said: str
) -> None:
    base.asked, head.asked, head.specs = Asked(), Asked(files, ("Round:case=a",)), specs
    found = compared(base.add("a").add("b"), head.add("a"))
    whole, numbers = "only cases in both runs are compared", "1 result; 1 of BASE and 0 of HEAD are not."
    assert summarize_comparison(found).remarks == (f"{said}: {whole}, {numbers}",)
    assert found.differing_inputs == ["specs"] * said.startswith("The specs")
    back = summarize_comparison(compared(head, base))
    assert (
        "narrowed BASE: only cases in both runs are compared, 1 result; 0 of BASE and 1 of HEAD"
        in (back.remarks[0])
    )
    assert back.tone == ("good" if specs == "aa" else "warn")


def test_several_queries_are_counted(base: Run, head: Run) -> None:
    base.asked, head.asked = (Asked(queries=(f"Round:case={name}", "Abs", "Add")) for name in "ab")
    remarks = summarize_comparison(compared(base.add("a"), head.add("a"))).remarks
    assert remarks[0].startswith(
        "-k Round:case=a and 2 more narrowed BASE; -k Round:case=b and 2 more narrowed HEAD: "
    )


def test_another_seed(base: Run, head: Run) -> None:
    head.seed = 8
    found = compared(base.add("a"), head.add("a"))
    remarks = summarize_comparison(found).remarks
    assert remarks[0].startswith("The seed differs: only cases in both runs are compared, 1 result;")
    assert remarks[1].startswith("With another seed the same case has other random inputs")
    assert summarize_comparison(found).tone == "warn"


def test_the_only_targets_are_a_pair(base: Run, head: Run) -> None:
    base.add("a").add("b", O.REJECTED, error="Fail", validity=V.INVALID)
    head.targets = {"dml": DML}
    head.add("a", target="dml").add("b", O.REJECTED, error="Fail", validity=V.INVALID, target="dml")
    found = compared(base, head)
    assert [pair.name for pair in found.pairs] == ["cpu → dml"]
    assert found.total.equal == 2, "each on its own provider"
    assert summarize_comparison(found).remarks == (
        "The only target of BASE, cpu, is compared with the only one of HEAD, dml.",
    )


def test_targets_are_paired_by_name_and_the_others_reported(base: Run, head: Run) -> None:
    base.targets, head.targets = {"cpu": CPU, "dml": DML}, {"cpu@x": CPU, "cpu": CPU}
    found = compared(base.add("a").add("a", target="dml"), head.add("a", target="cpu@x").add("a"))
    assert (found.total.equal, found.total.compared) == (1, 1)
    assert summarize_comparison(found).remarks == (
        "Not compared, because HEAD does not have it: dml of BASE.",
        "Not compared, because BASE does not have it: cpu@x of HEAD.",
    )


def test_the_same_case_on_two_targets_is_two_results(base: Run, head: Run) -> None:
    base.targets = head.targets = {"cpu": CPU, "dml": DML}
    found = compared(base.add("a").add("a", target="dml"), head.add("a").add("a", O.CRASH, target="dml"))
    assert [(counts.equal, counts.changes[Change.REGRESSION]) for counts in found.counts.values()] == [
        (1, 0),
        (0, 1),
    ]


def test_truncated_runs_are_compared_as_far_as_they_go(tmp_path: Path) -> None:
    whole = synthetic.write_run(tmp_path / "whole.jsonl", 300, {"cpu": CPU}, faults=0)
    cut = synthetic.write_run(tmp_path / "cut.jsonl", 300, {"cpu": CPU}, faults=0, whole=False)
    found = compare_runs(RunReader(whole), RunReader(cut))
    total = found.total
    assert total.equal + total.changes[Change.MISSING] == 300
    assert 0 < total.equal == total.compared < 300
    assert exit_code(found) == 4
    assert summarize_comparison(found).sentence.startswith(
        f"HEAD is incomplete. No regression in {total.equal} results that ran in both"
    )
    assert (
        f"HEAD is incomplete, and is compared as far as it goes: The run file ends after {total.equal} results, "
        "without its last line. Continue the run with --resume." in (summarize_comparison(found).remarks)
    )
    other = compare_runs(RunReader(cut), RunReader(whole))
    assert other.total.changes[Change.NEW] == total.changes[Change.MISSING]
    assert summarize_comparison(other).tone == "warn"
    assert exit_code(other) == 4


def test_the_environment_comes_with_what_differs(base: Run, head: Run) -> None:
    head.targets = {"cpu": msgspec.structs.replace(CPU, onnxruntime="1.24.0", driver="2", adapter="New")}
    found = environment_differences(compared(base.add("a"), head.add("a")))
    assert [(name, *fact) for name, fact in found] == [
        ("cpu", "onnxruntime", "1.23.0", "1.24.0"),
        ("cpu", "adapter", "", "New"),
        ("cpu", "driver", "", "2"),
    ]


def test_a_run_equals_itself(tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run.jsonl", 500, {"cpu": CPU, "dml": DML, "no": ABSENT}, faults=0.1)
    ended = harness("compare", run, run)
    assert ended.code == 0
    assert ended.out.startswith(
        "! " if "unavailable" in ended.out else "✓ No regression in 1,000 results that ran in both runs"
    )


def test_bad_input_is_one_clear_line(tmp_path: Path, base: Run, head: Run) -> None:
    good = base.add("a").write()
    twice = Run(tmp_path, "twice").add("a").add("a").write()
    none = Run(tmp_path, "none", {"dml": DML, "x": DML}).write()
    other = Run(tmp_path, "other").add("b").write()
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    old = tmp_path / "old.jsonl"
    old.write_bytes(good.read_bytes().replace(b'"schema":1', b'"schema":9'))
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(good.read_bytes().replace(b'"outcome":"pass"', b'"outcome":"fine"'))
    for bad, code, said_ in [
        (tmp_path / "absent", 2, "absent: cannot be read: No such file or directory"),
        (empty, 2, "empty.jsonl: the run file is empty"),
        (old, 2, "old.jsonl:1: run file schema 9; this harness reads schema 1"),
        (damaged, 2, "damaged.jsonl:2: damaged run file"),
        (twice, 2, "twice.jsonl:3: damaged run file: 'Round@22:case=a;X=float16[3]' on cpu is in it twice"),
        (none, 2, "the runs have no target in common: BASE has "),
        (
            other,
            4,
            "Nothing can be compared: no result ran in both runs (1 new, 1 missing, 0 not run in either).",
        ),
    ]:
        for pair in ((good, bad), (bad, good)):
            ended = harness("compare", *pair, "--format", "json", "-o", tmp_path / "out.json")
            assert ended.code == code, (bad, ended)
            assert said_ in complaint(ended)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A real run on the CPU, and one of a target that gets float16 wrong by one ULP."""
    folder = tmp_path_factory.mktemp("real")
    script = script_of(folder, [("Round@22:X=float16", "ulp"), ("Round@11:X=float64", "reject")])
    query = ["-k", "Round:sweep=empty", "-k", "Round:sweep=values"]
    assert harness("run", ROUND, "-t", "cpu", *query, "-o", folder / "a").code == 0
    assert harness("run", ROUND, "-t", f"fake,script={script}", *query, "-o", folder / "b").code == 1
    return folder / "a", folder / "b"


@pytest.mark.parametrize("format", one_of(4, ["terminal", "markdown", "json", "html"]))
def test_real_runs_in_every_format(real: tuple[Path, Path], tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    assert harness("compare", *real, "--format", format, "-o", out).code == 1
    printed = harness("compare", *real, "--format", format)
    assert printed.code == 1
    if format != "terminal":
        assert printed.out == out.read_text(encoding="utf-8")
    assert max(map(len, out.read_text(encoding="utf-8").splitlines())) <= 160 or format != "terminal"
    assert harness("compare", real[1], real[0], "--format", format, "-o", out).code in (0, 1)


def test_json_of_real_runs(real: tuple[Path, Path]) -> None:
    document = json.loads(harness("compare", *real, "--format", "json").out)
    assert document["schema"] == 1
    counts = document["counts"]
    assert counts["compared"] == sum(counts[name] for name in ("equal", "regression", "fix", "changed"))
    assert (
        counts["regression"]
        == sum(group["number"] for group in document["groups"] if group["change"] == "regression")
        > 0
    )
    kinds = {
        (one["change"], one["before"]["outcome"], one["after"]["outcome"]) for one in document["changes"]
    }
    assert ("regression", "pass", "mismatch") in kinds
    assert ("regression", "pass", "rejected") in kinds
    one = next(one for one in document["changes"] if one["after"]["outcome"] == "rejected")
    assert one["after"]["error_class"]
    assert one["before"]["placed_on"] == "CPUExecutionProvider"


@pytest.mark.slow
def test_it_needs_no_onnxruntime(real: tuple[Path, Path]) -> None:
    without_onnxruntime(
        "from harness.commands.compare import RENDERINGS\n"
        "from harness.results.compare.joined import compare_runs; from harness.results.runfile import RunReader\n"
        f"found = compare_runs(*(RunReader(Path(p)) for p in {[str(path) for path in real]!r}))\n"
        "assert all(RENDERINGS.text(found, f) for f in RENDERINGS.formats)"
    )


@pytest.mark.slow
def test_many_results_of_each_kind(base: Run, head: Run) -> None:
    for number in range(300):
        base.add(f"case{number}", O.PASS if number % 3 else O.MISMATCH, ulp=None if number % 3 else number)
        if number % 7:
            head.add(
                f"case{number}", O.MISMATCH if number % 5 == 0 else O.PASS, ulp=None if number % 5 else 9
            )
    found = compared(base, head)
    both = [number for number in range(300) if number % 7]
    fixed = [number for number in both if number % 3 == 0 and number % 5]
    worse = [number for number in both if number % 3 and number % 5 == 0]
    assert found.total.changes == {
        Change.FIX: len(fixed),
        Change.REGRESSION: len(worse),
        Change.MISSING: 300 - len(both),
    }
    assert found.total.equal == len(both) - len(fixed) - len(worse)
    assert [each.result.case for each in found.kept[Change.FIX]] == [
        f"Round@22:case=case{number};X=float16[3]" for number in fixed
    ]
    for run, case in ((head, "case1"), (head, "new"), (base, "missing")):
        for _ in range(2):
            run.add(case, O.PASS)
        with pytest.raises(UsageError, match=rf"{run.name}.*{case};.* on cpu is in it twice"):
            compared(base, head)
        run.results = [each for each in run.results if f"={case};" not in each.case]


def test_ids_and_differences_are_told_apart_by_every_digit(base: Run, head: Run) -> None:
    """DuckDB's `hash` gives one number to texts that differ in two digits eight bytes apart."""
    numbers = [f"{'x' * offset}{a}bcdefgh{b}" for offset in range(8) for a in range(10) for b in range(10)]
    for number in numbers:
        base.add(number).add(f"{number}y", O.REJECTED, error="E" + numbers[0])
        head.add(number).add(f"{number}y", O.REJECTED, error="E" + number)
    found = compared(base, head)
    assert (found.total.equal, found.total.changes) == (801, {Change.CHANGED: 799})


def test_alike_changes_are_counted_together(base: Run, head: Run) -> None:
    for number in range(6):
        base.add(f"case{number}", O.MISMATCH, ulp=1)
        head.add(f"case{number}", O.MISMATCH, ulp=(0, 1, 2, 3, 2, 1)[number])
    for run, opset in ((base, 21), (head, 21), (base, 23), (head, 23)):
        ulp = 1 if run is base else opset
        run.add("other", O.MISMATCH, ulp=ulp)
        run.results[-1] = msgspec.structs.replace(
            run.results[-1], case=f"Round@{opset}:case=a;X=float32[3,4]"
        )
    found = compared(base, head)
    assert (found.total.equal, found.total.changes) == (3, {Change.CHANGED: 5})
    (group,) = found.groups()
    assert (group.number, group.opsets, group.dtypes, group.ranks) == (
        5,
        {21, 22, 23},
        {"float16", "float32"},
        {1, 2},
    )
    assert "case=case2" in group.example.result.case
    assert [each.ulp_after for each in found.kept[Change.CHANGED]] == [2, 3, 2, 21, 23]


def test_columns_hold_what_results_say(base: Run, head: Run) -> None:
    """SQL makes the same of a result as `compared_result`."""
    texts = [
        "1.0 (0x3f800000)",
        "1.0000001 (0x3f800001)",
        "nan (0x7fc00000)",
        "inf (0x7f800000)",
        "-1.0 (0xbf800000)",
    ]
    texts += [
        "-inf (0xff800000)",
        "0.0 (0x0000)",
        "-0.0 (0x8000)",
        "3",
        "float32[3]",
        "float16[3]",
        "x (0x1)",
    ]
    diffs = [
        Diff(None, 1, 4, first, expected, actual, error, bound)
        for first in (None, (0,))
        for expected in texts
        for actual in texts
        for error, bound in ((msgspec.UNSET, msgspec.UNSET), (None, 1.0), (3.0, 1.0), (5.0, 1.0), (0.0, 0.0))
    ]
    for number, diff in enumerate(diffs):
        head.add(f"diff{number}", O.MISMATCH)
        head.results[-1] = msgspec.structs.replace(head.results[-1], diff=diff)
    for outcome in (O.PASS, O.MISMATCH, O.REJECTED, O.CRASH):
        for number, changed in enumerate(
            (
                {"function_nodes": 0},
                {"function_nodes": 3},
                {"stage": "load"},
                {"repeats": Repeats(2, 1, {outcome.value: 2})},
                {"repeats": Repeats(2, 1, {outcome.value: 1, "timeout": 1})},
                {"repeats": Repeats(0, 0, {})},
            )
        ):
            head.add(f"{outcome.value}{number}", outcome, error="\U0001f600\u0308" * 101)
            head.results[-1] = msgspec.structs.replace(head.results[-1], **changed)
    base.add("other", O.TIMEOUT, error="E" * 201)
    found = compared(base, head)
    (missing,), new = found.kept[Change.MISSING], found.kept[Change.NEW]
    assert len(new) == len(head.results)
    assert [each.kind.after for each in new] == [compared_result(each.result, CPU.provider) for each in new]
    assert missing.kind.before == compared_result(missing.result, CPU.provider)
    assert len({each.kind.after.signature.difference for each in new if each.kind.after}) > 8
