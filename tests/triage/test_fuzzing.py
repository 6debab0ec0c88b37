"""The fuzzer: what it draws is valid and reaches beyond the sweeps, the same seed draws the same, planted
faults are found once and shrunk, known ones are not reported."""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest

from harness.model.case import TensorValue, Validity
from harness.model.signature import Signature
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.run.oracle import oracle
from harness.run.probe import Probes
from harness.specs.expand import expand
from harness.specs.expectations.expectations import load_expectations
from harness.specs.expectations.target_expectations import TargetExpectations
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.calls import call_of, case_inputs
from harness.specs.sweeps.sessions import earlier_case
from harness.targets.execution import Prepared
from harness.targets.registry import parse_target
from harness.triage.fuzzing.changes import LARGEST, near
from harness.triage.fuzzing.findings import FuzzFinding, FuzzFindings, kind_of
from harness.triage.fuzzing.fuzzer import Fuzzer
from harness.triage.fuzzing.random_calls import Drawing, Drawn
from harness.triage.fuzzing.seeds import Seeds
from harness.triage.reduction.candidate import Subject
from tests.fuzzing import LONG, ends_with
from tests.running import SPECS, complaint, harness, planted

DRAWN = ("Gather", "Round", "Transpose")


@cache
def seeds_of(operator: str) -> Seeds:
    (spec,) = load_specs([SPECS / f"{operator}.yaml"])
    return Seeds(spec, OPERATORS[operator.replace("/", ".")], list(expand([spec])))


def drawn(operator: str, seed: int, number: int) -> list[Drawn]:
    return list(islice(Drawing(seeds_of(operator), seed), number))


class TestDrawing:
    @pytest.mark.slow
    def test_a_call_that_follows_another_can_follow_one(self) -> None:
        after = [case for case, *_ in drawn("TfIdfVectorizer", 1, 1500) if case.options.after is not None]
        assert {case.options.after for case in after} == {"same", "larger", "smaller"}
        assert all(earlier_case(case) is not None for case in after)

    def test_calls_begin_as_a_case_that_writes_an_input_out(self) -> None:
        """Its elements have no kind that every family knows."""
        assert len(drawn("com.microsoft/SkipGroupNorm", 1, 200)) == 200

    @pytest.mark.parametrize("operator", DRAWN)
    def test_every_call_is_valid_and_has_a_result(self, operator: str) -> None:
        spec = seeds_of(operator).spec
        for case, *_ in drawn(operator, 3, 40):
            call = call_of(case)
            prepared = Prepared(case, call, case_inputs(call, case, 0))
            subject = Subject(prepared, spec)  # refuses what breaks a rule
            assert subject.rule is None
            assert case.validity is Validity.VALID
            assert oracle(prepared, "") is not None
            assert all(tensor.array.size <= LARGEST for tensor in prepared.inputs)

    @pytest.mark.parametrize("operator", DRAWN)
    def test_calls_reach_beyond_the_cases(self, operator: str) -> None:
        known = {tuple(spec.shape for spec in case.inputs) for case in seeds_of(operator).cases}
        found = drawn(operator, 3, 60)
        new = [each for each in found if tuple(spec.shape for spec in each.case.inputs) not in known]
        assert len(new) > 10
        assert len({each.case.options for each in found}) > 3
        assert len({each.case.inputs[0].dtype for each in found}) > 2

    def test_the_same_seed_draws_the_same_calls(self) -> None:
        one, again, other = (drawn("Transpose", seed, 40) for seed in (5, 5, 6))
        assert [each.case.id for each in one] == [each.case.id for each in again]
        assert [each.case.id for each in one] != [each.case.id for each in other]
        for left, right in zip(one, again, strict=True):
            for first, second in zip(left.case.literals or (), right.case.literals or (), strict=True):
                np.testing.assert_array_equal(first, second)

    def test_an_alias_tells_the_sweep_and_the_kinds_that_it_began_as(self) -> None:
        aliases = [each.aliases[0] for each in drawn("Gather", 3, 40)]
        assert any(":sweep=" in alias and ";indices.values=" in alias for alias in aliases)
        assert all(alias.startswith("Gather@") for alias in aliases)

    def test_near_values_are_of_the_same_type(self) -> None:
        random = Random(1)
        tensor = TensorValue("float32", (1,), (1.0,))
        for value in (3, 0.5, "linear", (1, 2), (0.5,), (), tensor, 2**63 - 1, -(2**63)):
            for _ in range(50):
                found = near(value, random)
                assert type(found) is type(value)
                if isinstance(found, int):
                    assert -(2**63) <= found < 2**63


