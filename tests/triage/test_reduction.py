"""Reduction: planted faults lead to the known smallest case, real ones to a case of which nothing more can be
taken."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness.commands.reduce import Reduced, reduce_case
from harness.compile.prepare import with_inputs
from harness.model.case import Case, DirectmlOptions, DirectmlTensor, Tensor, Validity
from harness.model.caseid import parse
from harness.model.errors import UsageError
from harness.model.query import parse_all
from harness.run.probe import Probes
from harness.specs.expand import expand
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.reading.write import reduced_from
from harness.specs.selection import Selection
from harness.specs.sweeps.calls import call_of, case_inputs
from harness.targets.execution import Prepared
from harness.targets.registry import parse_target
from harness.targets.target import Target
from harness.triage.reduction import shapes
from harness.triage.reduction.candidate import Candidate, Subject
from harness.triage.reduction.reducer import STEPS, Flaky, ReducedCase, Reducer
from harness.triage.reduction.settings import fewer_options
from harness.triage.reduction.shapes import smaller_shapes
from tests.needs import MISBEHAVING
from tests.prepared import prepared_case
from tests.running import SPECS, complaint, harness, planted, results_of, script_of
from tests.sampled import one_of

pytestmark = MISBEHAVING


@cache
def planned(operator: str) -> tuple[LoadedSpec, dict[str, Case]]:
    (spec,) = load_specs([SPECS / f"{operator}.yaml"])
    return spec, {case.id: case for case in expand([spec])}


def subject_of(case_id: str) -> Subject:
    spec, cases = planned(case_id.partition("@")[0])
    case = cases[case_id]
    return Subject(prepared_case(case), spec)


def reduced(case_id: str, target: Target, timeout: float = 30) -> Reduced:
    subject = subject_of(case_id)
    with Probes(target, timeout=timeout) as probes:
        found = reduce_case(probes, subject.origin, subject.spec)
    assert isinstance(found, Reduced), found
    return found


BATCHED = (
    "GatherND@13:sweep=batch;data=int32[2,1,2,2,1,3];indices=int64[2,1,3,1];batch_dims=2;values=boundary"
)
ELEMENTS = "GatherElements@13:sweep=dtype_rank;data=float16[2,3,4];indices=int32[2,3,4];axis=-1;values=mixed"


@pytest.mark.parametrize(
    ("case", "match", "action", "smallest"),
    one_of(
        5,
        [
            (BATCHED, "GatherND", "bit", "GatherND@11:case=batch_reduced;data=int64[1];indices=int64[1]"),
            (
                BATCHED,
                "GatherND:batch_dims=*",
                "bit",
                "GatherND@12:case=batch_reduced;data=int64[1];indices=int64[1];batch_dims=0",
            ),
            (
                BATCHED,
                "GatherND:batch_dims=2",
                "bit",
                "GatherND@12:case=batch_reduced;data=int64[1,1,1];indices=int64[1,1,1];batch_dims=2",
            ),
            (
                BATCHED,
                "GatherND:data=int32[*,*,2,*,*,*]",
                "bit",
                "GatherND@11:case=batch_reduced;data=int32[1,1,2,1,1,1];indices=int64[1]",
            ),
            (
                BATCHED,
                "GatherND:indices=int64[*,*,3,*]",
                "bit",
                "GatherND@11:case=batch_reduced;data=int64[1];indices=int64[1,1,3,1]",
            ),
            (
                ELEMENTS,
                "GatherElements:axis=-1",
                "ulp",
                "GatherElements@11:case=dtype_rank_reduced;data=float32[1];indices=int64[1];axis=-1",
            ),
            (
                ELEMENTS,
                "GatherElements@13:indices=int32",
                "nan",
                "GatherElements@13:case=dtype_rank_reduced;data=float32[1];indices=int32[1]",
            ),
            (
                ELEMENTS,
                "GatherElements:data=*[*,3,*]",
                "shape",
                "GatherElements@11:case=dtype_rank_reduced;data=float32[1,3,1];indices=int64[1,1,1]",
            ),
            (
                ELEMENTS,
                "GatherElements:data=float16",
                "reject",
                "GatherElements@11:case=dtype_rank_reduced;data=float16[1];indices=int64[1]",
            ),
            (
                ELEMENTS,
                "GatherElements",
                "misplace",
                "GatherElements@11:case=dtype_rank_reduced;data=float32[1];indices=int64[1]",
            ),
            (
                ELEMENTS,
                "GatherElements",
                "order",
                "GatherElements@11:case=dtype_rank_reduced;data=float32[2];indices=int64[2]",
            ),
        ],
    ),
    ids=lambda value: value.partition(";")[0] if isinstance(value, str) else None,
)
def test_a_planted_fault_leads_to_its_smallest_case(
    tmp_path: Path, case: str, match: str, action: str, smallest: str
) -> None:
    """By each kind of step; an altered bit of an integer is no ULP, so such a fault keeps to integers."""
    target = parse_target(planted(tmp_path, (match, action)))
    found = reduced(case, target)
    assert found.reduction.case.id == smallest
    assert_nothing_more_can_be_taken(found, target)


def assert_nothing_more_can_be_taken(found: Reduced, target: Target) -> None:
    """Try every step of every kind on the result, with a new subject and new workers: none may fail in the
    same way."""
    case = found.reduction.case
    subject = Subject(with_inputs(found.reduction.case), found.reduction.spec)
    cost = subject.cost(subject.start)
    tried = 0
    with Probes(target) as probes:
        again = probes.fresh(case)
        assert again.signature == found.reduction.signature
        for steps in STEPS:
            for step in filter(subject.keeps, steps(subject, subject.start)):
                if subject.cost(step) >= cost:
                    continue
                tried += 1
                assert subject.keeps(step)
                probe = probes.one(subject.case(step))
                assert probe.signature != found.reduction.signature, probe.prepared.case.id
    assert tried or case.id.endswith("data=float32[1];indices=int64[1]")


REAL = {
    "GatherND@12:sweep=batch_sizes_multiple;data=float32[2,3,4];indices=int64[4,3,1];batch_dims=1;values=first": "accepted_invalid",
    "GatherND@13:sweep=tuple_empty;data=int64[2,3,4];indices=int64[1,2,0];values=in_range;shapes=static": "accepted_invalid",
    "GatherND@13:case=batch_dims_below_minus_rank;data=float32[2,2];indices=int64[2,1];batch_dims=-3;shapes=static": "crash",
    "Round@22:sweep=rank;X=bfloat16[2,3];values=specials": "unsupported",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        pytest.param(case, outcome, marks=[pytest.mark.slow] if outcome != "unsupported" else [])
        for case, outcome in REAL.items()
    ],
    ids=lambda value: value.partition(";")[0],
)
def test_real_failures_of_the_cpu_provider_are_reduced_and_pasted_back(
    tmp_path: Path, case: str, outcome: str
) -> None:
    """Each result stands alone as a spec, and its entry pasted into the operator's spec gives a case with the
    same outcome."""
    found = reduced(case, parse_target("cpu"))
    assert found.reduction.signature.outcome.value == outcome
    assert found.reduction.after <= min(3, found.reduction.before - 1)
    assert found.reduction.case.validity is subject_of(case).origin.validity
    assert Subject(with_inputs(found.reduction.case), found.reduction.spec).rule == subject_of(case).rule
    assert_nothing_more_can_be_taken(found, parse_target("cpu"))
    entry = found.text.partition("\ncases:\n")[2]
    pasted, alone = tmp_path / found.reduction.spec.path.name, tmp_path / "alone.yaml"
    pasted.write_text(
        found.reduction.spec.path.read_text(encoding="utf-8").replace("\ncases:\n", f"\ncases:\n{entry}", 1),
        encoding="utf-8",
    )
    alone.write_text(found.text, encoding="utf-8")
    (tmp_path / "none").mkdir()  # what is known of the provider may speak of the reduced case too
    for spec, folder in ((pasted, tmp_path / "pasted"), (alone, tmp_path / "alone")):
        asked = ("-t", "cpu", "--expectations", tmp_path / "none", "-k", found.reduction.case.id)
        ended = harness("run", spec, *asked, "-o", folder)
        assert ended.code == 1, ended.err
        (result,) = results_of(folder).values()
        assert result["case"] == found.reduction.case.id
        assert result["outcome"] == outcome
        assert result["stage"] == found.reduction.signature.stage


@pytest.mark.slow
def test_the_search_does_not_slip_to_another_defect(tmp_path: Path) -> None:
    """One defect is of extents of 3 to 5, the other, which the second target has as well, of single
    elements."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    other = ("Round:X=float16[1]", "bit")
    old = parse_target(
        planted(tmp_path / "old", *((f"Round:X=float16[{extent}]", "bit") for extent in (3, 4, 5)), other)
    )
    new = parse_target(planted(tmp_path / "new", other))
    assert reduced(SIZES, old).reduction.case.id == "Round@11:case=sizes_reduced;X=float16[1]"
    subject = subject_of(SIZES)
    with Probes(old) as probes, Probes(new) as conforming:
        found = reduce_case(probes, subject.origin, subject.spec, conforming)
    assert isinstance(found, Reduced)
    assert found.reduction.case.id == "Round@11:case=sizes_reduced;X=float16[3]"
    first = found.text.partition("\n")[0]
    assert first.startswith(f"# {found.reduction.signature} on {old.name} (")
    assert f", conforming on {new.name} (" in first
    assert reduced_from(found.text) == SIZES


