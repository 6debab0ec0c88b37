"""The verdict of a run in one sentence, and the few facts at the top of every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from harness.model.case import Validity
from harness.model.header import Against, End, Header, moment
from harness.model.result import CANNOT_BE_ASKED, NOT_EXPRESSIBLE
from harness.model.target_info import CPU, DIRECTML, TargetInfo
from harness.model.verdict import NOT_EXECUTED, Outcome, Reading, Verdict
from harness.results import columns
from harness.results.columns import ASKED, Dataset
from harness.results.memory import KINDS
from harness.results.reading_rows import unexpected_words
from harness.results.runfile import RunReader
from harness.results.runfile import lines as run_lines
from harness.results.tables import Tables

Tone = Literal["good", "bad", "warn"]

REASONS = 2
"""Reasons for leaving out that a note names; tables name them all."""
REVIEWED = {CPU: ("1.27.0", "1.31.1", "1.32.0")}
"""The releases with which every spec ran and has its entries, as docs/runtimes.md has them."""
_REASONS = {
    "adds no new pair": "other cases cover every pair of their values",
    "not in the query": "the query does not ask for them",
    "in another shard": "another shard runs them",
}
"""Reasons for leaving out, in words that need no glossary."""
_CHANGED = {
    Verdict.CHANGED: ("changed result", "changed results"),
    Verdict.IMPROVEMENT: ("improvement", "improvements"),
}
"""What differs from an earlier run, or an entry, without turning the run red."""
_INEXPRESSIBLE = f'"class":"{NOT_EXPRESSIBLE}"'.encode()
MARKS: dict[Tone, str] = {"good": "✓", "bad": "✗", "warn": "!"}


class Note(NamedTuple):
    """A remark that belongs to no count: in a few words, and in full."""

    short: str
    text: str


class Summary(NamedTuple):
    """`sentence` is the verdict and `where` the targets that ran; `remarks` are needed before trusting it,
    `notes` are folded in reports."""

    tone: Tone
    sentence: str
    remarks: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    where: str = ""
    missing: tuple[str, ...] = ()
    """What the run lacks, the first of its remarks."""
    ran: tuple[str, ...] = ()
    """When, and for each target the provider, its release and the machine."""

    @property
    def mark(self) -> str:
        """A sign beside the colour."""
        return MARKS[self.tone]


def count(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def summarize(tables: Tables) -> Summary:
    """Judge a run: bad with anything unexpected, a warning where it is incomplete or nothing ran, good
    otherwise."""
    lacks = missing(tables.header, tables.end, tables.tally().selected)
    tone, sentence = _verdict(tables, incomplete=bool(lacks))
    return Summary(
        tone, sentence, (*lacks, *_remarks(tables)), _notes(tables), _where(tables), lacks, _ran(tables)
    )


def _verdict(tables: Tables, *, incomplete: bool) -> tuple[Tone, str]:
    total = tables.tally()
    if not total.run:
        return "warn", f"Nothing ran: 0 of {count(tables.selected, 'selected result')}."
    results = count(total.selected, "result")
    faults = [f"{total.unexpected:,} unexpected"] if total.unexpected else []
    if tables.problems:
        faults.append(count(len(tables.problems), "problem") + " in the expectations")
    if faults:
        said = f": {unexpected_words(total)}" if total.unexpected else ""
        return "bad", f"{' and '.join(faults)} in {results}{said}."
    if incomplete:
        held = f"{total.selected:,} of {count(tables.selected, 'result')}"
        return (
            "warn",
            f"The run is incomplete: nothing unexpected in {results if tables.truncated else held}.",
        )
    nothing = f"Nothing unexpected in {results}"
    changed = [
        count(number, *words)
        for verdict, words in _CHANGED.items()
        if (number := tables.unexpected.numbers[verdict])
    ]
    if changed:
        return "warn", f"{nothing}; {' and '.join(changed)}."
    if absent := total.outcomes[Outcome.UNAVAILABLE]:
        return "warn", f"{nothing}, {absent:,} of them of a target that is not available."
    none = [
        target
        for target in tables.targets
        if not (valid := tables.tally(target=target, validity=Validity.VALID)).correct
        and valid.selected > valid[Reading.NOT_JUDGED]
    ]
    if none:
        return "warn", f"{nothing}, but no valid case is correct on {_together(none)}."
    without = f", without {_listed(left_out)}" if (left_out := tables.header.targets_left_out) else ""
    return "good", f"{nothing}{without}."


def _where(tables: Tables) -> str:
    """Name the targets, and their releases where all have the same."""
    infos = [info for info in tables.header.targets.values() if not info.unavailable]
    facts = [
        f"{name} {one_line(versions.pop() or '')}"
        for name, versions in (
            ("onnxruntime", {info.onnxruntime for info in infos}),
            ("DirectML", {info.directml for info in infos}),
        )
        if len(versions) == 1 and None not in versions
    ]
    return ", ".join([_together(tables.targets), *facts]) if tables.targets else ""


def _ran(tables: Tables) -> tuple[str, ...]:
    """Say when a run was, and on what: a line for each of the first targets."""
    header = tables.header
    lines = [f"{when} UTC"] if (when := moment(header.run_id)) else []
    shown = list(header.targets.items())[:_MACHINES]
    for target, info in shown:
        versions = (("onnxruntime", info.onnxruntime), ("DirectML", info.directml))
        releases = [f"{name} {version}" for name, version in versions if version]
        device = " ".join(filter(None, (info.adapter, info.driver and f"driver {info.driver}")))
        facts = [info.provider, *releases, device, info.platform or ""]
        if not info.unavailable:
            lines.append(f"{target}: {', '.join(one_line(fact) for fact in facts if fact)}")
    if more := len(header.targets) - len(shown):
        lines.append(f"and {count(more, 'more target')}")
    return tuple(lines)


_MACHINES = 3
"""Targets whose machine stands at the top of a report."""
_NAMED = 2
"""How many targets are named of which the same is said."""


def missing(header: Header, end: End | None, held: int) -> tuple[str, ...]:
    """Name the missing results of a run whose file has `held` readable results; nothing for a complete run."""
    found = []
    if end is None:
        found.append(
            f"The run file ends after {count(held, 'result')}, without its last line. Continue the run with --resume."
        )
    short = end is None or held < end.selected
    if short and header.merged is not None and header.merged.missing:
        numbers = [str(number) for number in header.merged.missing]
        shards, they = ("shards", "they") if len(numbers) > 1 else ("shard", "it")
        found.append(f"Merged without {shards} {_listed(numbers)}: what {they} held is not in this run.")
    if end is not None and short:
        found.append(f"The run file holds {held:,} of {count(end.selected, 'selected result')}.")
    return tuple(found)


def lacks(path: Path) -> tuple[str, ...]:
    """Name the missing results of a run file (`missing`) without decoding its results. Errors: UsageError."""
    reader = RunReader(path)
    if columns.there(reader.path):
        with Dataset(f"{reader.path}: cannot be counted", scanned=True) as data, data.part(reader) as part:
            ((held,),) = part.rows("count(*)", f"WHERE {ASKED}")
        return missing(reader.header, None if part.cut else part.end, held)
    lines, last = -1, b""
    for line in run_lines(reader.path):
        lines, last = lines + (line.endswith(b"\n") and _INEXPRESSIBLE not in line), line
    try:
        end = msgspec.json.decode(last, type=End)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return missing(reader.header, None, lines)
    return missing(reader.header, end, lines - 1)


def _remarks(tables: Tables) -> tuple[str, ...]:
    remarks = []
    reasons: dict[str, list[str]] = {}
    for target, why in tables.header.targets_left_out.items():
        reasons.setdefault(one_line(why), []).append(target)
    remarks += [
        f"Run without {_listed(targets)}, which are not here: {why}." for why, targets in reasons.items()
    ]
    if tables.header.baseline is not None:
        remarks.append(_judged(tables.header.baseline, tuple(tables.header.targets)))
    remarks += _not_reviewed(tables)
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
    remarks += _by_use(tables)
    for target in tables.targets:
        kinds = [f"{number:,} {kind}" for kind in KINDS if (number := tables.memory[target, kind])]
        if kinds:
            remarks.append(f"What {target} accepted: {_listed(kinds)}.")
    if pending := sum(row.results for row in tables.deviations.rows(pending=True)):
        remarks.append(
            f"{count(pending, 'known result is', 'known results are')} not reviewed yet: nobody has looked at why."
        )
    return tuple(remarks)


def _not_reviewed(tables: Tables) -> Iterator[str]:
    """Warn that unexpected results need not be new on releases that the harness's own entries were never checked
    against as a whole."""
    asked = tables.header.selection
    if tables.header.baseline is not None or asked is None or asked.expectations:
        return
    for target, info in tables.header.targets.items():
        known = REVIEWED.get(info.provider, ())
        if known and info.onnxruntime not in known and tables.tally(target=target).unexpected:
            yield (
                f"The entries of {info.provider} were reviewed with onnxruntime {_listed(known)}: what is unexpected with "
                f"{one_line(info.onnxruntime or 'an unknown release')} may be as old as that release, and is no regression of it."
            )


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


def _by_use(tables: Tables) -> Iterator[str]:
    """Weigh the calls of models by how many nodes make them."""
    for target in tables.targets:
        correct, other = tables.uses[target, True], tables.uses[target, False]
        if correct or other:
            yield (
                f"Weighed by use, {correct:,} of {count(correct + other, 'node')} of the models are correct on {target}."
            )


def _why(tables: Tables, target: str) -> str:
    """Return the reasons for cases that a target did not run, the most frequent first."""
    found = Counter(
        {class_: number for (of, class_), number in tables.not_run.items() if of == target and class_}
    )
    reasons = [
        f"{one_line(CANNOT_BE_ASKED.get(class_, class_))}: {number:,}"
        for class_, number in found.most_common()
    ]
    return f" ({', '.join(reasons)})" if reasons else ""


def _judged(against: Against, targets: tuple[str, ...]) -> str:
    """Name the earlier run that the verdicts refer to, and the results that it does not cover."""
    renamed = [f", {now} against its {then}" for now, then in against.targets.items() if now != then]
    said = f"Judged against run {one_line(against.run_id)}{''.join(renamed)}."
    absent = [target for target in targets if target not in against.targets]
    if absent:
        said += f" It has no {', '.join(absent)}: what fails there is new."
    if against.differing:
        said += f" Other {' and '.join(against.differing)} than then: a change need not be the target's."
    return said


def some(names: Sequence[str], most: int) -> str:
    """Name the first of some names, and count the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _listed(names: Iterable[str]) -> str:
    """Join names as a sentence does."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _together(targets: list[str]) -> str:
    """Name targets with the same remark; a few of them by name."""
    more = len(targets) - _NAMED
    return ", ".join(targets) if more <= 1 else f"{', '.join(targets[:_NAMED])} and {more} more targets"


def one_line(text: str) -> str:
    """Fold a text into one line."""
    return " ".join(text.split())


def target_facts(info: TargetInfo) -> list[tuple[str, str]]:
    """Return the facts about a target as (name, value) in reading order; unknown ones are left out."""
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
