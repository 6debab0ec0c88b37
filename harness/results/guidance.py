"""What to do after a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from harness.model.header import Asked, Header
from harness.model.result import Result
from harness.model.target_info import REPRODUCED
from harness.model.verdict import Outcome, Verdict, conforms
from harness.results.tables import Tables

RUN = "run.jsonl"
"""The run as commands name it where a report lies beside its run file."""
_FILE = re.compile(r"\b(plugin|python|dll|script|library)=")
"""What stands before a file in a target's name."""


class Step(NamedTuple):
    """Something to do, and the command that does it, empty where there is none."""

    what: str
    command: str = ""


def run_again(header: Header, targets: Iterable[str], queries: Iterable[str]) -> list[str]:
    """Return the command that runs these cases with the options of a run."""
    asked = Asked() if header.selection is None else header.selection
    shard = [] if asked.shard is None else [f"{asked.shard.index}/{asked.shard.of}"]
    options = (
        ("-t", targets),
        ("-k", queries),
        ("--select", [asked.select] if asked.select != "default" else []),
        ("--shard", shard),
        ("--seed", [str(header.seed)] if header.seed else []),
        ("--expectations", asked.expectations),
    )
    return [
        "harness",
        "run",
        *asked.specs,
        *(word for name, each in options for value in each for word in (name, value)),
    ]


def can_repro(result: Result, header: Header) -> bool:
    """Say whether `harness repro` writes a result's case: it failed, on a provider that others have."""
    failed = result.outcome is not Outcome.ORACLE_ERROR and not conforms(result.validity, result.outcome)
    return failed and header.targets[result.target].provider in REPRODUCED


def next_steps(tables: Tables, run: str = RUN, *, own_specs: bool = True) -> tuple[Step, ...]:
    """Say what to do after a run, the most urgent first; entries for specs that are not the harness's `own_specs` go
    into a file of their own."""
    if not tables.tally().run:
        return (
            Step("See which targets are available here, and what makes the others so", "harness targets"),
        )
    header = tables.header
    asked = Asked() if header.selection is None else header.selection
    whole = {short: name for name, short in tables.names.items()}
    here = [whole[target] for target, info in header.targets.items() if info.unavailable is None]
    starts_files = any(_FILE.search(target) for target in whole.values())
    files_of_its_own = bool(asked.specs or asked.expectations or starts_files)
    steps = []

    def step(what: str, command: str, *words: str, needs_files: bool = False) -> None:
        """Add a step; a report beside the run file does not know where files are that the run was given."""
        known = run != RUN or not needs_files
        steps.append(Step(what, shlex.join([*command.split(), *words]) if known else ""))

    if tables.truncated:
        targets = [word for target in header.targets for word in ("-t", whole[target])]
        folder = str(Path(run).parent) if ".jsonl" in Path(run).suffixes else run
        step("Continue the run", "harness run --resume", *targets, "-o", folder, needs_files=files_of_its_own)
    groups = tables.unexpected.groups()
    if any(group.kind.outcome is Outcome.ORACLE_ERROR for group in groups):
        what = "Correct the spec or the formula that contradict each other"
        step(what, "harness check", *asked.specs, needs_files=bool(asked.specs))
    groups = [group for group in groups if group.kind.outcome is not Outcome.ORACLE_ERROR]
    if any(group.kind.verdict is not Verdict.IMPROVEMENT for group in groups):
        step("Find what the failures have in common", "harness explain", run)
    if example := next((group.example for group in groups if can_repro(group.example, header)), None):
        what = "Write a bug report for one that runs without the harness"
        target = whole[example.target]
        step(
            what, "harness repro", run, example.case, "-t", target, "-o", "bug", needs_files=files_of_its_own
        )
    if header.baseline is None and groups:
        # a file of entries, or the one that a folder of them has for the first target
        name = f"{re.split('[@,]', here[0])[0]}.yaml"
        file = [each if each.endswith(".yaml") else f"{each}/{name}" for each in asked.expectations[:1]]
        file = file or ([] if own_specs else ["expectations.yaml"])
        what = "Once they are understood, propose entries for the expectations"
        step(what, "harness expect update", run, *file, needs_files=files_of_its_own)
    if tables.problems:
        specs = [word for spec in asked.specs for word in ("--spec", spec)]
        what = "Correct the entries that are at fault"
        step(what, "harness expect lint", *asked.expectations, *specs, needs_files=files_of_its_own)
    if not steps:
        again = run_again(header, here, asked.queries)
        what = "Nothing has to be done; compare the next run with this one"
        step(what, "", *again, "--baseline", run, needs_files=files_of_its_own)
    return tuple(steps)