@pytest.mark.slow
def test_the_same_case_always_ends_at_the_same_one(tmp_path: Path) -> None:
    case = "GatherND@13:sweep=batch;data=string[1,3,2,4];indices=int64[1,3,2];batch_dims=1;values=boundary"
    target = parse_target(planted(tmp_path, ("GatherND:data=string[*,3,*,*]", "order")))
    first, second = reduced(case, target), reduced(case, target)
    assert first.text == second.text
    assert first.reduction.probes == second.reduction.probes


SIZES = "Round@22:sweep=sizes;X=float16[5];values=ordinary"
PATTERNS = "Round@22:sweep=all_patterns;X=float16[65536];values=patterns"
SPECIALS = "Round@22:sweep=values;X=float16[24];values=specials"


@pytest.mark.slow
def test_a_mismatch_keeps_its_kind(tmp_path: Path) -> None:
    """Zeros remain where the sign of zero is lost, though any element would still be a mismatch of another
    kind."""
    target = parse_target(planted(tmp_path, ("Round:X=float16", "zero_sign")))
    found = reduced(SPECIALS, target)
    assert found.reduction.signature.difference == "sign of zero"
    assert parse(found.reduction.case.id).tensors["X"].shape in ((), (1,))
    assert found.text.count("values: ") == 1


