"""What became of a model on targets, as a document and as data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.model.result import Diff, Result
from harness.model.verdict import DEFECTS
from harness.render.document import (
    Block,
    Document,
    Item,
    Items,
    Paragraph,
    Picture,
    Remark,
    Row,
    Section,
    Span,
    Style,
    Table,
    run_table,
)
from harness.render.model_picture import draw_graph, draw_growth
from harness.render.terminal import details
from harness.render.text import line
from harness.results.defects import release_words, releases
from harness.results.model_report import DefectOfCalls, ModelView, RegionRow, WholeRun
from harness.results.summary import count

_REPORTED = ("-o", "bug", "--redraw", "--reduce")
_NODES = 3
_STYLES: dict[str, Style] = {"wrong": "bad", "crashed": "bad", "accepted": "warn", "not supported": "warn"}
_VERDICTS = ("correct", "wrong", "crashed", "accepted", "not supported", "not judged", "compared")


def model_document(view: ModelView) -> Document:
    """Show the verdict in a sentence, what is wrong, the counts, the whole model, the graph."""
    report = view.report
    remarks = [*report.remarks]
    if report.drawn:
        sizes = "".join(f", {name}={size}" for name, size in report.sizes.items())
        remarks.append(f"inputs drawn with seed {report.seed}: {', '.join(report.drawn)}{sizes}")
    parts = {each.case: each.sampled for each in view.results.values() if isinstance(each.sampled, tuple)}
    if parts:
        judged, of = (sum(each[n] for each in parts.values()) for n in (0, 1))
        remarks.append(
            f"of {count(len(parts), 'large call')} a sample was judged: {judged:,} of {of:,} elements"
        )
    doubtful = any(view.wrong_calls(target) or not view.judged(target) for target in view.targets)
    tone = "bad" if view.bad else "warn" if doubtful else "good"
    return Document("model", sentence(view), list(_sections(view)), remarks, tone)  # type: ignore[arg-type] # a literal


def sentence(view: ModelView) -> str:
    """Return the finding: on which targets the models run whole and right, and what is wrong on the others."""
    right, other = [], []
    for target in view.targets:
        if (missing := view.header.targets[target].unavailable) is not None:
            other.append(f"{target} is not available: {line(missing, 80)}")
            continue
        wrong, levels = view.wrong_calls(target), view.wrong_levels(target)
        if wrong:
            first = view.nodes_of(wrong[0])
            more = (
                f" and {sum(view.uses[call] for call in wrong) - 1:,} more"
                if sum(view.uses[call] for call in wrong) > 1
                else ""
            )
            verb = "are" if more else "is"
            worst = "wrong" if view.verdict(target, wrong[0]) == "wrong" else "wrong or end the process"
            size = _by_how_much(view.results.get((target, view.report.calls[wrong[0]].case)))
            other.append(f"on {target} node {first[0]}{more} {verb} {worst}{size}")
        if levels:
            by_model: dict[str, list[str]] = {}
            for each in levels:
                by_model.setdefault(each.model, []).append(each.level)
            for model, at in by_model.items():
                other.append(f"on {target} the whole of {model} is wrong at {', '.join(at)}")
        fused = view.wrong_regions(target)
        if fused:
            what = count(len(fused), "region")
            other.append(f"on {target} the optimizer makes {what} wrong: {fused[0].made[target]}")
        if not wrong and not levels and not fused:
            counted = Counter(view.verdict(target, call) for call in range(len(view.report.calls)))
            if not view.judged(target):
                other.append(f"on {target} nothing is judged")
                continue
            lacks = counted["not supported"]
            without = f" (without {count(lacks, 'call')} that it does not support)" if lacks else ""
            right.append(f"{target}{without}")
    names = ", ".join(name.rpartition("/")[2] for name in view.report.models)
    said = [f"{names}: right on {', '.join(right)}"] if right else [names]
    return ("; " if right else ": ").join([*said, *(["; ".join(other)] if other else [])])


def _by_how_much(result: Result | None) -> str:
    if result is None or not isinstance(result.diff, Diff):
        return ""
    error = result.diff.largest_error
    return f" by {error:.2g}" if isinstance(error, float) else ""


def _sections(view: ModelView) -> Iterator[Section]:
    report = view.report
    rows: list[Row] = []
    by_target = {
        target: Counter(view.verdict(target, call) for call in range(len(report.calls)))
        for target in view.targets
    }
    occurring = [each for each in _VERDICTS if any(counted[each] for counted in by_target.values())]
    heads = ("target", "nodes", "calls", *occurring)
    for target, counted in by_target.items():
        rows.append(
            (
                *(target, f"{len(report.nodes):,}", f"{len(report.calls):,}"),
                *(
                    Span(f"{counted[each]:,}" if counted[each] else "", _STYLES.get(each, ""))
                    for each in occurring
                ),
            )
        )
    yield Section("targets", "Distinct calls", [Table(heads, rows, range(1, len(heads)))])
    findings = list(_findings(view))
    if findings:
        yield Section("findings", "What is not right", [Items(findings)])
    if report.known:
        yield Section("known", "Known defects of these calls, in any release", [_known(report.known)])
    if report.whole:
        yield Section("whole", "The whole model, as deployed", _whole(view))
    if report.regions:
        yield Section("regions", "What the optimizer changed", [_regions(view)], most=40)
    yield Section("operators", "Operators", [_operators(view, occurring)], folded=len(report.calls) > 200)
    if view.levels:
        yield Section("levels", "What DirectML's documents allow, by feature level", [_levels(view)])
    unjudged = _unjudged(view)
    if unjudged.rows:
        yield Section("unjudged", "Calls that no formula judges", [unjudged])
    yield Section("graph", "The graph", [Picture(draw_graph(view))], ("html",))
    if any(any(each) for each in report.growth.values()):
        yield Section(
            "growth", "Difference from the CPU along the depth", [Picture(draw_growth(view)), _grown(view)]
        )
    yield Section(
        "where", "What ran where", [run_table([("", view.header)])], ("html", "markdown"), folded=True
    )


def _findings(view: ModelView) -> Iterator[Item]:
    for target in view.targets:
        for call in view.calls_that(target, "crashed", "wrong", "accepted", "not supported"):
            row = view.report.calls[call]
            result = view.results.get((target, row.case))
            if result is not None:
                yield _finding(view, target, call, result)
        for region in view.wrong_regions(target):
            result = view.results[target, region.case]
            culprit = result.culprit if isinstance(result.culprit, tuple) else ()
            remarks = [Remark(f"nodes: {', '.join(region.places[0])}{_more_places(region)}")]
            remarks.append(Remark("; ".join(details(result))))
            remarks += [Remark(f"right without {' and '.join(culprit)}")] if culprit else []
            remarks.append(_bug_report(view, target, region.case))
            yield Item(f"{region.made[target]} on {target}: {result.reading.value}", remarks, region.case)
        for each in view.wrong_levels(target):
            yield Item(
                f"the whole of {each.model} on {target} at {each.level}: {_moved(each)}",
                [Remark(_blame(each))],
            )


def _finding(view: ModelView, target: str, call: int, result: Result) -> Item:
    row, nodes, known = view.report.calls[call], view.nodes_of(call), view.known(result)
    more = f" and {len(nodes) - _NODES:,} more" if len(nodes) > _NODES else ""
    remarks = [Remark(f"node{'s' * (len(nodes) > 1)}: {', '.join(nodes[:_NODES])}{more}")]
    remarks.append(Remark("; ".join(details(result))))
    if known is not None:
        remarks.append(Remark(f"known: {known.name}: {known.reason}", "soft", link=known.link or ""))
    remarks.append(_bug_report(view, target, row.case))
    head = f"{row.text} on {target}: {view.verdict(target, call)}"
    return Item(head, remarks, row.case, "" if known is None else "known")


def _bug_report(view: ModelView, target: str, case: str) -> Remark:
    return Remark(
        "bug report", case=shlex.join(["harness", "repro", str(view.folder), case, "-t", target, *_REPORTED])
    )


def _known(found: Sequence[DefectOfCalls]) -> Items:
    items = []
    for each in found:
        where = "" if each.holds else "not in this release"
        items.append(
            Item(
                f"{each.title}: {count(each.calls, 'call')} on {each.target}",
                [
                    Remark(line(each.reason, 1000), link=each.link),
                    Remark(release_words(*releases(each.releases)), "soft"),
                ],
                tag=where,
            )
        )
    return Items(items)


def _more_places(region: RegionRow) -> str:
    more = len(region.places) - 1
    return f", and {count(more, 'like place')}" if more else ""


def _moved(each: WholeRun) -> str:
    if each.error:
        return line(each.error, 200)
    if each.repeats is False:
        return "a second run in the same session gives other bits"
    if each.bound is False:
        return "inputs and outputs bound to memory of the device give other bits"
    if each.misfits:
        return "a run with free dimensions one larger, in the same session, gives what a session of its own does not"
    return f"outputs move by {each.moved:.2g} of the largest element; a rounding of all weights and inputs moves them by {each.noise:.2g}"


def _blame(each: WholeRun) -> str:
    if each.culprit:
        return f"right without {' and '.join(each.culprit)}"
    changed = ", ".join(each.transformers)
    return (
        f"transformers that changed the graph: {changed}" if changed else "no transformer changed the graph"
    )


def _whole(view: ModelView) -> list[Block]:
    heads = (
        "target",
        "model",
        "level",
        "",
        "from the CPU",
        "from off",
        "rounding",
        "nodes",
        "elsewhere",
        "without",
    )
    rows: list[Row] = [
        (
            *(each.target, each.model, each.level),
            _state(each),
            *(_number(each.apart), _number(each.moved), _number(each.noise), f"{each.nodes:,}"),
            Span(", ".join(f"{name} {number}" for name, number in each.elsewhere.items()), "warn"),
            Span(", ".join(each.culprit), "soft"),
        )
        for each in view.report.whole
    ]
    note = Span(
        "differences of outputs as parts of their largest element; rounding: of every weight and input",
        "soft",
    )
    return [Table(heads, rows, range(4, 8), grouped=True), Paragraph(note)]


def _state(each: WholeRun) -> Span:
    if each.wrong:
        return Span("does not run" if each.error else "wrong", "bad")
    return Span("moves", "warn") if each.moves else Span("runs", "good")


def _regions(view: ModelView) -> Table:
    """Count by what became of what: distinct regions, their places, and the results at all levels."""
    alike: dict[tuple[str, str], list[RegionRow]] = {}
    for region in view.report.regions:
        for target, text in region.made.items():
            alike.setdefault((text, target), []).append(region)
    rows: list[Row] = []
    for (text, target), regions in sorted(alike.items()):
        results = [each for region in regions if (each := view.results.get((target, region.case)))]
        counted = Counter(each.reading.value for each in results)
        said = ", ".join(f"{name} {number}" for name, number in counted.items())
        bad = any(each.reading in DEFECTS for each in results)
        places = sum(len(region.places) for region in regions)
        rows.append((text, target, f"{len(regions):,}", f"{places:,}", Span(said, "bad" if bad else "")))
    return Table(("region", "target", "distinct", "places", "as optimised"), rows, (2, 3), grouped=True)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}" if value else "0"


def _operators(view: ModelView, occurring: Sequence[str]) -> Table:
    heads = ("operator", "target", "nodes", "calls", *occurring)
    rows: list[Row] = [
        (
            *(each.operator, each.target, f"{each.nodes:,}", f"{each.calls:,}"),
            *(
                Span(f"{each.verdicts[name]:,}" if each.verdicts[name] else "", _STYLES.get(name, ""))
                for name in occurring
            ),
        )
        for each in view.counts()
    ]
    return Table(heads, rows, range(2, len(heads)), grouped=True)


def _levels(view: ModelView) -> Table:
    rows: list[Row] = []
    for level in view.levels:
        allowed = view.allowed(level)
        refused = Counter(
            view.report.calls[node.call].operator
            for node, fits in zip(view.report.nodes, allowed, strict=True)
            if not fits
        )
        rows.append(
            (
                *(level, f"{sum(allowed):,}", f"{len(allowed) - sum(allowed):,}"),
                f"{view.transfers(allowed):,}",
                ", ".join(f"{operator} {number}" for operator, number in refused.most_common(8)),
            )
        )
    return Table(("level", "nodes", "to the CPU", "transfers", "not allowed"), rows, (1, 2, 3))


def _unjudged(view: ModelView) -> Table:
    compared: dict[int, list[str]] = {}
    for each in view.report.compared:
        said = (
            line(each.error, 60)
            if each.apart is None
            else f"differs by {each.apart:.1e}"
            if each.apart
            else "equal"
        )
        compared.setdefault(each.call, []).append(f"{each.target}: {said}")
    rows: list[Row] = [
        (row.text, f"{view.uses[number]:,}", row.why, "; ".join(compared.get(number, [])))
        for number, row in enumerate(view.report.calls)
        if not row.case
    ]
    return Table(("call", "nodes", "why", "compared with the unoptimised CPU run, not judged"), rows, (1,))


def _grown(view: ModelView) -> Table:
    """Return where the error first exceeds each power of ten."""
    rows: list[Row] = []
    for target, errors in view.report.growth.items():
        passed = 1e-7
        for node, error in zip(view.report.nodes, errors, strict=False):
            if error is not None and error > passed:
                rows.append((target, view.report.calls[node.call].operator, node.name, f"{error:.1e}"))
                passed = max(passed, error) * 10
    return Table(("target", "operator", "node", "difference"), rows, (3,), grouped=True)


def model_data(view: ModelView) -> dict[str, Any]:
    """Return the JSON document: the report, and what became of each call."""
    data: dict[str, Any] = msgspec.to_builtins(view.report)
    data["summary"] = sentence(view)
    data["verdicts"] = {
        target: [view.verdict(target, call) for call in range(len(view.report.calls))]
        for target in view.targets
    }
    data["wrong"] = {
        target: [name for call in view.wrong_calls(target) for name in view.nodes_of(call)]
        for target in view.targets
    }
    return data
