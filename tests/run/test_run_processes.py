"""Runs in several processes: the same as in one, whatever ends one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from harness.model.errors import (
    HarnessError,
    HarnessFault,
    NothingRan,
    SpecError,
    TargetUnavailable,
    UsageError,
)
from harness.results.runfile import RunWriter
from harness.run.processes import coordinator
from harness.run.processes.coordinator import ForkedProcess
from harness.targets.pool import WorkerPool, WorkerSlot
from tests.processes import descendants, gone
from tests.running import (
    HARNESS,
    ROUND,
    SPECS,
    harness,
    lines_of,
    raising,
    results_of,
    script_of,
    without_time,
)
from tests.sampled import one_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="run processes are forked on Linux alone"),
    pytest.mark.usefixtures("started"),
]

QUERY = "GatherElements@13:sweep=extent"
OPTIONS: list[str | Path] = [SPECS / "GatherElements.yaml", "-k", QUERY, "-j", "2", "--timeout", "60"]
"""2,376 cases: enough for two processes."""
KEPT = "what was finished is kept: continue with: harness run --resume"


def known(folder: Path) -> Path:
    """Write expectations: one that is right, two that conflict, one that is stale, one that matches
    nothing."""
    path = folder / "known.yaml"
    entries = (
        ("Round@22:X=float16", "mismatch, difference: {ulp: 1}"),
        ("Round@22:X=float16;values=ordinary", "rejected"),
        ("Round@22:X=float64", "mismatch, difference: {ulp: 1}"),
        ("Round@22:X=int8", "mismatch, difference: {ulp: 1}"),
    )
    path.write_text(
        "".join(
            f'- {{match: "{query}", expect: {expect}, reason: a test, link: "https://example.org/"}}\n'
            for query, expect in entries
        ),
        encoding="utf-8",
    )
    return path


def end_of(run: Path) -> dict[str, object]:
    end = lines_of(run)[-1]
    assert end.pop("type") == "end"
    assert end.pop("seconds") > 0
    return end


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make every run have as many processes as workers; the list holds how many each had."""
    monkeypatch.setattr(coordinator, "CASES", 1)
    made: list[int] = []
    forked = coordinator.ForkingCoordinator

    class Counted(forked):  # type: ignore[misc,valid-type]
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            made.append(len(self._processes))

    monkeypatch.setattr(coordinator, "ForkingCoordinator", Counted)
    return made


@pytest.mark.slow
def test_the_same_results_as_in_one_process(tmp_path: Path, several: list[int]) -> None:
    """Results, counts, left-out combinations, problems of expectations, artifacts."""
    script = script_of(
        tmp_path,
        [
            ("Round@22:X=float16;values=ordinary", "ulp"),
            ("Round@11:X=float32", "reject"),
            ("Round@22:X=float64[0,3]", "crash"),
        ],
    )
    options = [ROUND, "-t", f"fake,script={script}", "-t", "fake", "--expectations", known(tmp_path)]
    runs = []
    for jobs in ("1", "3"):
        ended = harness("run", *options, "-j", jobs, "-o", tmp_path / jobs)
        assert ended.code == 1, ended.err
        runs.append(tmp_path / jobs)
    assert several == [3]
    one, three = runs
    for target in (f"fake,script={script}", "fake"):
        assert without_time(results_of(one, target)) == without_time(results_of(three, target))
    assert end_of(one) == end_of(three)
    assert len(end_of(one)["problems"]) > 3  # type: ignore[arg-type]
    kept = [sorted(path.name for path in (run / "artifacts").iterdir()) for run in runs]
    assert kept[0] == kept[1]
    assert len(kept[0]) > 20


@pytest.mark.parametrize(
    "shard", [["--shard", "2/3"], ["-k", "Round@22:X=float32"], ["--select", "pairwise"]]
)
def test_the_same_selection_as_in_one_process(tmp_path: Path, several: list[int], shard: list[str]) -> None:
    for jobs in ("1", "2"):
        assert harness("run", ROUND, "-t", "fake", *shard, "-j", jobs, "-o", tmp_path / jobs).code == 0
    assert several == [2]
    assert without_time(results_of(tmp_path / "1")) == without_time(results_of(tmp_path / "2"))
    assert end_of(tmp_path / "1") == end_of(tmp_path / "2")


@pytest.mark.slow
def test_a_baseline_is_known_to_all_processes(tmp_path: Path, several: list[int]) -> None:
    assert harness("run", ROUND, "-t", "fake", "-j", "2", "-o", tmp_path / "base").code == 0
    script = script_of(tmp_path, [("Round@22:X=float16", "ulp")])
    asked = ("-t", f"fake,script={script}", "-j", "2", "--baseline", tmp_path / "base")
    assert harness("run", ROUND, *asked, "-o", tmp_path / "new").code == 1
    assert several == [2, 2]
    verdicts = {
        (result["outcome"], result["verdict"])
        for result in results_of(tmp_path / "new").values()
        if result["validity"] == "valid"
    }
    assert verdicts == {("pass", "expected"), ("mismatch", "regression"), ("not_run", "expected")}