@pytest.mark.slow
def test_what_needs_whole_vectors_is_reduced_to_one(tmp_path: Path) -> None:
    """A kernel that is wrong only where elements fill vectors of four fails at 24 and 12, but at neither 6
    nor 11."""
    rules = [(f"Round:X=float32[{size}]", "bit") for size in range(4, 25, 4)]
    found = reduced(
        "Round@11:sweep=values;X=float32[24];values=specials", parse_target(planted(tmp_path, *rules))
    )
    assert found.reduction.case.id == "Round@11:case=values_reduced;X=float32[4]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "detail"),
    one_of(3, [("crash", "SIGSEGV"), ("hang", "no answer within 1.5 s"), ("exit", "exit code 3")]),
)
def test_timeouts_and_crashes_are_reduced(tmp_path: Path, action: str, detail: str) -> None:
    found = reduced(
        "Round@22:sweep=rank;X=float16[2,3];values=ordinary",
        parse_target(planted(tmp_path, ("Round:X=float16[*,*]", action))),
        timeout=1.5 if action == "hang" else 60,
    )
    assert parse(found.reduction.case.id).tensors["X"] == ("float16", (1, 1))
    assert found.reduction.signature.error == detail


@pytest.mark.slow
def test_a_large_tensor_is_filled_not_written_out(tmp_path: Path) -> None:
    target = parse_target(planted(tmp_path, ("Round:X=float16[?????]", "bit")))
    found = reduced("Round@22:sweep=all_patterns;X=float16[65536];values=patterns", target)
    shape = parse(found.reduction.case.id).tensors["X"].shape
    assert shape == (10000,)
    assert len(found.text) < 1000
    assert "fill: " in found.text


