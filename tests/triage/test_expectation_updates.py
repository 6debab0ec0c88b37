"""`harness expect`: proposals that describe a run, entries that are dropped or narrowed, files that stay as
they were elsewhere."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.model.case import Validity
from harness.model.result import Error, Memory, Result
from harness.model.verdict import Outcome
from harness.specs.expand import expand
from harness.specs.expectations.expectation_lint import lint
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading.load import load_specs
from harness.specs.reading.source import read
from harness.triage.expect.entry_file import EntryFile, NewEntry
from harness.triage.expect.updates import shared_message
from tests.results.test_explain import a_result, cases
from tests.running import ROUND, SPECS, complaint, harness, lines_of, results_of
from tests.synthetic import CPU, write_results

pytestmark = pytest.mark.usefixtures("in_folder")
ENTRIES = """\
# Why these are known.

# About complex numbers.
- match: ["GatherND:data=float16", "Round:X=float16"]  # both
  when: {provider: CPUExecutionProvider}
  expect: rejected
  reason: >-
    A reason of two
    lines.
  link: https://example.org/1

# About batches.
- match:
    - "GatherND:batch_dims=1"
  expect: rejected
  reason: another
  link: https://example.org/2
# The end.
"""


def write(path: str, text: str) -> Path:
    Path(path).write_text(text)
    return Path(path)


def a_run(*failing: str, outcome: str = "rejected:Fail", left: float = 0) -> Path:
    """Write a complete run in which the cases fail that a fragment of their id names."""
    found: list[Result] = [
        a_result(case, outcome if any(part in case for part in failing) else None) for case in cases()
    ]
    return write_results(Path("run.jsonl"), found, {"cpu": CPU})


def fill(path: Path) -> None:
    path.write_text(
        path.read_text()
        .replace("gives: TODO", "difference: {kind: value}")
        .replace("reason: TODO", "reason: planted")
        .replace("link: TODO", "link: https://example.org/3")
    )


@pytest.mark.parametrize(
    ("messages", "shared"),
    [
        (["Dynamic pads tensor is required"], "Dynamic pads tensor is required"),
        (["x/pad.cc:7 F p was false. Pads tensor is needed", "x/pad.cc:9 G Pads tensor is needed"], "Pads tensor is needed"),
        (["dim 3 must be 4 or more", "dim 30 must be 4 or more"], "must be 4 or more"),
        (["too short", "too short"], ""),
        (["another reason by far", "nothing in common with"], ""),
        (["the first line\nof one reason"], "the first line"),
        (["words  apart of a reason"], ""),
        ([], ""),
    ],
)  # fmt: skip
def test_what_messages_share(messages: list[str], shared: str) -> None:
    assert shared_message(messages) == shared


class TestPropose:
    def test_one_rule_is_one_entry_and_nothing_is_invented(self) -> None:
        ended = harness("expect", "update", a_run("data=float16"), "new.yaml")
        assert ended.code == 0
        assert Path("new.yaml").read_text() == (
            '- match: "GatherND:data=float16"\n  when: {provider: CPUExecutionProvider}\n  expect: rejected\n  reason: TODO\n  link: TODO\n'
        )
        assert "added to new.yaml: rejected on cpu: GatherND:data=float16; fill in reason, link" in ended.err

    def test_refusals_that_share_a_reason_are_expected_for_it_alone(self) -> None:
        where = "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned. Status Message: /a/gather.cc:"
        found = [a_result(case, "rejected:Fail" if "data=float16" in case else None) for case in cases()]
        for number, each in enumerate(found):
            if each.error is not None:
                told = f'{where}{number} Compute() size > 0 was false. rank {number} of "data" must be one of:\n1, 2'
                found[number] = msgspec.structs.replace(each, error=Error("Fail", told))
        run = write_results(Path("run.jsonl"), found, {"cpu": CPU})
        assert harness("expect", "update", run, "new.yaml").code == 0
        assert '  message: "of \\"data\\" must be one of:"\n' in Path("new.yaml").read_text()
        (entry,) = load_expectations([Path("new.yaml")]).entries
        assert entry.entry.message == 'of "data" must be one of:'
        assert harness("expect", "update", run, "new.yaml", "--check").code == 0

    def test_one_cause_in_two_operators_is_one_entry(self) -> None:
        harness("expect", "update", a_run("=float16["), "new.yaml")
        (entry,) = load_expectations([Path("new.yaml")]).entries
        assert set(entry.entry.match) == {"GatherND:data=float16", "Round:X=float16"}

    def test_memory_from_outside_is_proposed_where_the_case_leaves_the_rest_open(self) -> None:
        """A run is red by it, so that something is to be said of it."""
        memory, inside = Memory(0, 2, 0, 4), Memory(1, 0, 0, 4)
        found = [
            msgspec.structs.replace(
                each, validity=Validity.UNSPECIFIED, memory=memory if "=float16[" in each.case else inside
            )
            for each in (a_result(case, "mismatch:nan") for case in cases())
        ]
        run = write_results(Path("run.jsonl"), found, {"cpu": CPU})
        ended = harness("expect", "update", run, "new.yaml", "--check")
        assert ended.code == 1
        assert "+  expect: mismatch\n" in ended.out

    def test_a_second_update_has_nothing_to_do(self) -> None:
        run = a_run("data=float16", "X=float32")
        harness("expect", "update", run, "new.yaml")
        before = Path("new.yaml").read_bytes()
        ended = harness("expect", "update", run, "new.yaml")
        assert (ended.code, ended.out) == (0, "the expectations describe the run: nothing to change\n")
        assert harness("expect", "update", run, "new.yaml", "--check").code == 0
        assert Path("new.yaml").read_bytes() == before

    def test_a_case_that_no_rule_tells_apart_is_named(self) -> None:
        lonely = cases()[17]
        harness("expect", "update", a_run(lonely, "X=float16"), "new.yaml")
        entries = load_expectations([Path("new.yaml")]).entries
        selected = {case for case in cases() if any(entry.matches(case) for entry in entries)}
        assert selected == {lonely, *(case for case in cases() if "X=float16" in case)}

    def test_a_case_that_fails_is_told_from_a_passing_one_whose_id_lacks_a_term(self) -> None:
        shorter = "Round@22:sweep=rank;X=float32[2,3];values=random"
        ids = [
            f"Round@22:sweep=rank;X=float32[{shape}];values=random"
            for shape in ("1", "3", "2,3", "4,5", "1,2,3", "2,2,2,2")
        ]
        found = [
            a_result(case, "rejected:Fail" if case != shorter else None)
            for each in ids
            for case in (each, f"{each};shapes=static")
        ]
        run = write_results(Path("run.jsonl"), [*found, a_result(cases()[0], None)], {"cpu": CPU})
        assert harness("expect", "update", run, "new.yaml").code == 0
        entries = load_expectations([Path("new.yaml")]).entries
        for result in found:
            assert any(entry.matches(result.case) for entry in entries) is (result.case != shorter), (
                result.case
            )

    def test_check_prints_the_difference_and_writes_nothing(self) -> None:
        write("old.yaml", ENTRIES)
        ended = harness(
            "expect", "update", a_run("=float16[", "batch_dims=1", "X=float32"), "old.yaml", "--check"
        )
        assert ended.code == 1
        assert ended.out.startswith("--- old.yaml\n+++ old.yaml\n@@ ")
        assert '+- match: "Round:X=float32"' in ended.out or '+- match: "Round"' in ended.out
        assert Path("old.yaml").read_text() == ENTRIES

    @pytest.mark.slow
    def test_lint_and_run_fail_until_reason_and_link_are_filled_in(self) -> None:
        write("script.yaml", 'rules: [{match: Round, where: ["opset=22", "X.rank>=3"], do: ulp}]\n')
        run = ("run", ROUND, "-t", "fake,script=script.yaml", "-o")
        write("none.yaml", "[]\n")
        assert harness(*run, "first", "--expectations", "none.yaml").code == 1
        ended = harness("expect", "update", "first", "new.yaml")
        assert ended.code == 0
        assert "fill in gives, reason, link" in ended.err
        ended = harness("expect", "lint", "new.yaml", "--spec", ROUND)
        assert ended.code == 1
        assert ended.err.startswith("new.yaml:1: [0]: not reviewed yet: fill in gives, reason, link\n")
        assert harness(*run, "second", "--expectations", "new.yaml").code == 1
        assert any("not reviewed yet" in problem for problem in lines_of(Path("second"))[-1]["problems"])
        fill(Path("new.yaml"))
        assert harness("expect", "lint", "new.yaml", "--spec", ROUND).code == 0
        assert harness(*run, "third", "--expectations", "new.yaml").code == 0
        assert harness("expect", "update", "third", "new.yaml", "--check").code == 0

    @pytest.mark.slow
    def test_a_real_target(self) -> None:
        write("none.yaml", "[]\n")
        query = (
            "-k",
            "GatherND:sweep=tuple_empty",
            "-k",
            "GatherND:sweep=empty",
            "-k",
            "GatherND:sweep=dtype_rank;data=complex*",
        )
        run = ("run", SPECS / "GatherND.yaml", "-t", "cpu", *query, "-o")
        assert harness(*run, "first", "--expectations", "none.yaml").code == 1
        assert harness("expect", "update", "first", "new.yaml").code == 0
        fill(Path("new.yaml"))
        assert harness(*run, "second", "--expectations", "new.yaml").code == 0
        assert len(load_expectations([Path("new.yaml")]).entries) == 2


def test_names_of_a_run_cannot_write_to_the_terminal() -> None:
    name = "cpu\x1b[2J\u202e"
    found = [a_result(case, "rejected:Fail" if "X=float16" in case else None, name) for case in cases()]
    ended = harness(
        "expect", "update", write_results(Path("run.jsonl"), found, {name: CPU}), "new.yaml", "--check"
    )
    assert "rejected on cpu\\x1b[2J\\u202e" in ended.err
    assert not {"\x1b", "\u202e"} & {*ended.err}


class TestDrop:
    def test_what_conforms_now_is_dropped_and_comments_stay(self) -> None:
        text = ENTRIES.replace('["GatherND:data=float16", "Round:X=float16"]', '"Round:X=float16"')
        write("old.yaml", text)
        ended = harness("expect", "update", a_run("batch_dims=1"), "old.yaml")
        assert ended.code == 0
        start, stop = text.index("- match: "), text.index("\n# About batches")
        assert Path("old.yaml").read_text() == text[:start] + text[stop:]
        assert "old.yaml:4: [0]: dropped: none of its 3 cases ends in rejected now" in ended.err

    def test_what_matches_nothing_is_dropped_where_its_operator_ran(self) -> None:
        text = ENTRIES.replace("Round:X=float16", "Round:X=float64").replace(
            "GatherND:data=float16", "GatherND:data=int8"
        )
        write("old.yaml", text.replace("GatherND:batch_dims=1", "Gather:axis=1"))
        ended = harness("expect", "update", a_run(), "old.yaml")
        assert "old.yaml:4: [0]: dropped: it matches no case" in ended.err
        assert len(load_expectations([Path("old.yaml")]).entries) == 1

    def test_what_did_not_run_says_nothing_of_an_entry(self) -> None:
        write("old.yaml", ENTRIES)
        found = [
            msgspec.structs.replace(
                a_result(case, None),
                outcome=Outcome.NOT_RUN,
                stage="load",
                placed_on=None,
                error=Error("UnknownVersionError", "opset"),
            )
            if "=float16[" in case or "batch_dims=1" in case
            else a_result(case, None)
            for case in cases()
        ]
        ended = harness("expect", "update", write_results(Path("run.jsonl"), found, {"cpu": CPU}), "old.yaml")
        assert ended.out == "the expectations describe the run: nothing to change\n"
        assert "old.yaml:4: [0]: left as it is: 35 of its cases did not run" in ended.err
        assert Path("old.yaml").read_text() == ENTRIES

    def test_the_last_one(self) -> None:
        write("old.yaml", ENTRIES)
        harness("expect", "update", a_run(), "old.yaml")
        text = Path("old.yaml").read_text()
        assert (
            text == "# Why these are known.\n\n# About complex numbers.\n\n# About batches.\n# The end.\n[]\n"
        )
        harness("expect", "update", a_run("X=float16"), "old.yaml")
        assert Path("old.yaml").read_text().startswith(text.removesuffix("[]\n") + "- match: ")

    def test_an_alternative_that_conforms_now_is_left_out(self) -> None:
        write("old.yaml", ENTRIES)
        ended = harness("expect", "update", a_run("batch_dims=1", "data=float16"), "old.yaml")
        assert Path("old.yaml").read_text() == ENTRIES.replace(
            '["GatherND:data=float16", "Round:X=float16"]  # both', '"GatherND:data=float16"  # both'
        )
        assert "old.yaml:4: [0]: narrowed: 3 of 35 cases no longer end in rejected" in ended.err

    def test_a_comment_that_would_be_lost_is_a_refusal(self) -> None:
        """It stands beside one of several queries, and nobody knows where it goes."""
        text = ENTRIES.replace(
            '["GatherND:data=float16", "Round:X=float16"]  # both',
            '\n    - "GatherND:data=float16"  # of one\n    - "Round:X=float16"  # of the other',
        )
        write("old.yaml", text)
        ended = harness("expect", "update", a_run("batch_dims=1", "data=float16"), "old.yaml")
        remedy = "nothing was written: move it to a line of its own above its entry"
        assert (ended.code, complaint(ended)) == (
            2,
            f"old.yaml: the comment '# of one' would be lost; {remedy}",
        )
        assert Path("old.yaml").read_text() == text

    def test_what_conforms_now_becomes_an_exception(self) -> None:
        write("old.yaml", ENTRIES)
        failing = ("=float16[", "int64[2,1];batch_dims=1", "float32[2,3,4];indices=int64[3,1];batch_dims=1")
        failing += ("int64[2,3,4];indices=int64[3,1];batch_dims=1",)
        run = a_run(*failing)
        assert harness("expect", "update", run, "old.yaml").code == 0
        second = load_expectations([Path("old.yaml")]).entries[1]
        assert second.entry.unless
        expected = {
            case for case in cases() if "batch_dims=1" in case and any(part in case for part in failing)
        }
        assert {case for case in cases() if second.matches(case)} == expected
        assert harness("expect", "update", run, "old.yaml", "--check").code == 0

    def test_what_ends_otherwise_now_is_proposed_anew(self) -> None:
        write("old.yaml", ENTRIES)
        run = a_run("batch_dims=1", outcome="mismatch:nan")
        assert harness("expect", "update", run, "old.yaml").code == 0
        (entry,) = load_expectations([Path("old.yaml")]).entries
        assert (entry.entry.match, entry.entry.expect) == (
            ("GatherND:batch_dims>=1",),
            Outcome.MISMATCH,
        )


class TestPartOfARun:
    """Of cases that did not run nothing is said: by no new entry, and no entry loses them."""

    @pytest.mark.slow
    def test_an_entry_speaks_of_the_cases_that_ran_on_the_release_that_ran_them(self) -> None:
        planned = ids(ROUND)
        write(
            "script.yaml",
            'rules: [{match: "Round:X=*[5]", do: ulp}, {match: "Round:X=float32", do: reject}]\n',
        )
        for number, query in enumerate(("Round@22:sweep=sizes;X=float16", "Round:sweep=rank")):
            part(f"part{number}", "-k", query)
            assert harness("expect", "update", f"part{number}", f"new{number}.yaml").code == 0
            entries = load_expectations([Path(f"new{number}.yaml")]).entries
            ran = results_of(Path(f"part{number}"))
            selected = {case for case in planned if any(entry.matches(case) for entry in entries)}
            assert selected == {
                case for case, each in ran.items() if each["outcome"] in ("mismatch", "rejected")
            }
            assert {entry.entry.when.onnxruntime for entry in entries} == {"==0.0.0"}
        assert Path("new0.yaml").read_text().startswith('- match: "Round@22:X=float16[5];sweep=sizes"\n')

    @pytest.mark.slow
    def test_a_shard_and_a_run_that_was_cut_off_are_parts_too(self) -> None:
        write("script.yaml", 'rules: [{match: "Round:X=float16[5]", do: ulp}]\n')
        part("shard", "-k", "Round@22:X=float16[5]", "--shard", "1/2")
        part("cut", "-k", "Round@22:sweep=sizes;X=float16")
        path = Path("cut/run.jsonl")
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:50]))
        for name in ("shard", "cut"):
            assert harness("expect", "update", name, f"{name}.yaml").code == 0
            ran = results_of(Path(name))
            entries = load_expectations([Path(f"{name}.yaml")]).entries
            selected = {case for case in ids(ROUND) if any(entry.matches(case) for entry in entries)}
            assert selected == {case for case, each in ran.items() if each["outcome"] == "mismatch"}

    def test_a_run_of_all_cases_is_complete_whatever_its_sweeps_leave_out(self) -> None:
        write("script.yaml", "rules: [{match: Not, do: shape}]\n")
        options = ("-t", "fake,script=script.yaml", "--expectations", write("none.yaml", "[]\n"), "-o", "run")
        assert harness("run", SPECS / "Not.yaml", *options).code == 1
        assert lines_of(Path("run"))[-1]["left_out"]["adds no new pair"] > 0
        ended = harness("expect", "update", "run", "new.yaml")
        assert "some cases only" not in ended.err
        assert "onnxruntime" not in Path("new.yaml").read_text()

    @pytest.mark.slow
    def test_what_conforms_now_becomes_an_exception_and_the_run_green(self) -> None:
        text = ENTRIES.replace("provider: CPUExecutionProvider", "target: fake").replace(
            "rejected", "mismatch\n  masked: any output will do"
        )
        write("old.yaml", text)
        ran = ("run", ROUND, "-t", "fake", "-k", "Round@22:X=float16", "--expectations", "old.yaml", "-o")
        assert harness(*ran, "red").code == 1
        ended = harness("expect", "update", "red", "old.yaml")
        assert "old.yaml:4: [0]: narrowed: " in ended.err
        first = load_expectations([Path("old.yaml")]).entries[0]
        assert first.entry.match == ("GatherND:data=float16", "Round:X=float16")
        assert first.matches("GatherND@13:sweep=a;data=float16[2];indices=int64[1,1]")
        kept = {case for case in ids(ROUND) if first.matches(case)}
        assert (
            kept
            == {case for case in ids(ROUND) if "X=float16" in case} - results_of(Path("red")).keys()
            != set()
        )
        assert harness(*ran, "green").code == 0

    def test_an_entry_without_a_case_that_ran_stays(self) -> None:
        write("old.yaml", ENTRIES)
        write("script.yaml", "rules: [{match: Round, where: X.rank=3, do: fail}]\n")
        part("part", "-k", "Round:sweep=rank")
        ended = harness("expect", "update", "part", "old.yaml")
        assert Path("old.yaml").read_text().startswith(ENTRIES)
        assert "the run is of some cases only: nothing is written about the others" in ended.err


class TestEntriesOfOtherKinds:
    """What an entry explains is known, and nothing else."""

    def test_a_general_entry_hides_nothing_and_is_not_narrowed(self) -> None:
        text = "- match: '*'\n  kernel: none\n  expect: unsupported\n  reason: none\n  link: https://example.org/\n"
        write("old.yaml", text)
        ended = harness("expect", "update", a_run("X=float16"), "old.yaml")
        assert Path("old.yaml").read_text().startswith(text + '- match: "Round:X=float16"\n')
        assert ended.err.count("\n") == 1

    def test_an_entry_that_holds_sometimes_is_not_narrowed(self) -> None:
        text = "- match: 'Round:X=float16'\n  sometimes: true\n  expect: rejected\n  reason: none\n  link: https://example.org/\n"
        write("old.yaml", text)
        for run in (a_run(), a_run("X=float16[4]")):
            assert harness("expect", "update", run, "old.yaml", "--check").code == 0


def part(name: str, *arguments: str) -> None:
    """Run cases of Round as `script.yaml` says, without an expectation."""
    options = ("-t", "fake,script=script.yaml", "--expectations", write("none.yaml", "[]\n"), "-o", name)
    assert harness("run", ROUND, *options, *arguments).code == 1


def ids(spec: Path) -> list[str]:
    """Return all cases of a spec that an execution provider can be asked."""
    return [case.id for case in expand(load_specs([spec])) if "api=directml" not in case.id]


class TestBadInput:
    def test_runs(self) -> None:
        assert harness("expect", "update", "none").code == 2
        path = write_results(Path("empty.jsonl"), [], {"cpu": CPU})
        ended = harness("expect", "update", path, "new.yaml")
        assert ended.code == 4
        assert complaint(ended) == "empty.jsonl: nothing ran, so nothing can be expected of it"
        assert not Path("new.yaml").exists()

    @pytest.mark.slow
    def test_a_run_of_specs_of_ones_own_has_a_file_of_its_own(self) -> None:
        write("Not.yaml", (SPECS / "Not.yaml").read_text())
        write("script.yaml", "rules: [{match: Not, do: fail}]\n")
        ran = harness("run", "Not.yaml", "-t", "fake,script=script.yaml", "-o", "run")
        assert ran.code == 1
        assert "harness expect update run expectations.yaml" in ran.out
        for check in ((), ("--check",)):
            ended = harness("expect", "update", "run", *check)
            assert (ended.code, ended.out) == (2, "")
            assert complaint(ended) == (
                "run: is a run of specs that are not the harness's own; name the file for its entries, which may be "
                "new: `harness expect update run expectations.yaml`"
            )
        assert harness("expect", "update", "run", "expectations.yaml").code == 0
        assert Path("expectations.yaml").exists()

    @pytest.mark.slow
    def test_a_run_of_one_of_the_harness_s_specs_needs_no_file(self) -> None:
        write("script.yaml", "rules: [{match: Not, do: fail}]\n")
        ran = harness("run", SPECS / "Not.yaml", "-t", "fake,script=script.yaml", "-o", "run")
        assert "harness expect update run\n" in ran.out
        assert harness("expect", "update", "run", "--check").code == 1

    def test_files(self) -> None:
        run = a_run("batch_dims=1")
        write("bad.yaml", "- match: GatherND\n  expect: pass\n  reason: a\n  link: https://example.org\n")
        assert "'pass' needs no expectation" in harness("expect", "update", run, "bad.yaml").err
        assert "is a folder; name the file" in complaint(harness("expect", "update", run, "."))
        write("flow.yaml", "- {match: GatherND, expect: rejected, reason: a, link: 'https://example.org'}\n")
        ended = harness("expect", "update", run, "flow.yaml")
        assert ended.code == 2
        assert (
            complaint(ended)
            == "flow.yaml:1: an entry is edited by lines; write each of its keys on a line of its own"
        )


@pytest.mark.parametrize(
    "text",
    [
        '[{match: "GatherND:batch_dims=1", expect: rejected, reason: a, link: "https://example.org/"}]\n',
        "- match: GatherND:batch_dims=1\n  expect: rejected\n  reason: a\n  link: https://example.org/\n...\n",
        "---\n- match: GatherND:batch_dims=1\n  expect: rejected\n  reason: a\n  link: https://example.org/\n...\n# the end\n",
    ],
    ids=["flow", "document end", "document marks"],
)
@pytest.mark.parametrize("only_check", [False, True])
def test_a_file_that_cannot_be_added_to_stays_as_it_is(text: str, only_check: bool) -> None:
    """What an update would write is read back before it replaces the file."""
    write("old.yaml", text)
    write("other.yaml", "[]\n")
    ended = harness(
        "expect",
        "update",
        a_run("batch_dims=1", "data=float16"),
        "old.yaml",
        *(["--check"] if only_check else []),
    )
    assert ended.code == 2
    assert complaint(ended).startswith("old.yaml: cannot be edited as it is written (old.yaml:")
    assert complaint(ended).endswith(
        "nothing was written: write a list of entries, each on lines of its own, without '...' at the end"
    )
    assert Path("old.yaml").read_text() == text


@pytest.mark.slow
def test_the_shipped_entries_pass_lint() -> None:
    assert harness("expect", "lint").out == f"{len(load_expectations().entries):,} expectations: ok\n"


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 8)), st.booleans())
def test_dropping_entries_leaves_every_other_line_and_entry(dropped: set[int], adds: bool) -> None:
    path = SPECS / "expectations" / "cpu.yaml"
    before = load_expectations([path]).entries
    dropped = {position for position in dropped if position < len(before)}
    edited = EntryFile(read(path))
    for position in dropped:
        edited.drop(position)
    if adds:
        edited.add(NewEntry(("Round",), (), (("target", "dml,device_id=1"),), Outcome.CRASH))
    written = Path("edited.yaml")
    written.write_text(edited.text())
    after = load_expectations([written]).entries
    kept = [entry.entry for position, entry in enumerate(before) if position not in dropped]
    assert [entry.entry for entry in after[: len(kept)]] == kept
    assert len(after) == len(kept) + adds
    if adds:
        assert after[-1].entry.when.target == ("dml,device_id=1",)
        assert len(lint(load_expectations([written]), date(2026, 1, 1))) == 1
    comments = [line for line in edited.before.splitlines() if line.startswith("#")]
    assert [line for line in edited.text().splitlines() if line.startswith("#")] == comments
