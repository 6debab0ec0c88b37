"""Renders a site of many runs: an index, a page for each operator and for each target, in the look of the
report pages, and the data of the search.

Every page is complete without its script, which only searches. Links are relative, so that any file host can
serve the folder, and it opens from disk.

`findings.html` shows what the runs found on each target: each defect once, with its reason, since when, how many cases show it,
and the command that shows it again.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from harness.model.facets import dtype_key
from harness.model.result_key import case_anchor
from harness.model.verdict import DEFECTS, Reading
from harness.render.document import Block, Document, Item, Items, Paragraph, Remark, Section, Span
from harness.render.document_html import write_html
from harness.render.html import asset, environment, fact_rows
from harness.render.terminal import describe, details
from harness.render.text import line, visible
from harness.render.trend import badge_svg
from harness.results.history.findings import Finding
from harness.results.history.runs import Moment, trends
from harness.results.history.site import CaseStory, Site, StoryGroup, worst_first
from harness.results.history.summary import at, headline, sentence
from harness.results.level_table import telling_number
from harness.results.numbering import Numbering
from harness.results.summary import count, some
from harness.results.tables import short_names

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
    operators = some(sorted(defect.operators), _OPERATORS)
    case, smallest = min(defect.stories, key=lambda each: (len(each[0]), each[0]))
    title = entry.name if entry else "no entry explains it"
    tag = "unexpected" if defect.red else "correct again" if defect.over else ""
    return Item(
        f"{len(defect.stories):,} × {operators}: {title}",
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


CASES = 5000
"""Cases that a page of an operator lists; the groups above them count all."""
FOLDED = 12
"""Cases of a group from which its list is folded."""
_TONES = {"bad": "failing", "warn": "partial", "good": "pass"}
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{,99}")


def render_site(site: Site) -> Iterator[tuple[str, str]]:
    """Yield path below the site's folder and text of every file; the index comes last."""
    names = _Names(site)
    yield "site.css", asset("report.css") + asset("site.css")
    yield "site.js", asset("site.js")
    heads = [(target, list(of)) for target, of in groupby(site.columns, key=lambda each: each.target)]
    common = {"site": site, "names": names, "headline": headline(site.history), "heads": heads}
    for operator in site.operators:
        groups = [_group(group) for group in _listed(site.groups.get(operator, ()))]
        number = sum(group.number for group in site.groups.get(operator, ()))
        context = {
            "operator": operator,
            "dtypes": site.types[operator],
            "histories": [(target, site.rows(operator, target)[::-1]) for target in site.targets],
            "groups": groups,
            "number": count(number, "case"),
            "left_out": number - sum(len(group["cases"]) for group in groups),
            "outcomes": lambda row: [(reading.value, n) for reading, n in row.counts.total.others()],
        }
        yield names.operator(operator), _page("site_operator.html.j2", common | context | {"root": "../"})
    for target in site.targets:
        columns = [column for column in site.columns if column.target == target]
        moments = site.history.lines[target]
        context = {
            "target": target,
            "columns": columns,
            "moments": moments[::-1],
            "trends": trends(target, moments, by_release=True),
            "facts": fact_rows([column.moments[-1].point.info for column in reversed(columns)]),
            "operators": [name for name in worst_first(site, columns) if site.rows(name, target)],
        }
        yield (
            names.badge(target),
            badge_svg(f"{names.shown(target)} {moments[-1].version}", site.total(moments[-1])),
        )
        yield names.target(target), _page("site_target.html.j2", common | context | {"root": "../"})
    yield "search.js", f"harnessSearch({_search(site, names)})\n"
    context = {
        "operators": worst_first(site, site.columns),
        "runs": list(site.runs.values())[::-1],
        "tones": _TONES,
        "when": {moment.run_id: moment.when for moment in site.history.moments},
    }
    every = sorted({dtype for found in site.types.values() for dtype in found}, key=dtype_key)
    yield "support.html", _page("site_support.html.j2", common | {"dtypes": every, "root": ""})
    yield "findings.html", write_html(findings_document(site))
    yield "index.html", _page("site_index.html.j2", common | context | {"root": ""})


