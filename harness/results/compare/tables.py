"""The parts of a comparison that every rendering shows: the verdict in one sentence, the differences between
the environments, both runs by feature level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.header import of_other_files
from harness.model.reference.feature_levels import level_key
from harness.model.verdict import Reading
from harness.results.compare.comparison import (
    OWN,
    Change,
    Changed,
    ComparedCounts,
    ComparedResult,
    Comparison,
    Pair,
)
from harness.results.level_table import levels
from harness.results.summary import Summary, count, missing, one_line, target_facts
from harness.results.tally import Tally

PLURALS = {
    Change.REGRESSION: "regressions",
    Change.FIX: "fixes",
    Change.CHANGED: "changed",
    Change.NEW: "new",
    Change.MISSING: "missing",
}


def exit_code(comparison: Comparison) -> int:
    """Return 1 if there are regressions, 4 if no result ran in both runs or a run is incomplete: its missing results
    may have changed."""
    if comparison.total.changes[Change.REGRESSION]:
        return 1
    return 0 if comparison.total.compared and not _cut_off(comparison) else 4


def _cut_off(comparison: Comparison) -> list[str]:
    """Name the runs that are incomplete."""
    return [
        name
        for name, tables in (("BASE", comparison.base), ("HEAD", comparison.head))
        if missing(tables.header, tables.end, tables.tally().selected)
    ]


def summarize_comparison(comparison: Comparison) -> Summary:
    """Judge a comparison: bad with a regression, a warning where nothing or not all could be compared, good
    otherwise."""
    total = comparison.total
    remarks = _remarks(comparison)
    if not total.compared:
        return Summary(
            "warn", f"Nothing can be compared: no result ran in both runs ({_numbers(total)}).", remarks
        )
    parts = [f"{total.equal:,} {'is' if total.equal == 1 else 'are'} equal"]
    for change in (Change.FIX, Change.CHANGED, Change.NEW, Change.MISSING):
        if number := total.changes[change]:
            parts.append(count(number, change.value, PLURALS[change]))
    regressions = total.changes[Change.REGRESSION]
    head = count(regressions, "regression") if regressions else "No regression"
    cut = _cut_off(comparison)
    incomplete = f"{' and '.join(cut)} {'is' if len(cut) == 1 else 'are'} incomplete. " if cut else ""
    sentence = (
        f"{incomplete}{head} in {count(total.compared, 'result')} that ran in both runs; {', '.join(parts)}."
    )
    if regressions:
        return Summary("bad", sentence, remarks)
    other = comparison.differing_inputs or of_other_files(comparison.base.header, comparison.head.header)
    whole = not (cut or other or total.changes[Change.MISSING])
    return Summary("good" if whole else "warn", sentence, remarks)


def _numbers(total: ComparedCounts) -> str:
    said = [f"{total.changes[change]:,} {PLURALS[change]}" for change in (Change.NEW, Change.MISSING)]
    return ", ".join([*said, f"{total.neither:,} not run in either"])


def _remarks(comparison: Comparison) -> tuple[str, ...]:
    remarks = []
    total = comparison.total
    differing = comparison.differing_inputs
    if apart := [*_inputs(differing), *_asked(comparison)]:
        kept, gone, come = total.compared, total.changes[Change.MISSING], total.changes[Change.NEW]
        remarks.append(
            f"{'; '.join(apart)}: only cases in both runs are compared, {count(kept, 'result')}; "
            f"{gone:,} of BASE and {come:,} of HEAD are not."
        )
    if "seed" in differing:
        remarks.append(
            "With another seed the same case has other random inputs: a change need not be the target's."
        )
    if comparison.base.header.hashes.get("oracle") != comparison.head.header.hashes.get("oracle"):
        remarks.append("The oracle differs: a change can be the oracle's and not the target's.")
    for name, tables in (("BASE", comparison.base), ("HEAD", comparison.head)):
        for said in missing(tables.header, tables.end, tables.tally().selected):
            remarks.append(f"{name} is incomplete, and is compared as far as it goes: {said}")
    remarks += [
        f"The only target of BASE, {pair.base}, is compared with the only one of HEAD, {pair.head}."
        for pair in comparison.pairs
        if pair.base != pair.head
    ]
    for name, other, targets in zip(("BASE", "HEAD"), ("HEAD", "BASE"), comparison.unmatched, strict=True):
        if targets:
            remarks.append(f"Not compared, because {other} does not have it: {', '.join(targets)} of {name}.")
    for name, tables in (("BASE", comparison.base), ("HEAD", comparison.head)):
        for target, info in tables.header.targets.items():
            if info.unavailable:
                remarks.append(f"{target} was not available in {name}: {one_line(info.unavailable)}")
    remarks += filter(None, [_flaky(comparison)])
    return tuple(remarks)


def _flaky(comparison: Comparison) -> str:
    """Say which changes are of flaky cases, empty where none are."""
    if not (found := _changes(comparison.flaky)):
        return ""
    are = "is" if comparison.flaky.total() == 1 else "are"
    return f"{found} {are} of flaky cases: repeated in one run, they did not always do the same."


def _changes(numbers: Counter[Change]) -> str:
    """Write how many changes of each kind there are: `2 regressions, 1 new`."""
    found = ((change, numbers[change]) for change in Change)
    return ", ".join(count(number, change.value, PLURALS[change]) for change, number in found if number)


def _inputs(differing: list[str]) -> list[str]:
    if len(differing) == 2:
        return ["The specs and the seed differ"]
    return [f"The {name} {'differ' if name.endswith('s') else 'differs'}" for name in differing]


def _asked(comparison: Comparison) -> Iterator[str]:
    """Say which files of specs the runs are of, and which queries narrowed one, where that is not the same."""
    base, head = comparison.base.header.selection, comparison.head.header.selection
    if base is None or head is None:
        return
    if of_other_files(comparison.base.header, comparison.head.header):
        files = [", ".join(map(one_line, each.specs)) or "all specs" for each in (base, head)]
        yield f"BASE is of {files[0]}, HEAD of {files[1]}"
    if base.queries != head.queries:
        for name, queries in (("BASE", base.queries), ("HEAD", head.queries)):
            if queries:
                more = f" and {len(queries) - 1:,} more" if len(queries) > 1 else ""
                yield f"-k {one_line(queries[0])}{more} narrowed {name}"


class Fact(NamedTuple):
    """One fact about both runs, or about a pair of targets; empty where a run does not tell."""

    name: str
    base: str
    head: str

    @property
    def differs(self) -> bool:
        return self.base != self.head


def run_facts(comparison: Comparison) -> list[Fact]:
    """Seed and hashes, which can differ; then what names the runs."""
    base, head = comparison.base.header, comparison.head.header
    facts = [Fact("seed", str(base.seed), str(head.seed))]
    facts += [
        Fact(name, base.hashes.get(name, ""), head.hashes.get(name, ""))
        for name in sorted({*base.hashes, *head.hashes})
    ]
    return facts


def pair_facts(comparison: Comparison, pair: Pair) -> list[Fact]:
    """What the two targets of a pair were, in reading order."""
    both = []
    for tables, name in ((comparison.base, pair.base), (comparison.head, pair.head)):
        info = tables.header.targets[name]
        unavailable = {"not available": one_line(info.unavailable)} if info.unavailable else {}
        both.append({**unavailable, **dict(target_facts(info))})
    return [
        Fact(name, both[0].get(name, ""), both[1].get(name, ""))
        for name in dict.fromkeys([*both[0], *both[1]])
    ]


def environment_differences(comparison: Comparison) -> list[tuple[str, Fact]]:
    """Every fact that differs, with the pair's name, or `run`."""
    found = [("run", fact) for fact in run_facts(comparison) if fact.differs]
    for pair in comparison.pairs:
        found += [(pair.name, fact) for fact in pair_facts(comparison, pair) if fact.differs]
    return found


