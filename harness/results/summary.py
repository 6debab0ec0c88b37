"""The verdict of a run in one sentence, and the few facts at the top of every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from harness.model.header import Against
from harness.model.result import CANNOT_BE_ASKED
from harness.model.target_info import DIRECTML, TargetInfo
from harness.model.verdict import NOT_EXECUTED, Verdict
from harness.results.memory import KINDS
from harness.results.tables import Tables
from harness.results.tally import Tally

Tone = Literal["good", "bad", "warn"]

REASONS = 2
"""Reasons for leaving out that a note names; tables name them all."""
_REASONS = {
    "adds no new pair": "other cases cover every pair of their values",
    "not in the query": "the query does not ask for them",
    "in another shard": "another shard runs them",
}
"""Reasons for leaving out, in words that need no glossary."""
_UNEXPECTED = {
    Verdict.REGRESSION: ("regression", "regressions"),
    Verdict.CHANGED: ("changed result", "changed results"),
    Verdict.NEW: ("new failure", "new failures"),
    Verdict.IMPROVEMENT: ("improvement", "improvements"),
}
_MARKS: dict[Tone, str] = {"good": "✓", "bad": "✗", "warn": "!"}


class Note(NamedTuple):
    """What a reader may want to know of what stands in no count: in a few words, and whole."""

    short: str
    text: str


class Summary(NamedTuple):
    """`sentence` is the verdict; `remarks` are what a reader must know before trusting it, `notes` what
    reports fold."""

    tone: Tone
    sentence: str
    remarks: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    @property
    def mark(self) -> str:
        """A sign beside the colour."""
        return _MARKS[self.tone]


def count(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def summarize(tables: Tables) -> Summary:
    """Judge a run: bad with anything unexpected, a warning where it is incomplete or nothing ran, good
    otherwise."""
    tone, sentence = _verdict(tables)
    return Summary(tone, sentence, _remarks(tables), _notes(tables))


def _verdict(tables: Tables) -> tuple[Tone, str]:
    total = tables.tally()
    if not total.run:
        return "warn", f"Nothing ran: 0 of {count(tables.selected, 'selected result')}."
    unexpected = [
        count(number, *_UNEXPECTED[verdict])
        for verdict, number in tables.unexpected.numbers.items()
        if number
    ]
    if tables.problems:
        unexpected.append(count(len(tables.problems), "problem") + " in the expectations")
    known = "all conform" if total.conforming == total.run else _conforming(total)
    if unexpected:
        tone: Tone = "bad" if total.unexpected or tables.problems else "warn"
        return tone, f"{', '.join(unexpected)} in {count(total.run, 'result')}; {known}."
    as_expected = (
        "The only result is as expected" if total.run == 1 else f"All {total.run:,} results are as expected"
    )
    without = f"; without {_listed(left_out)}" if (left_out := tables.header.targets_left_out) else ""
    if tables.truncated:
        return "warn", f"The run is incomplete. {as_expected}: {known}{without}."
    if total.run < tables.selected:
        return "warn", f"{as_expected}, of {tables.selected:,} selected; {known}{without}."
    return "good", f"{as_expected}: {known}{without}."


_NAMED = 2
"""How many targets are named of which the same is said."""


def _conforming(total: Tally) -> str:
    known = (
        f", {count(total.known, 'deviates in a known way', 'deviate in known ways')}" if total.known else ""
    )
    nothing = f", {count(total.nothing, 'tests nothing', 'test nothing')}" if total.nothing else ""
    core = f", {total.core:,} refused by ONNX Runtime's core" if total.core else ""
    return count(total.conforming, "conforms", "conform") + known + nothing + core


def _remarks(tables: Tables) -> tuple[str, ...]:
    remarks = []
    held = tables.tally().selected
    if tables.truncated:
        remarks.append(
            f"The run file ends after {count(held, 'result')}, without its last line. Continue the run with --resume."
        )
    elif held < tables.selected:
        remarks.append(f"The run file holds {held:,} of {count(tables.selected, 'selected result')}.")
    if (merged := tables.header.merged) is not None and merged.missing:
        numbers = _listed([str(number) for number in merged.missing])
        plural = len(merged.missing) > 1
        remarks.append(
            f"Merged without shard{'s' if plural else ''} {numbers}: what {'they' if plural else 'it'} held is not in this run."
        )
    reasons: dict[str, list[str]] = {}
    for target, why in tables.header.targets_left_out.items():
        reasons.setdefault(one_line(why), []).append(target)
    remarks += [
        f"Run without {_listed(targets)}, which are not here: {why}." for why, targets in reasons.items()
    ]
    if tables.header.baseline is not None:
        remarks.append(_judged(tables.header.baseline, tuple(tables.header.targets)))
    alike: dict[str, list[str]] = {}
    for target, info in tables.header.targets.items():
        tally = tables.tally(target=target)
        if info.unavailable:
            remarks.append(f"{target} is not available here: {one_line(info.unavailable)}")
        elif missing := sum(tally.outcomes[outcome] for outcome in NOT_EXECUTED):
            alike.setdefault(
                f"did not run {missing:,} of {count(tally.selected, 'result')}{_why(tables, target)}", []
            ).append(target)
    remarks += [f"{_together(targets)} {what}." for what, targets in alike.items()]
    if tables.unexpected.flaky:
        number = tables.unexpected.flaky
        remarks.append(
            f"{number:,} of the unexpected results {'is' if number == 1 else 'are'} flaky: repeated, they did not always do the same."
        )
    for target in tables.targets:
        kinds = [f"{number:,} {kind}" for kind in KINDS if (number := tables.memory[target, kind])]
        if kinds:
            remarks.append(f"{target} accepted what should be refused: {_listed(kinds)}.")
    if pending := sum(row.results for row in tables.deviations.rows(pending=True)):
        remarks.append(
            f"{count(pending, 'deviation is', 'deviations are')} not reviewed yet: nobody has looked at why."
        )
    return tuple(remarks)


def _notes(tables: Tables) -> tuple[Note, ...]:
    """Say what stands in no count, and why."""
    notes = []
    alike: dict[tuple[int, bool], list[str]] = {}
    for target, number in tables.inexpressible.items():
        own_api = tables.header.targets[target].provider == DIRECTML
        alike.setdefault((number, own_api), []).append(target)
    for (number, own_api), targets in alike.items():
        cases, they, run = (
            ("case does", "it asks", "It runs") if number == 1 else ("cases do", "they ask", "They run")
        )
        why = (
            f"DirectML's API has no call for what {they}."
            if own_api
            else f"{'it calls' if number == 1 else 'they call'} DirectML itself instead of running an ONNX model. "
            f"{run} with the target directml."
        )
        said = f"{number:,} {cases} not apply to {_together(targets)}"
        notes.append(Note(said, f"{said} and {'is' if number == 1 else 'are'} not counted: {why}"))
    if nothing := tables.tally().unclaimed:
        which, they = (
            ("1 result has", "it is no") if nothing == 1 else (f"{nothing:,} results have", "none is a")
        )
        said = f"{which} an infinite bound"
        notes.append(
            Note(said, f"{said} on the error for these inputs: any output would be right, and {they} pass.")
        )
    if empty := tables.tally().empty:
        which, they = ("1 result has", "it is no") if empty == 1 else (f"{empty:,} results have", "none is a")
        said = f"{which} no element"
        notes.append(Note(said, f"{said}: types and shapes alone were compared, and {they} pass."))
    if core := tables.tally().core:
        which = "1 invalid case was" if core == 1 else f"{core:,} invalid cases were"
        said = f"{which} refused by ONNX Runtime's core"
        notes.append(Note(said, f"{said} before any provider was asked: not counted as the provider's."))
    if tables.left_out:
        largest = sorted(tables.left_out.items(), key=lambda item: (-item[1], item[0]))
        named = "; ".join(
            f"{number:,}: {_REASONS.get(reason, one_line(reason))}" for reason, number in largest[:REASONS]
        )
        more = f"; {count(len(largest) - REASONS, 'more reason')}" if len(largest) > REASONS else ""
        notes.append(
            Note(
                "",
                f"{count(sum(tables.left_out.values()), 'combination')} that the specs describe "
                f"{'is' if sum(tables.left_out.values()) == 1 else 'are'} no case of this run ({named}{more}).",
            )
        )
    return tuple(notes)


def _why(tables: Tables, target: str) -> str:
    """Say why a target did not run what it did not run, the most frequent reason first."""
    found = Counter(
        {class_: number for (of, class_), number in tables.not_run.items() if of == target and class_}
    )
    reasons = [
        f"{one_line(CANNOT_BE_ASKED.get(class_, class_))}: {number:,}"
        for class_, number in found.most_common()
    ]
    return f" ({', '.join(reasons)})" if reasons else ""


def _judged(against: Against, targets: tuple[str, ...]) -> str:
    """Say which earlier run the verdicts are of, and for what they are not or need care."""
    renamed = [f", {now} against its {then}" for now, then in against.targets.items() if now != then]
    said = f"Judged against run {one_line(against.run_id)}{''.join(renamed)}."
    absent = [target for target in targets if target not in against.targets]
    if absent:
        said += f" It has no {', '.join(absent)}: what fails there is new."
    if against.differing:
        said += f" Other {' and '.join(against.differing)} than then: a change need not be the target's."
    return said


def _listed(names: Iterable[str]) -> str:
    """Join names as a sentence does."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _together(targets: list[str]) -> str:
    """Name targets of which the same is said; a few of them by name."""
    more = len(targets) - _NAMED
    return ", ".join(targets) if more <= 1 else f"{', '.join(targets[:_NAMED])} and {more} more targets"