def _page(template: str, context: dict[str, Any]) -> str:
    made = environment().get_template(template)
    return made.render(
        context
        | {"telling_number": telling_number, "at": at, "sentence": _sentence, "readings": list(Reading)}
    )


class _Names:
    """Names of files and of targets on pages. A target's name need not be a valid file name, and two may differ in
    case alone."""

    def __init__(self, site: Site) -> None:
        self._short = short_names(site.targets)
        self._operators, self._targets = _stems(site.operators), _stems(site.targets)

    def operator(self, name: str) -> str:
        """Return the path of an operator's page."""
        return f"operators/{self._operators[name]}.html"

    def target(self, name: str) -> str:
        """Return the path of a target's page."""
        return f"targets/{self._targets[name]}.html"

    def badge(self, name: str) -> str:
        """Return the path of a target's badge."""
        return f"targets/{self._targets[name]}.svg"

    def anchor(self, target: str) -> str:
        """Return the fragment of a target on the page of an operator."""
        return f"on-{self._targets[target]}"

    def shown(self, target: str) -> str:
        """Name a target without the folders of its options."""
        return visible(self._short[target])

    def release(self, moment: Moment) -> str:
        """Name target and release of a moment, as its run does."""
        return visible(short_names([moment.point.target])[moment.point.target])


def _stems(names: Iterable[str]) -> dict[str, str]:
    """Return a file name without suffix for each name: itself where that is safe and alone."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        stem = name
        if not _SAFE.fullmatch(name) or name.casefold() in taken:
            digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            stem = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)[:60].strip('-')}-{digest}"
        taken.add(stem.casefold())
        found[name] = stem
    return found


def _sentence(finding: Finding | None) -> str:
    return sentence(finding) if finding else "did not run"


def _listed(groups: Iterable[StoryGroup]) -> Iterator[tuple[StoryGroup, int]]:
    """Yield groups with how many of their cases are listed."""
    left = CASES
    for group in groups:
        listed = min(left, group.number)
        left -= listed
        yield group, listed


def _group(listed: tuple[StoryGroup, int]) -> dict[str, Any]:
    """Return a group as its page shows it: the outcome on each target, and each case with its own facts."""
    group, number = listed
    return {
        "group": group,
        "state": "pass" if group.over else "failing" if group.failing else "known",
        "stories": [
            (story, _judged(story), " · ".join(details(story.newest.result))) for story in group.stories
        ],
        "cases": [
            (case_anchor(case), visible(case), _own(stories) if group.number > 1 else "")
            for case, stories in group.cases[:number]
        ],
        "folded": number > FOLDED,
    }


def _judged(story: CaseStory) -> str:
    if story.over:
        return "correct again"
    means = story.newest.result.reading.value
    return f"{means}, unexpected" if story.newest.red else means


def _own(stories: Iterable[CaseStory]) -> str:
    """Say how a case's outputs differ, which is not the same for all of a group."""
    said = (details(msgspec.structs.replace(story.newest.result, error=None)) for story in stories)
    return line(" · ".join(part for parts in said for part in parts if "it ran without" not in part), 240)


def _search(site: Site, names: _Names) -> str:
    """Encode the pages and the deviating cases, which are listed: ids split at `;`, their parts as numbers."""
    parts: Numbering[str] = Numbering()
    pages = []
    for operator in site.operators:
        listed = [
            (case_anchor(case), *(parts[visible(part)] for part in case.split(";")))
            for group, number in _listed(site.groups.get(operator, ()))
            for case, _ in group.cases[:number]
        ]
        pages.append((visible(operator), names.operator(operator), listed))
    targets = [(names.shown(target), names.target(target)) for target in site.targets]
    return msgspec.json.encode({"operators": pages, "targets": targets, "parts": list(parts)}).decode()