class BothCell(NamedTuple):
    """A cell of both runs' level tables, with what changed in it."""

    base: Tally
    head: Tally
    changes: Counter[Change]

    @property
    def status(self) -> str:
        """`none`, `worse` (a regression), `better` (only fixes), `other` (any other change), or `same`."""
        if not (self.base.selected or self.head.selected):
            return "none"
        if self.changes[Change.REGRESSION]:
            return "worse"
        if self.changes[Change.FIX]:
            return "better"
        return "other" if self.changes.total() else "same"

    @property
    def words(self) -> str:
        """Name what changed."""
        return _changes(self.changes) or "equal"


class BothRow(NamedTuple):
    """One operator on one pair of targets."""

    operator: str
    pair: Pair
    by_level: dict[str, BothCell]
    total: BothCell


def both_levels(comparison: Comparison) -> list[str]:
    """Return the columns of `both_rows`."""
    return sorted({*levels(comparison.base), *levels(comparison.head)}, key=level_key)


def both_rows(comparison: Comparison) -> list[BothRow]:
    """Return a row for each operator and pair of targets, of valid cases."""
    columns, runs = both_levels(comparison), (comparison.base, comparison.head)
    cells = [tables.by("operator", "target", "level", validity=Validity.VALID) for tables in runs]
    totals = [tables.by("operator", "target", validity=Validity.VALID) for tables in runs]
    rows = []
    for operator in sorted({*comparison.base.operators, *comparison.head.operators}):
        for pair in comparison.pairs:
            by_level = {
                level: BothCell(
                    cells[0].get((operator, pair.base, level), Tally()),
                    cells[1].get((operator, pair.head, level), Tally()),
                    comparison.by_level.get((operator, pair, level), Counter()),
                )
                for level in columns
            }
            changes: Counter[Change] = Counter()
            for cell in by_level.values():
                changes.update(cell.changes)
            of_base = totals[0].get((operator, pair.base), Tally())
            total = BothCell(of_base, totals[1].get((operator, pair.head), Tally()), changes)
            rows.append(BothRow(operator, pair, by_level, total))
    return rows