def one_line(text: str) -> str:
    """Fold a text into one line."""
    return " ".join(text.split())


def target_facts(info: TargetInfo) -> list[tuple[str, str]]:
    """What a target was, as (name, value) in reading order; what its runtime could not tell is left out."""
    facts = [
        ("provider", info.provider),
        ("runtime", info.runtime),
        ("onnxruntime", info.onnxruntime),
        ("DirectML", info.directml),
        ("DirectML.dll sha256", info.directml_sha256),
        ("plugin", " of ".join(part for part in (info.plugin, info.plugin_vendor) if part)),
        ("plugin sha256", info.plugin_sha256),
        ("package", " ".join(part for part in (info.package, info.package_version) if part)),
        ("adapter", " ".join(part for part in (info.vendor, info.adapter) if part)),
        ("driver", info.driver),
        ("maximum feature level", info.max_feature_level),
        ("device dtypes", ", ".join(info.device_dtypes)),
        (
            "device metadata",
            ", ".join(f"{key}={value}" for key, value in sorted(info.device_metadata.items())),
        ),
        ("Python", info.python),
        ("NumPy", info.numpy),
        ("platform", info.platform),
        ("options", ", ".join(f"{key}={value}" for key, value in sorted(info.options.items()))),
    ]
    return [(name, one_line(value)) for name, value in facts if value]