def test_what_fails_at_the_end_of_many_elements_is_halved_from_both_sides() -> None:
    """Infinities lie in the middle of all bit patterns: neither the first half nor the first element fails."""
    spec, cases = planned("Round")
    subject = Subject(prepared_case(cases[PATTERNS]), spec)
    data = subject.start.inputs[0].array
    probes: list[int] = []

    def fails(candidate: Candidate) -> bool:
        probes.append(candidate.inputs[0].array.size)
        return bool(np.isin(np.float16("inf"), candidate.inputs[0].array))

    assert np.isinf(data).sum() == 2
    current: Candidate | None = subject.start
    while current is not None:
        smallest = current
        current = next(filter(fails, filter(subject.keeps, smaller_shapes(subject, smallest))), None)
    assert smallest.inputs[0].array.size == 1
    assert len(probes) < 400, len(probes)


def test_two_dimensions_become_one_where_neither_can_be_dropped() -> None:
    subject = subject_of("Round@22:sweep=rank;X=float16[2,3];values=ordinary")
    shapes = [step.shapes[0] for step in filter(subject.keeps, smaller_shapes(subject, subject.start))]
    assert (6,) in shapes


@pytest.mark.slow
def test_a_search_that_takes_too_long_ends_with_the_smallest_so_far(tmp_path: Path) -> None:
    subject = subject_of(BATCHED)
    target = parse_target(planted(tmp_path, ("GatherND", "fail")))
    told: list[tuple[int, int]] = []

    def progress(number: int, left: int) -> None:
        told.append((number, left))

    with Probes(target) as probes:
        prepared = prepared_case(subject.origin)
        found = Reducer(probes, prepared, subject.spec, progress, seconds=0.0).reduce()
        assert isinstance(found, Flaky)  # no time for the first probe of the search either
        reducer = Reducer(probes, prepared, subject.spec, progress, seconds=1e9)
        stop_after(reducer, 6, told)
        found = reducer.reduce()
    assert isinstance(found, ReducedCase)
    assert not found.finished
    assert found.after < found.before
    assert [left for _, left in told] == sorted((left for _, left in told), reverse=True)


def stop_after(reducer: Reducer, probes: int, told: list[tuple[int, int]]) -> None:
    """End the reducer's time with a probe."""
    before = reducer._progress

    def progress(number: int, left: int) -> None:
        before(number, left)
        if len(told) >= probes:
            reducer._until = 0.0

    reducer._progress = progress


def after_larger() -> str:
    return next(id_ for id_, case in planned("Round")[1].items() if case.options.after == "larger")


@pytest.mark.slow
def test_what_fails_without_the_earlier_call_too_is_reduced_without_it(tmp_path: Path) -> None:
    found = reduced(after_larger(), parse_target(planted(tmp_path, ("Round", "bit"))))
    assert found.reduction.case.options.after is None
    assert found.reduction.after == 1


@pytest.mark.slow
def test_what_fails_only_after_another_call_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"fails only after another call in its session \(after=larger\)"):
        reduced(after_larger(), parse_target(planted(tmp_path, ("Round:after=larger", "bit"))))


def test_steps_make_every_candidate_cheaper_and_keep_the_rules() -> None:
    subject = subject_of(BATCHED)
    candidates: list[Candidate] = [
        step for steps in STEPS for step in filter(subject.keeps, steps(subject, subject.start))
    ]
    assert len(candidates) > 100
    assert all(subject.broken(step) is None for step in candidates)
    assert all(0 not in shape for step in candidates for shape in step.shapes)


def test_a_vector_of_text_becomes_one_text() -> None:
    subject = subject_of("StringSplit@20:case=documented_without_delimiter;X=string[3]")
    smaller = list(filter(subject.keeps, smaller_shapes(subject, subject.start)))
    assert any(each.inputs[0].array.shape == () and each.inputs[0].array.dtype == object for each in smaller)


