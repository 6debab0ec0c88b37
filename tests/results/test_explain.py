"""`harness explain`: groups, rules with their counts both ways, what cannot be told apart, comparisons, wrong
input."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import msgspec
import pytest

from harness.commands.explain import RENDERINGS
from harness.model.case import Validity
from harness.model.result import (
    Diff,
    Error,
    Repeats,
    Result,
)
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.explain.explanation import explain, explain_changes
from harness.results.explain.failures import FailureGroup
from harness.results.explain.words import cross_checked, statement, title
from harness.results.rules.terms import Term
from harness.results.runfile import RunReader
from tests import synthetic
from tests.golden import check_golden
from tests.running import SPECS, complaint, harness, lines_of
from tests.synthetic import CPU, write_results

GOLDEN = Path(__file__).parents[1] / "golden"
Plant = Callable[[str], "str | None"]
WITNESSES = {
    name: TargetInfo(provider, directml_sha256="aa", adapter="GPU")
    for name, provider in (("dml", "DmlExecutionProvider"), ("directml", "DirectML"))
}


def a_result(case: str, how: str | None, target: str = "cpu", validity: Validity = Validity.VALID) -> Result:
    """A result that conforms, or that fails: `rejected:Class`, `mismatch:kind`, `known:Class`."""
    if how is None:
        return synthetic.result(case, target=target, validity=validity)
    outcome, _, what = how.partition(":")
    if outcome == "mismatch":
        values = {
            "nan": ("nan (0x7fc00000)", "1.0 (0x3f800000)", 0),
            "ulp": ("1.0 (0x3f800000)", "1.0000001 (0x3f800001)", 1),
        }
        expected, actual, ulp = values[what]
        diff = Diff(ulp, 1, 4, (0,), expected, actual)
        return synthetic.result(
            case, Outcome.MISMATCH, Verdict.REGRESSION, target=target, validity=validity, diff=diff
        )
    known = outcome == "known" or validity is Validity.UNSPECIFIED
    verdict = Verdict.EXPECTED if known else Verdict.REGRESSION
    error = Error(what, "because")
    return synthetic.result(case, Outcome.REJECTED, verdict, target=target, validity=validity, error=error)


def cases() -> list[str]:
    """GatherND with batches and Round: enough for several causes."""
    found = [
        f"GatherND@{opset}:sweep=batch;data={dtype}[{shape}];indices=int64[{outer},1];batch_dims={batch};values={values}"
        for opset, dtype, shape, outer, batch, values in product(
            (12, 13), ("float32", "float16", "int64"), ("2,3", "2,3,4"), (2, 3), (0, 1), ("first", "mixed")
        )
    ]
    return found + [
        f"Round@22:sweep=rank;X={dtype}[{shape}];values=random"
        for dtype, shape in product(("float32", "float16"), ("3", "2,4", "5,1,1"))
    ]


def write(folder: Path, plant: Plant, name: str = "run") -> Path:
    return write_results(
        folder / f"{name}.jsonl", [a_result(case, plant(case)) for case in cases()], {"cpu": CPU}
    )


def groups(path: Path, **options: bool) -> tuple[FailureGroup, ...]:
    return explain(RunReader(path), **options).groups


def test_counts_both_ways(tmp_path: Path) -> None:
    (group,) = groups(
        write(tmp_path, lambda case: "rejected:Fail" if "indices=int64[3,1];batch_dims=1" in case else None)
    )
    (rule,) = group.separation.rules
    assert group.separation.exact
    assert statement(group, rule) == "batch sizes differ: 24 of 24 fail; elsewhere 0 of 78"
    assert title(group) == "24 × rejected, Fail, at run on cpu: GatherND, valid cases"


def test_what_cannot_be_told_apart_is_named(tmp_path: Path) -> None:
    hidden = "GatherND@13:sweep=batch;data=float16"
    results = [
        a_result(case, "rejected:Fail" if case.startswith(hidden) else None)
        for case in cases()
        if ("@13" in case) == ("data=float16" in case)
    ]
    (group,) = groups(write_results(tmp_path / "run.jsonl", results, {"cpu": CPU}))
    (rule,) = group.separation.rules
    assert (len(rule.terms), rule.failing, rule.passing) == (1, 16, 0)
    alternatives = {str(term) for term in (*rule.terms, *rule.alternatives[0])}
    assert {"data=float16"} < alternatives
    assert alternatives & {"opset=13"}


def test_two_causes_of_one_signature_are_two_rules(tmp_path: Path) -> None:
    def plant(case: str) -> str | None:
        return "rejected:Fail" if "data=float16" in case or "X=float32" in case else None

    (group,) = groups(write(tmp_path, plant))
    assert not group.separation.exact
    assert {str(term) for rule in group.separation.rules for term in rule.terms} >= {
        "data=float16",
        "X=float32",
    }
    assert sum(rule.failing for rule in group.separation.rules) == group.number == 35
    assert all(rule.passing == 0 for rule in group.separation.rules)


def test_exceptions_are_listed(tmp_path: Path) -> None:
    spared = "GatherND@13:sweep=batch;data=int64[2,3];indices=int64[3,1];batch_dims=0;values=mixed"
    struck = "Round@22:sweep=rank;X=float16[3];values=random"

    def plant(case: str) -> str | None:
        return "rejected:Fail" if case == struck or ("data=int64" in case and case != spared) else None

    (group,) = groups(write(tmp_path, plant))
    (rule, *more) = group.separation.rules
    assert [str(term) for term in rule.terms] == ["data=int64"]
    assert not more
    assert (group.wrong, group.missed) == ((spared,), (struck,))
    assert statement(group, rule) == "data=int64: 31 of 32 fail; elsewhere 1 of 70"
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "run.jsonl").read_bytes()))
    (same,) = groups(packed)
    assert (same.wrong, same.missed) == ((spared,), (struck,))


def test_kinds_of_difference_are_one_group_where_one_rule_holds_for_all(tmp_path: Path) -> None:
    def plant(case: str) -> str | None:
        return f"mismatch:{'nan' if 'mixed' in case else 'ulp'}" if "data=float16" in case else None

    (group,) = groups(write(tmp_path, plant))
    assert sorted((each.difference, number) for each, number in group.signatures.items()) == [
        ("NaN", 16),
        ("ulp", 16),
    ]
    assert [str(term) for term in group.separation.rules[0].terms] == ["data=float16"]


def test_kinds_of_difference_with_rules_of_their_own_are_groups_of_their_own(tmp_path: Path) -> None:
    def plant(case: str) -> str | None:
        return "mismatch:nan" if "data=float16" in case else "mismatch:ulp" if "X=float32" in case else None

    found = {group.kind.signature.difference: group for group in groups(write(tmp_path, plant))}
    assert {
        name: [str(term) for term in group.separation.rules[0].terms] for name, group in found.items()
    } == {
        "NaN": ["data=float16"],
        "ulp": ["X=float32"],
    }
    assert "X=float32" in found["ulp"].example.case


def test_what_fails_in_another_way_is_neither_failing_nor_passing(tmp_path: Path) -> None:
    def plant(case: str) -> str | None:
        return (
            None
            if "data=float16" not in case
            else "rejected:Fail"
            if "opset" in case or "@13" in case
            else "rejected:InvalidArgument"
        )

    found = groups(write(tmp_path, plant))
    assert [[str(term) for term in group.separation.rules[0].terms] for group in found] == [
        ["data=float16"],
        ["data=float16"],
    ]
    assert {(group.otherwise, " and ".join(map(str, group.apart))) for group in found} == {
        (16, "opset=12"),
        (16, "opset=13"),
    }


def test_known_deviations_only_where_asked_for(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        lambda case: (
            "known:Fail" if "X=float16" in case else "rejected:Fail" if "data=int64" in case else None
        ),
    )
    found = explain(RunReader(path))
    assert ([group.kind.known for group in found.groups], found.failing, found.known) == ([False], 32, 3)
    found = explain(RunReader(path), known=True)
    assert ([group.kind.known for group in found.groups], found.failing, found.known) == (
        [False, True],
        35,
        0,
    )


def test_unspecified_cases_are_neither(tmp_path: Path) -> None:
    results = [a_result(case, None) for case in cases()]
    results.append(
        a_result("Round@22:case=open;X=float32[1]", "rejected:Fail", validity=Validity.UNSPECIFIED)
    )
    found = explain(RunReader(write_results(tmp_path / "run.jsonl", results, {"cpu": CPU})))
    assert (found.groups, found.results) == ((), len(results) - 1)


def test_against_another_run(tmp_path: Path) -> None:
    base = write(tmp_path, lambda case: "rejected:Fail" if "data=int64" in case else None, "base")

    def now(case: str) -> str | None:
        if "data=int64" in case:
            return (
                None
                if "@13" in case
                else "rejected:InvalidArgument"
                if "[2,3,4]" in case
                else "rejected:Fail"
            )
        return "rejected:Fail" if "X=float16" in case else None

    found = explain_changes(RunReader(base), RunReader(write(tmp_path, now, "head")))
    assert [
        (title(g), " and ".join(map(str, g.separation.rules[0].terms)), g.population) for g in found.groups
    ] == [
        ("regression 3 × pass → rejected, Fail, at run on cpu: Round, valid cases", "X=float16", 67),
        ("fix 16 × rejected → pass on cpu: GatherND, valid cases", "opset=13", 8),
        (
            "changed 8 × rejected → rejected, InvalidArgument, at run on cpu: GatherND, valid cases",
            "data.rank>=3",
            8,
        ),
    ]


class TestSecondCrossCheck:
    """A run with `dml` and `directml`: each group says where the two together point."""

    def results(self, target: str, *, right: bool = False) -> list[Result]:
        """float16: both refuse. int64: only the provider is wrong; of its [2,3,4] with `mixed` the API has
        not said anything."""
        found = []
        for case in cases():
            how = None
            if "data=float16" in case:
                how = "rejected:Fail"
            elif "data=int64" in case and target == "dml" and not right:
                how = "mismatch:ulp"
            result = a_result(case, how, target)
            if how is None:
                result = msgspec.structs.replace(result, placed_on=WITNESSES[target].provider)
            elif how.startswith("mismatch"):
                result = msgspec.structs.replace(
                    result, output="0011223344556677", placed_on=WITNESSES[target].provider
                )
            if target == "dml" or "data=int64[2,3,4]" not in case or "mixed" not in case:
                found.append(result)
        return found

    def run(self, folder: Path, name: str = "run", *, right: bool = False) -> Path:
        results = self.results("dml", right=right) + self.results("directml")
        return write_results(folder / f"{name}.jsonl", results, WITNESSES)

    def test_each_group_says_where_it_points(self, tmp_path: Path) -> None:
        said = {
            (g.kind.target, g.kind.signature.outcome.value): cross_checked(g)
            for g in groups(self.run(tmp_path))
        }
        refused = "both refuse it, against the oracle"
        assert said == {
            (
                "dml",
                "rejected",
            ): f"cross-check directml, of 32: 32 point at DirectML or its driver ({refused})",
            (
                "directml",
                "rejected",
            ): f"cross-check dml, of 32: 32 point at DirectML or its driver ({refused})",
            (
                "dml",
                "mismatch",
            ): "cross-check directml, of 32: 24 point at ONNX Runtime's lowering (the outputs differ)",
        }

    def test_changes_are_held_against_the_cross_check_of_head(self, tmp_path: Path) -> None:
        found = explain_changes(
            RunReader(self.run(tmp_path, "base", right=True)), RunReader(self.run(tmp_path))
        )
        (group,) = found.groups
        assert (
            cross_checked(group)
            == "cross-check directml, of 32: 24 point at ONNX Runtime's lowering (the outputs differ)"
        )

    def test_a_mode_that_the_provider_composes_is_not_comparable(self, tmp_path: Path) -> None:
        case = "Round@22:sweep=rank;X=float32[3];values=random;variant=toward_zero"
        both = [a_result(case, "rejected:Fail", target) for target in WITNESSES]
        found = groups(write_results(tmp_path / "run.jsonl", both, WITNESSES))
        assert len(found) == 2
        for group in found:
            assert "of 1: 1 not comparable (the provider composes this mode" in cross_checked(group)

    def test_all_formats_say_it(self, tmp_path: Path) -> None:
        found = explain(RunReader(self.run(tmp_path)))
        assert "24 point at ONNX Runtime's lowering" in " ".join(RENDERINGS.text(found, "terminal").split())
        markdown = RENDERINGS.text(found, "markdown").replace("&#39;", "'")
        assert "- cross-check directml, of 32: 24 point at ONNX Runtime's lowering" in markdown
        said = [group["cross_check"] for group in json.loads(RENDERINGS.text(found, "json"))["groups"]]
        why = {"points": "ONNX Runtime's lowering", "why": "the outputs differ", "number": 24}
        assert {"target": "directml", "agreements": [why]} in said

    def test_no_cross_check_nothing_said(self, tmp_path: Path) -> None:
        results = self.results("dml")
        found = groups(write_results(tmp_path / "run.jsonl", results, {"dml": WITNESSES["dml"]}))
        assert found
        assert {(group.cross_check, cross_checked(group)) for group in found} == {("", "")}


def test_nothing_differs(tmp_path: Path) -> None:
    path = write(tmp_path, lambda case: None)
    ended = harness("explain", path, "--against", path)
    assert (ended.code, ended.out) == (0, "✓ Nothing differs among 102 results that ran in both runs.\n")


class TestCommand:
    def plant(self, case: str) -> str | None:
        if "batch_dims=1" in case and "indices=int64[3,1]" in case:
            return f"mismatch:{'nan' if 'mixed' in case else 'ulp'}"
        if "X=float16" in case:
            return "known:NotImplemented"
        return (
            "rejected:Fail" if "data=int64" in case and "[2,3,4]" in case and "values=first" in case else None
        )

    @pytest.mark.parametrize(
        ("format_", "suffix"), [("terminal", "txt"), ("markdown", "md"), ("json", "json")]
    )
    def test_looks_as_reviewed(self, tmp_path: Path, format_: str, suffix: str) -> None:
        text = RENDERINGS.text(explain(RunReader(write(tmp_path, self.plant)), known=True), format_)
        check_golden(GOLDEN / f"explain.{suffix}", text)
        if format_ == "terminal":
            assert max(len(line) for line in text.splitlines() if "@" not in line) <= 80

    def test_writes_a_file(self, tmp_path: Path) -> None:
        run = write(tmp_path, self.plant)
        ended = harness("explain", run, "--format", "json", "-o", tmp_path / "out.json")
        assert (ended.code, ended.out) == (0, "")
        document = json.loads((tmp_path / "out.json").read_text())
        assert [group["number"] for group in document["groups"]] == [24, 6]
        assert document["known_left_aside"] == 3

    def test_a_query_narrows(self, tmp_path: Path) -> None:
        ended = harness(
            "explain", write(tmp_path, self.plant), "-k", "GatherND:data=float32", "--format", "json"
        )
        (group,) = json.loads(ended.out)["groups"]
        assert (group["number"], group["held_against"]) == (8, 24)

    def test_nothing_selected(self, tmp_path: Path) -> None:
        path = write(tmp_path, self.plant)
        ended = harness("explain", path, "-k", "Gather:data=float32")
        assert (ended.code, complaint(ended)) == (
            4,
            f"{path}: nothing to explain: no result matches Gather:data=float32",
        )

    def test_bad_input(self, tmp_path: Path) -> None:
        path = write(tmp_path, self.plant)
        lines = path.read_bytes().splitlines(keepends=True)
        doubled = tmp_path / "doubled.jsonl"
        doubled.write_bytes(b"".join([*lines[:5], lines[3], *lines[5:]]))
        ended = harness("explain", doubled)
        assert ended.code == 2
        assert complaint(ended).startswith(f"{doubled}:6: damaged run file: 'GatherND@12:")
        other = tmp_path / "other.jsonl"
        other.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":9', 1))
        assert "run file schema 9; this harness reads schema 1" in complaint(
            harness("explain", path, "--against", other)
        )
        assert harness("explain", tmp_path / "none").code == 2
        assert harness("explain", path, "-k", "=").code == 2
        assert "exclude each other" in complaint(harness("explain", path, "--known", "--against", path))

    def test_a_cut_off_run_is_explained_as_far_as_it_goes(self, tmp_path: Path) -> None:
        path = write(tmp_path, self.plant)
        path.write_bytes(path.read_bytes()[:-300])
        ended = harness("explain", path)
        assert "The run file ends after 101 results, without its last line." in ended.out
        assert (ended.code, complaint(ended)[:30]) == (4, f"{path} is incomplete: "[:30])


class TestFake:
    """A hidden rule in the fake target, found from the run file."""

    @pytest.mark.parametrize(
        ("query", "where"),
        [
            pytest.param("GatherND:data=float32", ["batch_dims>=1", "data.rank>=3"], marks=pytest.mark.slow),
            ("Round", ["opset=22", "X.bits=16", "optimization=off"]),
            pytest.param(
                "GatherElements:data=int64",
                ["indices=int32", "axis<=-1", "values!=mixed"],
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_a_hidden_rule_is_found(
        self, tmp_path: Path, query: str, where: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("script.yaml").write_text(
            f"rules:\n  - {{match: {query.partition(':')[0]}, where: {json.dumps(where)}, do: fail}}\n"
        )
        spec = SPECS / f"{query.partition(':')[0]}.yaml"
        assert (
            harness(
                "run", spec, "-t", "fake,script=script.yaml", "-k", query, "--select", "pairwise", "-o", "out"
            ).code
            == 1
        )
        found = explain(RunReader(Path("out")), known=True)
        assert found.groups
        planted = {str(term) for term in map(Term.parse, where)}
        (group,) = (group for group in found.groups if group.kind.signature.validity is Validity.VALID)
        (rule,) = group.separation.rules
        assert group.separation.exact
        equivalent = [
            {str(term), *map(str, others)} for term, others in zip(rule.terms, rule.alternatives, strict=True)
        ]
        assert len(rule.terms) <= len(planted)
        failed = {
            line["case"]
            for line in lines_of(Path("out"))
            if line["type"] == "result" and line["outcome"] == "mismatch"
        }
        assert group.number == len(failed)
        assert planted & set().union(*equivalent)


def test_every_group_names_a_case_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, TestCommand().plant)
    found = groups(path, known=True)
    assert len(found) > 2
    for group in found:
        line = next(line for line in lines_of(path) if line.get("case") == group.example.case)
        assert msgspec.convert(line["outcome"], Outcome) is group.kind.signature.outcome


def test_flaky_results_are_a_group_of_their_own(tmp_path: Path) -> None:
    found = []
    for case in cases():
        result = a_result(case, "rejected:Fail" if "data=float16" in case else None)
        flaky = "data=float16" in case and "values=mixed" in case
        found.append(
            msgspec.structs.replace(result, repeats=Repeats(3, 2, {"rejected": 2, "pass": 1}))
            if flaky
            else result
        )
    path = write_results(tmp_path / "run.jsonl", found, {"cpu": CPU})
    assert sorted((group.kind.signature.flaky, group.number) for group in groups(path)) == [
        (False, 16),
        (True, 16),
    ]
    new = tmp_path / "new.yaml"
    ended = harness("expect", "update", path, new)
    assert "16 flaky results left aside: what changes between repeats cannot be expected" in ended.err
    assert "values=first" in new.read_text() or "GatherND:data=float16" in new.read_text()
