"""What to do after a run."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from harness.results.tables import Tables

RUN = "run.jsonl"
"""The run as commands name it where a report lies beside its run file."""


class Step(NamedTuple):
    """Something to do, and the command that does it, empty where there is none."""

    what: str
    command: str = ""


def next_steps(tables: Tables, run: str = RUN) -> tuple[Step, ...]:
    """Say what to do after a run, the most urgent first."""
    if not tables.tally().run:
        return (
            Step("See which targets are available here, and what makes the others so", "harness targets"),
        )
    path = shlex.quote(run)
    steps = []
    if tables.truncated:
        steps.append(Step("Continue the run", "harness run --resume"))
    if failing := [
        group for group in tables.unexpected.groups() if group.kind.verdict.value != "improvement"
    ]:
        example = failing[0].example
        whole = {short: name for name, short in tables.names.items()}.get(example.target, example.target)
        case = f"{shlex.quote(example.case)} -t {shlex.quote(whole)}"
        steps += [
            Step("Find what the failures have in common", f"harness explain {path}"),
            Step(
                "Write a bug report for one that runs without the harness",
                f"harness repro {path} {case} -o bug",
            ),
        ]
    if tables.header.baseline is None and (tables.unexpected.groups() or tables.problems):
        steps.append(
            Step(
                "Once they are understood, propose entries for the expectations",
                f"harness expect update {path}",
            )
        )
    if not steps:
        steps.append(
            Step(
                "Nothing has to be done. Compare the next run with this one", f"harness run --baseline {path}"
            )
        )
    return tuple(steps)
