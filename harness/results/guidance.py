"""What a reader of a run is told first beside the verdict: what holds, why deviations are accepted, and what
to do next."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from harness.results.summary import count, one_line
from harness.results.tables import Tables
from harness.results.tally import Tally

RUN = "run.jsonl"
"""The run as commands name it where a report lies beside its run file."""
_NAMED = 3
"""Targets and entries that are named; tables name them all."""


class Step(NamedTuple):
    """Something to do, and the command that does it, empty where there is none."""

    what: str
    command: str = ""


class Guidance(NamedTuple):
    """Sentences on what `holds` and why what does not is `accepted`, and the next `steps`."""

    holds: tuple[str, ...]
    accepted: tuple[str, ...]
    steps: tuple[Step, ...]


def guidance(tables: Tables, run: str = RUN) -> Guidance:
    """Say what a run means to its reader; `run` is how commands name it."""
    return Guidance(_holds(tables), _accepted(tables), next_steps(tables, run))


def _holds(tables: Tables) -> tuple[str, ...]:
    ran = [(target, tally) for target in tables.targets if (tally := tables.tally(target=target)).run]
    if len(ran) > _NAMED:
        said = [f"{len(ran)} targets together: {_share(tables.tally())}; each of them stands under Counts."]
    else:
        said = [f"{one_line(target)}: {_share(tally)}." for target, tally in ran]
    if said:
        said.append(
            "A result conforms if a valid case gives what ONNX defines, bit for bit or within the bound of the operator's "
            "formula, and an invalid case is rejected."
        )
    return tuple(said)


def _share(tally: Tally) -> str:
    percent = int(1000 * tally.conforming / tally.run) / 10
    return f"{tally.conforming:,} of {count(tally.run, 'result')} conform ({percent:g} %)"


def _accepted(tables: Tables) -> tuple[str, ...]:
    known = tables.tally().known
    if not known:
        return ()
    if (against := tables.header.baseline) is not None:
        return (
            f"{count(known, 'deviation')}, as in run {one_line(against.run_id)}, which this one is judged against.",
        )
    rows = tables.deviations.rows(pending=False)
    said = []
    if rows:
        largest = "; ".join(f"{one_line(row.entry.name)} ({row.results:,})" for row in rows[:_NAMED])
        entries = count(len(rows), "reviewed entry gives", "reviewed entries give")
        said.append(
            f"{count(known, 'result deviates', 'results deviate')}, and {entries} the reason and a source for "
            f"{'it' if known == 1 else 'them'}. {'The largest' if len(rows) > 1 else 'It is'}: {largest}."
        )
    else:
        said.append(f"{count(known, 'result deviates', 'results deviate')} as an expectation says.")
    return tuple(said)


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