def both_readings(comparison: Comparison) -> list[tuple[str, int, int]]:
    """Return each reading that occurs with its number in BASE and in HEAD, then the sums."""
    base, head = comparison.base.tally(), comparison.head.tally()
    found = [(reading.value, base[reading], head[reading]) for reading in Reading]
    return [row for row in found if any(row[1:])] + [("all results", base.selected, head.selected)]


def outcome_of(result: ComparedResult | None) -> str:
    """Name an outcome; a dash where a run has no such result."""
    return result.outcome.value if result else "–"


def said(found: Changed) -> str:
    """Say what differs beside the outcome: `error class Fail → InvalidArgument`; nothing where another
    outcome explains it."""
    before, after = found.kind.before, found.kind.after
    flaky = [
        f"flaky in {name}"
        for name, result in (("BASE", before), ("HEAD", after))
        if result is not None and result.flaky
    ]
    if before is None or after is None:
        return ", ".join(flaky)
    words = {
        "validity": f"{before.validity.value} → {after.validity.value}",
        "ULP": f"max ULP {found.ulp_before or 0:,} → {found.ulp_after or 0:,}",
    }
    if before.outcome is after.outcome:
        was, is_now = before.signature, after.signature
        words["stage"] = f"at {was.stage} → at {is_now.stage}"
        words["error class"] = f"error class {before.error or 'none'} → {after.error or 'none'}"
        words["difference"] = f"difference {was.difference} → {is_now.difference}"
        words["placement"] = f"placed on {before.placed} → {after.placed}"
    return ", ".join([*(words[name] for name in found.kind.why if name in words), *flaky])


def placed_on(result: ComparedResult | None, provider: str) -> str | None:
    """Name the provider that a result was placed on."""
    return result.placed.replace(OWN, provider) or None if result else None