class TestCommand:
    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    SPEC = ("--spec", SPECS / "Round.yaml")

    @pytest.mark.slow
    def test_the_spec_goes_to_stdout_and_the_probes_to_stderr(self, tmp_path: Path) -> None:
        script = script_of(tmp_path, [("Round:X=float16", "bit")])
        ended = harness("reduce", SIZES, "-t", f"fake,script={script}", *self.SPEC)
        assert ended.code == 0
        assert ended.out.startswith("# mismatch (")
        assert "\n  - name: sizes_reduced\n" in ended.out
        (line,) = ended.err.splitlines()
        assert " probes: 5 elements became 1; mismatch (" in line
        written = harness(
            "reduce", SIZES, "-t", f"fake,script={script}", *self.SPEC, "-o", tmp_path / "small.yaml"
        )
        assert written.out == f"{tmp_path / 'small.yaml'}: Round@11:case=sizes_reduced;X=float16[]\n"
        assert (tmp_path / "small.yaml").read_text(encoding="utf-8") == ended.out

    @pytest.mark.slow
    def test_target_and_seed_come_from_a_run(self, tmp_path: Path) -> None:
        script = script_of(tmp_path, [("Round:X=float16", "bit")])
        options = (
            SPECS / "Round.yaml",
            "-t",
            f"fake,script={script}",
            "--seed",
            "7",
            "-k",
            SIZES,
            "-o",
            tmp_path / "run",
        )
        assert harness("run", *options).code == 1
        refused = harness("reduce", SIZES, "--run", tmp_path / "run", *self.SPEC)
        assert (refused.code, refused.out) == (2, "")
        assert complaint(refused).endswith(f"if it is yours, repeat it: -t fake,script={script}")
        ended = harness("reduce", SIZES, "--run", tmp_path / "run", "-t", f"fake,script={script}", *self.SPEC)
        assert ended.code == 0, ended.err
        assert f"on fake,script={script} (" in ended.out
        assert harness("reduce", SIZES, "--run", tmp_path / "run", "--seed", "7", *self.SPEC).code == 2
        absent = harness("reduce", SIZES.replace("[5]", "[7]"), "--run", tmp_path / "run", *self.SPEC)
        assert "the run has no case" in complaint(absent)

    def test_a_conforming_case_is_one_line_and_4(self) -> None:
        ended = harness("reduce", SIZES, "-t", "fake", *self.SPEC)
        assert ended.code == 4
        assert "conforms on fake (pass): there is nothing to reduce" in complaint(ended)

    @pytest.mark.slow
    def test_what_conforms_nowhere_has_no_second_target(self, tmp_path: Path) -> None:
        target = f"fake,script={script_of(tmp_path, [('Round:X=float16', 'bit')])}"
        ended = harness(
            "reduce", SIZES, "-t", target, "--conforms-on", target, *self.SPEC, "-o", "small.yaml"
        )
        assert (ended.code, ended.out) == (2, "")
        assert complaint(ended).endswith("either (mismatch): name a target without the defect")
        assert not Path("small.yaml").exists()
        ended = harness("reduce", SIZES, "-t", target, "--conforms-on", "gpu", *self.SPEC)
        assert ended.code == 2
        assert "unknown target 'gpu'" in complaint(ended)
        ended = harness("reduce", SIZES, "-t", target, "--conforms-on", "fake", *self.SPEC)
        assert ended.code == 0, ended.err

    def test_a_flake_is_said_and_nothing_is_written(self, tmp_path: Path) -> None:
        (tmp_path / "script.yaml").write_text(
            "rules:\n  - {match: Round, do: ulp, every: 2}\n", encoding="utf-8"
        )
        ended = harness("reduce", SIZES, "-t", "fake,script=script.yaml", *self.SPEC, "-o", "small.yaml")
        assert (ended.code, ended.out) == (1, "")
        assert complaint(ended).endswith(
            "flaky on fake,script=script.yaml: mismatch (ulp) 2 of 3, pass 1 of 3; nothing is written"
        )
        assert not Path("small.yaml").exists()

    @pytest.mark.parametrize(
        ("case", "options", "code", "said"),
        [
            (
                "Round@22:sweep=sizes;X=float16[34];values=ordinary",
                (),
                2,
                "the nearest is 'Round@22:sweep=sizes;X=float16[",
            ),
            ("Rund@22:X=float16", (), 2, "no operator 'Rund'; did you mean 'Round'?"),
            ("Round@22", (), 2, "name one of them, for example Round@22:"),
            ("what is it", (), 2, "bad query 'what is it'"),
            (SIZES, ("-t", "gpu"), 2, "unknown target 'gpu'"),
            (SIZES, ("--spec", "absent.yaml"), 2, "absent.yaml: cannot read"),
            (SIZES, ("-o", "/"), 2, "/: is a folder; -o names a file"),
            (
                SIZES,
                ("-o", "/dev/null/small.yaml"),
                2,
                "/dev/null/small.yaml: cannot be written: /dev/null is no folder",
            ),
        ],
    )
    def test_wrong_input_is_one_line(self, case: str, options: tuple[str, ...], code: int, said: str) -> None:
        ended = harness("reduce", case, *(options if "--spec" in options else (*self.SPEC, *options)))
        assert (ended.code, ended.out) == (code, "")
        assert said in complaint(ended)

    def test_an_unspecified_case_has_no_failure(self) -> None:
        case = next(
            case.id for case in planned("GatherND")[1].values() if case.validity is Validity.UNSPECIFIED
        )
        ended = harness("reduce", case, "--spec", SPECS / "GatherND.yaml")
        assert ended.code == 2
        assert "ONNX leaves open" in complaint(ended)

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        script = script_of(tmp_path, [("Round", "bit")])
        ended = harness(
            "reduce", SIZES, "-t", f"fake,script={script}", *self.SPEC, "-o", script / "small.yaml"
        )
        assert ended.code == 2
        assert "script.yaml" in ended.err.splitlines()[-1]