@pytest.mark.slow
def test_the_limit_of_artifacts_is_one_for_all_processes(
    tmp_path: Path, several: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.artifacts._LIMIT_CASES", 7)
    script = script_of(tmp_path, [("Round@22", "bit")])
    assert harness("run", ROUND, "-t", f"fake,script={script}", "-j", "3", "-o", tmp_path / "run").code == 1
    assert several == [3]
    assert len(list((tmp_path / "run" / "artifacts").iterdir())) == 7


def test_valid_cases_share_no_worker_with_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[WorkerPool] = []
    spawn = WorkerPool._spawn

    def noted(pool: WorkerPool) -> WorkerSlot:
        started.append(pool)
        return spawn(pool)

    monkeypatch.setattr(WorkerPool, "_spawn", noted)
    query = ["-k", "Round@22:sweep=empty", "-k", "Round@22:case=*_input"]
    assert harness("run", ROUND, "-t", "fake", *query, "-j", "1", "-o", tmp_path / "run").code == 0
    validities = {result["validity"] for result in results_of(tmp_path / "run").values()}
    assert len(validities) > 1
    assert len(started) == 2


@pytest.mark.slow
def test_an_absent_target(tmp_path: Path, several: list[int]) -> None:
    script = script_of(tmp_path, [], "exit")
    name = f"fake,script={script}"
    ended = harness("run", ROUND, "-t", name, "-t", "fake", "-j", "2", "-o", tmp_path / "run")
    assert ended.code == 3
    assert several == [2]
    absent, present = results_of(tmp_path / "run", name), results_of(tmp_path / "run", "fake")
    assert absent.keys() == present.keys()
    assert {result["outcome"] for result in absent.values()} == {"unavailable", "not_run"}
    unexpressed = [
        {case for case, result in each.items() if result["outcome"] == "not_run"}
        for each in (absent, present)
    ]
    assert unexpressed[0] == unexpressed[1]
    assert {result["outcome"] for result in present.values()} == {
        "pass",
        "rejected",
        "not_run",
    }  # not_run: no graph expresses it


def test_a_defect_in_a_process_is_a_fault(
    tmp_path: Path, several: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.job.judge", lambda *_: 1 // 0)
    ended = harness("run", ROUND, "-t", "fake", "-j", "2", "-o", tmp_path / "run")
    assert ended.code == 5
    assert several == [2]
    assert ended.err.splitlines()[-1] == (
        f"harness: a fault in the harness: ZeroDivisionError: integer division or modulo by zero; {KEPT} -o {tmp_path / 'run'}"
    )
    assert "Traceback" in ended.err


@pytest.mark.parametrize(
    "error",
    [
        UsageError("no such thing"),
        SpecError(["a.yaml:1: x", "a.yaml:2: y"]),
        TargetUnavailable("not here"),
        NothingRan("nothing"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_in_a_process_keeps_its_exit_code(
    tmp_path: Path, several: list[int], monkeypatch: pytest.MonkeyPatch, error: HarnessError
) -> None:
    monkeypatch.setattr("harness.run.processes.process.TargetRun", raising(error))
    ended = harness("run", ROUND, "-t", "fake", "-j", "2", "-o", tmp_path / "run")
    assert (ended.code, several) == (error.exit_code, [2])
    assert ended.err.splitlines() == [f"harness: {line}" for line in str(error).splitlines()]


@pytest.mark.slow
def test_what_hinders_a_process_is_printed(tmp_path: Path, several: list[int]) -> None:
    """The folder for tensors is a file."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "artifacts").write_text("in the way", encoding="utf-8")
    script = script_of(tmp_path, [("Round@22", "bit")])
    ended = harness("run", ROUND, "-t", f"fake,script={script}", "-j", "2", "-o", tmp_path / "run")
    assert ended.code == 5
    assert several == [2]
    (line,) = ended.err.splitlines()
    assert line.endswith(f"; make room; {KEPT} -t fake,script={script} -o {tmp_path / 'run'}")


@pytest.mark.slow
def test_a_full_disk_ends_the_processes(
    tmp_path: Path, several: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunWriter, "append", raising(HarnessFault("no space")))
    monkeypatch.setattr(RunWriter, "flush", lambda _: None)
    assert harness("run", ROUND, "-t", "fake", "-j", "2", "-o", tmp_path / "run").code == 5
    assert several == [2]


def hanging(folder: Path, query: str) -> list[str]:
    """Return the command of a run whose cases of a query hang."""
    script = script_of(folder, [(query, "hang")])
    options = [*map(str, OPTIONS), "-t", f"fake,script={script}", "-o", str(folder / "out")]
    return [*HARNESS, "run", *options]


def interrupted(folder: Path, victim: str, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Start a run whose last cases hang, send a signal to the first process, to another or to all, the first one last,
    and see that all processes end."""
    command = hanging(folder, f"{QUERY};data=bool")
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        run = folder / "out" / "run.jsonl"
        end = time.monotonic() + 300  # of a slow machine
        while not run.exists() or run.read_bytes().count(b"\n") < 100:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.02)
        forked: list[int] = []
        while (len(forked), len(below := descendants(process.pid))) != (2, 6):
            assert time.monotonic() < end, "each has a worker, and the process that forks it"
            time.sleep(0.02)
            with suppress(FileNotFoundError):  # of one that ended meanwhile
                forked = [pid for pid in below if parent_of(pid) == process.pid]
        struck = {"parent": [process.pid], "other": forked[-1:], "all": [*below, process.pid]}[victim]
        for pid in struck:
            with (
                suppress(ProcessLookupError) if victim == "all" else nullcontext()
            ):  # ended by an earlier one
                os.kill(pid, number)
            time.sleep(0.03)
        code = process.wait(60)
        said = (
            process.stderr.read().strip().rpartition("\n")[2]
        )  # below lines of progress, if the run was slow
    assert gone(below)
    return subprocess.CompletedProcess(command, code, "", said)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "number", "code", "said"),
    one_of(
        5,
        [
            ("parent", signal.SIGKILL, -9, ""),
            ("parent", signal.SIGINT, 130, "harness: interrupted; "),
            ("parent", signal.SIGTERM, 130, "harness: interrupted; "),
            ("other", signal.SIGKILL, 5, "harness: a process of the run ended (SIGKILL); "),
            ("other", signal.SIGSEGV, 5, "harness: a process of the run ended (SIGSEGV); "),
        ],
    ),
)
def test_what_ends_a_process_leaves_none_and_a_run_to_resume(
    tmp_path: Path, victim: str, number: signal.Signals, code: int, said: str
) -> None:
    ended = interrupted(tmp_path, victim, number)
    target = ["-t", f"fake,script={tmp_path / 'script.yaml'}"]
    advice = f"{said}{KEPT} {' '.join(target)} -o {tmp_path / 'out'}"
    assert (ended.returncode, ended.stderr if said else "") == (code, advice if said else "")
    run = tmp_path / "out" / "run.jsonl"
    before = run.read_bytes()
    assert before.count(b'"type":"end"') == 0
    script_of(tmp_path, [])
    assert harness("run", "--resume", *target, "-o", tmp_path / "out").code == 0
    assert run.read_bytes().startswith(before[: before.rindex(b"\n") + 1])
    assert harness("run", *OPTIONS, *target, "-o", tmp_path / "whole").code == 0
    assert without_time(results_of(tmp_path / "out")) == without_time(results_of(tmp_path / "whole"))
    assert end_of(tmp_path / "out") == end_of(tmp_path / "whole")


def test_processes_that_wait_for_hanging_cases_die_with_the_first_one(tmp_path: Path) -> None:
    """Each waits for its worker, up to the timeout of the case: it neither reads nor writes its connection,
    whose end it does not see."""
    command = hanging(tmp_path, QUERY)
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        run = tmp_path / "out" / "run.jsonl"
        end = time.monotonic() + 300  # of a slow machine
        while not run.exists() or len(below := descendants(process.pid)) < 4:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(1)  # until the processes have handed out their first cases
        assert run.read_bytes().count(b"\n") == 1
        process.kill()
    assert gone(below)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_is_an_interruption(tmp_path: Path, number: signal.Signals) -> None:
    ended = interrupted(tmp_path, "all", number)
    assert (ended.returncode, ended.stderr.partition(";")[0]) == (130, "harness: interrupted")
    assert {line["outcome"] for line in results_of(tmp_path / "out").values()} == {"pass"}


def test_an_end_that_an_interruption_left_unnoted() -> None:
    """As between `waitpid` and the line that keeps what it returned."""
    process = object.__new__(ForkedProcess)
    process.ended = None
    process.pid = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], os.environ)
    os.waitpid(process.pid, 0)
    group = object.__new__(coordinator.ForkingCoordinator)
    group._processes = [process]
    group._signal(signal.SIGTERM)
    assert process.wait() == "exit code 0"


def test_an_interrupted_run_keeps_what_was_finished(tmp_path: Path) -> None:
    """Processes hand over what they have, down to the last case before the one that hangs."""
    interrupted(tmp_path, "parent", signal.SIGINT)
    kept = set(results_of(tmp_path / "out"))
    hanging = {case for case in kept if "data=bool" in case}
    assert not hanging
    assert kept