def finding(signature: Signature) -> FuzzFinding:
    case, _, spec = drawn("Round", 1, 1)[0]
    return FuzzFinding(case, spec, signature)


class TestFindings:
    def test_calls_of_a_kind_are_one_defect_once_three_have_the_same_end(self) -> None:
        case = drawn("Round", 1, 1)[0].case
        signature = Signature(Outcome.MISMATCH, "compare", "", "ulp")
        kind, found = kind_of(case, signature), FuzzFindings()
        assert found.add(kind, 0, finding(signature)) is not None
        assert found.settled(kind) is None
        assert found.add(kind, 1, finding(signature)) is None
        assert found.add(kind, 2, finding(signature)) is None
        settled = found.settled(kind)
        assert settled is not None
        assert settled.calls == [0, 1, 2]
        other = signature._replace(difference="NaN")
        assert found.settled(kind_of(case, other)) is None
        assert found.add(kind_of(case, other), 3, finding(other)) is not None

    def test_the_rule_is_what_tells_failing_calls_from_passing_ones(self) -> None:
        case = drawn("Round", 1, 1)[0].case
        signature = Signature(Outcome.MISMATCH, "compare", "", "ulp")
        found = FuzzFindings()
        for extent in range(1, 13):
            number = found.ran(f"Round@22:sweep=s;X=float32[{extent}];values=ordinary", "2_1")
            found.passed(number)
        for extent in range(1, 13):
            number = found.ran(f"Round@22:sweep=s;X=float16[{extent}];values=ordinary", "2_1")
            found.add(kind_of(case, signature), number, finding(signature))
        (one,) = found.found.values()
        assert "float16" in found.rule(one)
        assert found.rule(one).endswith("12 of 12 such calls fail in this way")


def fuzz(folder: Path, operator: str, *rules: tuple[str, str], seed: int = 4) -> Fuzzer:
    target = parse_target(planted(folder, *rules))
    with Probes(target) as probes:
        fuzzer = Fuzzer(Drawing(seeds_of(operator), seed), probes, TargetExpectations("fake"))
        fuzzer._end = float("inf")
        calls = iter(fuzzer.drawing)
        for _ in range(2):
            fuzzer._batch(list(islice(calls, 48)))
    return fuzzer


@pytest.mark.usefixtures("started")
class TestFuzzer:
    def test_a_target_without_faults_has_no_findings(self, tmp_path: Path) -> None:
        fuzzer = fuzz(tmp_path, "Transpose", ("Transpose", "pass"))
        assert (fuzzer.done.ran, fuzzer.done.passed) == (96, 96)
        assert not fuzzer.findings.found

    @pytest.mark.slow
    def test_a_planted_fault_is_one_finding_and_shrunk(self, tmp_path: Path) -> None:
        fuzzer = fuzz(tmp_path, "Transpose", ("Transpose:data=int32", "fail"))
        (finding,) = fuzzer.findings.found.values()
        assert len(finding.calls) == fuzzer.done.ran - fuzzer.done.passed > 1
        assert finding.case.inputs[0].dtype == "int32"
        assert finding.case.inputs[0].shape in ((), (1,))
        assert finding.remark == ""

    @pytest.mark.slow
    def test_two_faults_are_two_findings(self, tmp_path: Path) -> None:
        fuzzer = fuzz(
            tmp_path,
            "Transpose",
            ("Transpose:data=int32", "fail"),
            ("Transpose:data=float16", "reject"),
            seed=5,  # draws both types
        )
        outcomes = sorted(each.signature.outcome.value for each in fuzzer.findings.found.values())
        assert set(outcomes) == {"rejected", "mismatch"}