class TestCallsOfDirectmlItself:
    """Calls of DirectML's own API: a smaller one asks for less and stays within Microsoft's tables."""

    def subject(self, query: str) -> Subject:
        (spec,) = load_specs([SPECS / "GatherElements.yaml"])
        queries = parse_all([query])
        case = next(iter(Selection(expand([spec], queries), queries)))
        call = call_of(case)
        return Subject(Prepared(case, call, case_inputs(call, case, 0)), spec)

    def test_what_it_asks_for_is_taken_away(self) -> None:
        subject = self.subject("GatherElements:sweep=api_data_layout;layout.InputTensor=padded")
        found = [
            step
            for step in filter(subject.keeps, fewer_options(subject, subject.start))
            if step.directml != subject.start.directml
        ]
        assert DirectmlOptions() in [step.directml for step in found]
        assert all(subject.cost(step) < subject.cost(subject.start) for step in found)
        assert ";api=directml" in subject.case(found[0]).id

    def test_no_step_leaves_the_tables(self) -> None:
        """No level documents nine dimensions."""
        subject = self.subject("GatherElements:sweep=api_data_layout;data=float32")
        ones = tuple(
            Tensor(tensor.dtype, np.zeros((1,) * 9, tensor.array.dtype)) for tensor in subject.start.inputs
        )
        wide = subject.start._replace(inputs=ones)
        assert subject.keeps(subject.start)
        assert (subject.keeps(wide), subject.broken(wide)) == (False, "a published table of the operator")

    def test_shapes_stay_beside_members_that_the_case_writes(self) -> None:
        subject = self.subject("GatherElements:sweep=api_data_layout;data=float32")
        members = DirectmlOptions(tensors=(("InputTensor", DirectmlTensor(flags=0)),))
        written = subject.start._replace(directml=members)
        assert subject.keeps(written)
        assert not any(True for _ in filter(subject.keeps, smaller_shapes(subject, written)))

    def test_an_invalid_one_is_left_to_repro(self) -> None:
        with pytest.raises(UsageError, match="`harness repro` writes it as it is"):
            self.subject("GatherElements@13:case=api_axis_beyond")


def test_a_list_loses_a_place_and_a_permutation_stays_one() -> None:
    assert shapes._without((2, 0, 1), 1, 3) == (1, 0)
    assert shapes._without(("2", "0", "1"), 1, 3) == ("2", "1")
    assert shapes._without((0.0, 1.0, 2.0), 0, 3) == (1.0, 2.0)
