"""The verdict of a run in one sentence, and the few facts at the top of every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from harness.model.records import (
    CANNOT_BE_ASKED,
    DIRECTML,
    NOT_EXECUTED,
    Against,
    TargetInfo,
    Verdict,
)
from harness.results.tables import Tables, Tally

Tone = Literal["good", "bad", "warn"]

REASONS = 2
"""Reasons for leaving out that a remark names; tables name them all."""
_UNEXPECTED = {
    Verdict.REGRESSION: ("regression", "regressions"),
    Verdict.CHANGED: ("changed result", "changed results"),
    Verdict.NEW: ("new failure", "new failures"),
    Verdict.IMPROVEMENT: ("improvement", "improvements"),
}
_MARKS: dict[Tone, str] = {"good": "✓", "bad": "✗", "warn": "!"}


class Summary(NamedTuple):
    """`sentence` is the verdict; `remarks` are what a reader must know before trusting it."""

    tone: Tone
    sentence: str
    remarks: tuple[str, ...]

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
    total = tables.tally()
    remarks = _remarks(tables)
    if not total.run:
        return Summary("warn", f"Nothing ran: 0 of {count(tables.selected, 'selected result')}.", remarks)
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
        return Summary(tone, f"{', '.join(unexpected)} in {count(total.run, 'result')}; {known}.", remarks)
    as_expected = (
        "The only result is as expected" if total.run == 1 else f"All {total.run:,} results are as expected"
    )
    without = f"; without {_listed(left_out)}" if (left_out := tables.header.targets_left_out) else ""
    if tables.truncated:
        return Summary("warn", f"The run is incomplete. {as_expected}: {known}{without}.", remarks)
    if total.run < tables.selected:
        return Summary("warn", f"{as_expected}, of {tables.selected:,} selected; {known}{without}.", remarks)
    return Summary("good", f"{as_expected}: {known}{without}.", remarks)


_NAMED = 2
"""How many targets are named of which the same is said."""


def _conforming(total: Tally) -> str:
    known = (
        f", {count(total.known, 'deviates in a known way', 'deviate in known ways')}" if total.known else ""
    )
    nothing = f", {count(total.unclaimed, 'tests nothing', 'test nothing')}" if total.unclaimed else ""
    return count(total.conforming, "conforms", "conform") + known + nothing


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
    alike = {}
    for target, number in tables.inexpressible.items():
        alike.setdefault(_not_counted(number, tables.header.targets[target].provider), []).append(target)
    alone = len(tables.targets) == 1
    remarks += [what if alone else f"{_together(targets)}: {what}" for what, targets in alike.items()]
    if nothing := tables.tally().unclaimed:
        which, its, none = (
            ("1 result tests", "its", "it is not")
            if nothing == 1
            else (f"{nothing:,} results test", "their", "none is")
        )
        remarks.append(
            f"{which} nothing, since the bound on {its} error is infinite: {none} counted as a pass."
        )
    if pending := sum(row.results for row in tables.deviations.rows(pending=True)):
        remarks.append(
            f"{count(pending, 'deviation is', 'deviations are')} not reviewed yet: nobody has looked at why."
        )
    if tables.left_out:
        largest = sorted(tables.left_out.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{one_line(reason)}: {number:,}" for reason, number in largest[:REASONS])
        more = f", and {count(len(largest) - REASONS, 'more reason')}" if len(largest) > REASONS else ""
        remarks.append(
            f"Left out before the run: {count(sum(tables.left_out.values()), 'combination')} ({named}{more})."
        )
    return tuple(remarks)


def _not_counted(number: int, provider: str) -> str:
    """Say that a target's API has no words for some cases, so that they stand in no count."""
    cases, they, call, have = (
        ("case is", "it", "calls", "has") if number == 1 else ("cases are", "they", "call", "have")
    )
    if provider == DIRECTML:
        return f"{number:,} {cases} not counted: no call of DirectML's own API can express {'it' if number == 1 else 'them'}."
    return f"{number:,} {cases} not counted: {they} {call} DirectML's own API and {have} no ONNX graph."


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
