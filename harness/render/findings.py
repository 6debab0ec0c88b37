"""Shows what the runs of a site found on each target: each defect once, with its reason, since when, how many cases show it,
and the command that shows it again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.model.verdict import DEFECTS
from harness.render.document import Block, Document, Item, Items, Paragraph, Remark, Section, Span
from harness.render.terminal import describe
from harness.render.text import line
from harness.results.history.findings import Finding
from harness.results.history.site import CaseStory, Site
from harness.results.history.summary import headline, sentence
from harness.results.summary import count

_SINCE = 3
"""Answers to since when cases fail that a defect names, the most frequent first."""
_OPERATORS = 6
_ABOUT = (
    "Each defect once on each target: what is unexpected, then what a release began, the newest first, then what no run has right, "
    "by its number of cases."
)


class _Defect(NamedTuple):
    """The cases of one target that one entry explains, or that end alike and none explains."""

    stories: list[tuple[str, CaseStory]]
    operators: Counter[str]

    @property
    def red(self) -> bool:
        return any(story.newest.red and not story.over for _, story in self.stories)

    @property
    def over(self) -> bool:
        return all(story.over for _, story in self.stories)

    @property
    def wrong(self) -> bool:
        """Say whether a result is wrong, crashed or accepted; of any other the target has no support."""
        return any(story.newest.result.reading in DEFECTS for _, story in self.stories)

    @property
    def findings(self) -> list[tuple[Finding, int]]:
        """The answers to since when, without the same answer of cases that end otherwise, the most frequent first."""
        by_words: dict[str, list[Finding]] = {}
        for _, story in self.stories:
            if story.finding is not None:
                by_words.setdefault(sentence(story.finding), []).append(story.finding)
        return sorted(((found[0], len(found)) for found in by_words.values()), key=lambda each: -each[1])

    @property
    def order(self) -> tuple[object, ...]:
        began = max(
            (found.since.run_id for found, _ in self.findings if found.last_good and not found.until),
            default="",
        )
        return not self.red, self.over, [-ord(each) for each in began] or [0], -len(self.stories)


def findings_document(site: Site) -> Document:
    """Show the defects of every target, then what targets do not support."""
    by_target: dict[str, dict[object, _Defect]] = {target: {} for target in site.targets}
    for operator, groups in site.groups.items():
        for case, story in ((case, story) for group in groups for case, of in group.cases for story in of):
            entry, result = story.newest.entry, story.newest.result
            error = result.error.class_ if result.error else ""
            key = entry.name if entry else (operator, result.outcome, error)
            defect = by_target[story.target].setdefault(key, _Defect([], Counter()))
            defect.stories.append((case, story))
            defect.operators[operator] += 1
    sections = [
        Section(
            "about",
            "",
            [Paragraph(Span(_ABOUT)), Paragraph(Span("Operators, targets and runs", link="index.html"))],
        )
    ]
    for number, (target, found) in enumerate(by_target.items()):
        defects = sorted(found.values(), key=lambda defect: defect.order)
        for name, title, wanted in (("wrong", target, True), ("missing", f"{target}: not supported", False)):
            here = [_item(defect) for defect in defects if defect.wrong is wanted]
            if here:
                blocks: Sequence[Block] = [Items(here)]
                sections.append(Section(f"{name}-{number}", title, blocks, folded=not wanted))
    total = sum(len(found) for found in by_target.values())
    said = f"{count(total, 'finding')} in {headline(site.history)}"
    return Document("Findings", said, sections, site.history.remarks)


def _item(defect: _Defect) -> Item:
    entry = min((story.newest for _, story in defect.stories), key=lambda newest: newest.entry is None).entry
    operators = ", ".join(sorted(defect.operators)[:_OPERATORS])
    more = len(defect.operators) - _OPERATORS
    case, smallest = min(defect.stories, key=lambda each: (len(each[0]), each[0]))
    title = entry.name if entry else "no entry explains it"
    tag = "unexpected" if defect.red else "correct again" if defect.over else ""
    return Item(
        f"{len(defect.stories):,} × {operators}{f' and {more:,} more' if more > 0 else ''}: {title}",
        list(_remarks(defect, case, smallest)),
        tag=tag,
    )


def _remarks(defect: _Defect, case: str, smallest: CaseStory) -> Iterator[Remark]:
    entry, result = smallest.newest.entry, smallest.newest.result
    if entry is not None:
        yield Remark(line(entry.reason, 1000), link=entry.link)
        if entry.documents:
            yield Remark(f"Microsoft's documents: {line(entry.documents, 1000)}")
    yield Remark(_numbers(story.newest.result.reading.value for _, story in defect.stories))
    for found, number in defect.findings[:_SINCE]:
        yield Remark(f"{count(number, 'case')}: {sentence(found)}", "soft")
    yield Remark(describe(result), "soft")
    yield Remark("shown by", case=f"harness run -t {shlex.quote(result.target)} -k {shlex.quote(case)}")


def _numbers(readings: Iterable[str]) -> str:
    return ", ".join(f"{reading} {number:,}" for reading, number in Counter(readings).most_common())