@pytest.mark.usefixtures("started")
class TestCommand:
    @pytest.mark.slow
    def test_findings_are_a_spec_that_runs_and_the_exit_code_is_1(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ends_with("int32", monkeypatch)
        target = planted(tmp_path, ("Transpose:data=int32", "fail"))
        asked = ("fuzz", "Transpose", "-t", target, *LONG, "--seed", "4", "-o", tmp_path / "out")
        ended = harness(*asked)
        assert ended.code == 1, ended.err
        spec = tmp_path / "out" / "Transpose.yaml"
        cases = list(expand(load_specs([spec])))
        assert cases[0].id.partition(":")[2].startswith("case=fuzz_1;data=int32[")
        assert all(case.inputs[0].dtype == "int32" and case.id in ended.out for case in cases)
        ran = harness("run", spec, "-t", target, "-j", "1", "-o", tmp_path / "run")
        assert ran.code == 1
        assert "mismatch" in ran.out
        again = harness(*asked)
        assert again.code == 2
        assert (
            complaint(again) == f"{spec}: is there already; --force replaces it, -o DIR names another folder"
        )

    @pytest.mark.slow
    def test_what_fails_after_another_call_is_written_without_it_and_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ends_with("", monkeypatch)
        target = planted(tmp_path, ("Round:after=same", "fail"))
        ended = harness("fuzz", "Round", "-t", target, *LONG, "--seed", "4", "-o", tmp_path / "out")
        assert ended.code == 1, ended.err
        assert "failed after another call in its session (after=same)" in ended.out
        assert all(
            case.options.after is None for case in expand(load_specs([tmp_path / "out" / "Round.yaml"]))
        )

    def test_nothing_found_is_0_and_writes_nothing(self, tmp_path: Path) -> None:
        target = planted(tmp_path, ("Transpose", "pass"))
        ended = harness("fuzz", "Transpose", "-t", target, "--seconds", "1", "-o", tmp_path / "out")
        assert ended.code == 0, ended.err
        assert "0 known, 0 unexpected" in ended.out
        assert not (tmp_path / "out").exists()

    def test_known_deviations_are_counted_and_not_reported(self, tmp_path: Path) -> None:
        target = planted(tmp_path, ("Transpose:data=int32", "fail"))
        known = tmp_path / "known.yaml"
        known.write_text(
            "- {match: 'Transpose:data=int32', expect: mismatch, masked: planted, reason: planted, link: 'https://example.com/1'}\n",
            encoding="utf-8",
        )
        ended = harness(
            "fuzz", "Transpose", "-t", target, "--seconds", "1.5", "--seed", "4", "--expectations", known
        )
        assert ended.code == 0, ended.out
        assert "known.yaml:1" in ended.out

    @pytest.mark.parametrize(
        ("arguments", "code", "told"),
        [
            (("Transpos",), 2, "the harness has no formula for 'Transpos', so nothing could judge its calls; did you mean 'Transpose'?"),
            (("ImageDecoder",), 2, "the harness has no formula for 'ImageDecoder', so nothing could judge its calls"),
            (("Round", "--spec", "nowhere.yaml"), 2, "nowhere.yaml: "),
            (("Round", "--spec", SPECS / "Abs.yaml"), 2, f"{SPECS / 'Abs.yaml'}: no spec of Round"),
            (("Round", "-t", "cup"), 2, "unknown target"),
        ],
    )  # fmt: skip
    def test_bad_input_is_one_line(
        self, tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
    ) -> None:
        ended = harness("fuzz", *arguments, "-o", tmp_path / "out")
        assert ended.code == code
        assert told in complaint(ended)


def test_expectations_that_a_call_matches_by_its_sweep_count() -> None:
    known = load_expectations([SPECS / "expectations" / "cpu.yaml"])
    info = msgspec.structs.replace(TargetExpectations("cpu").info, provider="CPUExecutionProvider")
    judged = known.for_target("cpu", info)
    alias = "Gather@13:sweep=dtype_rank;data=string[3,4,7];indices=int64[2];axis=0;values=in_range"
    assert judged.record(alias, Outcome.MISMATCH, conforms=False) is not None
    assert judged.record(alias.replace("dtype_rank", "else"), Outcome.MISMATCH, conforms=False) is None


def test_an_interruption_ends_it_with_what_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Probes(parse_target(planted(tmp_path, ("Transpose", "pass")))) as probes:
        fuzzer = Fuzzer(Drawing(seeds_of("Transpose"), 4), probes, TargetExpectations("fake"))
        whole = fuzzer._batch

        def batch(calls: list[Drawn]) -> None:
            whole(calls)
            raise KeyboardInterrupt

        monkeypatch.setattr(fuzzer, "_batch", batch)
        fuzzer.run(1000)
    assert fuzzer.done.stopped
    assert fuzzer.done.ran == 48


@pytest.mark.parametrize(
    ("operator", "kind", "shape"), [("DFT", "spectrum", (1, 0, 2)), ("MaxRoiPool", "peaked", (1, 1, 0, 2))]
)
def test_kinds_of_an_input_may_have_no_element(operator: str, kind: str, shape: tuple[int, ...]) -> None:
    formula = OPERATORS[operator]
    call = call_of(seeds_of(operator).cases[0])
    (name, given), *others = call.inputs.items()
    call = call._replace(inputs=dict([(name, given._replace(shape=shape)), *others]))
    assert not formula.family.generate(formula, kind, name, call, b"").size
