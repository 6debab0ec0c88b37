"""The benchmarks' own parts: workloads of the size that they say, samples given to the right stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.stages import _samples, stage_of
from benchmarks.workloads import write_spec
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs


@pytest.mark.parametrize("static", [False, True])
def test_a_workload_has_as_many_cases_as_it_says(static: bool, tmp_path: Path) -> None:
    path, count = write_spec(tmp_path, 800, static=static)
    assert expand(load_specs([path])).counted()[0] == count > 700


FIRST = 'process 7:"python -m harness run";main (harness/commands/cli.py:9)'
PROCESS = f'{FIRST};process 8:"python -m harness run\nof two lines";RunProcess.run (harness/run/processes/process.py:80)'
WORKER = f'{PROCESS};process 9:"python harness/worker/fork_server.py";serve (harness/worker/worker.py:600)'


@pytest.mark.parametrize(
    ("stack", "stage"),
    [
        (f"{FIRST};expand (harness/specs/expand.py:170);_load (harness/specs/cache/kept_plans.py:3)", "plan"),
        (f"{FIRST};<module> (x.py:1);_find_and_load (<frozen importlib._bootstrap>:1)", "start and imports"),
        (f"{FIRST};sleep (time.py:1)", "other"),
        (
            f"{PROCESS};judge (harness/run/judge.py:5);oracle (harness/run/oracle.py:26);exp (numpy/x.py:1)",
            "oracle",
        ),
        (f"{PROCESS};judge (harness/run/judge.py:5)", "judge"),
        (
            f"{WORKER};run_unit (worker.py:1);OnnxRuntime.session (worker.py:2);__init__ (ort.py:3)",
            "sessions",
        ),
        (WORKER, "frames"),
        (f"{PROCESS};WorkerProcess._read (harness/targets/process.py:151)", "send and receive"),
    ],
)
def test_a_sample_belongs_to_its_innermost_stage(stack: str, stage: str) -> None:
    process = "workers" if WORKER in stack else "run processes" if PROCESS in stack else "first process"
    assert stage_of(stack) == (process, stage)


def test_the_threads_of_pipes_are_of_a_run_process() -> None:
    stack = f"{FIRST};Thread.run (threading.py:1);WorkerProcess._write (harness/targets/process.py:171)"
    assert stage_of(stack) == ("run processes", "send and receive")


def test_samples_are_counted_also_where_a_command_has_several_lines() -> None:
    found = _samples(f"{WORKER} 3\n{PROCESS};judge (harness/run/judge.py:5) 4\n")
    assert found == {("workers", "frames"): 3, ("run processes", "judge"): 4}
