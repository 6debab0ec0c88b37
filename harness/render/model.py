"""What became of a model on targets, as a document and as data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.model.header import Expectation
from harness.model.reference.feature_levels import level_key
from harness.model.result import NOT_EXPRESSIBLE, Diff, Error, Result
from harness.model.target_info import DML, REPRODUCED, TargetInfo
from harness.model.verdict import DEFECTS, Reading
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
from harness.render.text import line, node_name
from harness.results.defects import release_words, releases
from harness.results.model_report import ENDLESS, DefectOfCalls, ModelView, RegionRow, WholeRun
from harness.results.summary import count, some
from harness.results.support import LOWERS_TO_DIRECTML

_REPORTED = ("-o", "bug", "--redraw", "--reduce")
_NODES, _INPUTS = 3, 12
_STYLES: dict[str, Style] = {"wrong": "bad", "crashed": "bad", "accepted": "warn", "not supported": "warn"}
_VERDICTS = ("correct", "wrong", "crashed", "accepted", "not supported", "not judged", "compared")


def model_document(view: ModelView) -> Document:
    """Show the finding in a sentence, the defects, the counts, the whole model, and the graph."""
    report = view.report
    remarks = [*report.ended, *report.remarks]
    if report.drawn:
        sizes = "".join(f", {name}={size}" for name, size in report.sizes.items())
        drawn = ", ".join(report.drawn) if len(report.drawn) <= _INPUTS else count(len(report.drawn), "input")
        remarks.append(f"inputs drawn with seed {report.seed}: {drawn}{sizes}")
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
    """Return the finding: the targets on which the models run whole and correctly, and the defects on the
    others."""
    right, other = [], []
    for target in view.targets:
        if (missing := view.header.targets[target].unavailable) is not None:
            other.append(f"{target} is not available: {line(missing, 80)}")
            continue
        wrong, levels = view.wrong_calls(target), view.wrong_levels(target)
        if wrong:
            first, nodes = view.nodes_of(wrong[0]), sum(view.uses[call] for call in wrong)
            more = f" and {nodes - 1:,} more" if nodes > 1 else ""
            verb = "are" if more else "is"
            worst = "wrong" if view.verdict(target, wrong[0]) == "wrong" else "wrong or end the process"
            size = _by_how_much(view.results.get((target, view.report.calls[wrong[0]].case)))
            known = _all_known(view, target, [view.report.calls[call].case for call in wrong])
            other.append(f"on {target} node {node_name(first[0])}{more} {verb} {worst}{size}{known}")
        if levels:
            by_model: dict[tuple[str, str, str], list[str]] = {}
            for each in levels:
                without = f", right without {' and '.join(each.culprit)}" if each.culprit else ""
                key = each.model, "does not run" if each.error else "is wrong", without
                by_model.setdefault(key, []).append(each.level)
            for (model, what, without), at in by_model.items():
                other.append(f"on {target} the whole of {model} {what} at {', '.join(at)}{without}")
        fused = view.wrong_regions(target)
        made = [each for each in fused if not view.wrong_nodes(target, each)]
        if made:
            what = count(len(made), "region")
            known = _all_known(view, target, [each.case for each in made])
            other.append(f"on {target} the optimizer makes {what} wrong{known}: {made[0].made[target]}")
        if others := len(fused) - len(made):
            verb = "are" if others > 1 else "is"
            other.append(f"{count(others, 'fused region')} of such nodes {verb} wrong as well")
        if against := view.against_entries(target):
            what = count(len(against), "case")
            other.append(f"on {target} {what} {'are' if len(against) > 1 else 'is'} correct against an entry")
        if not wrong and not levels and not fused:
            counted = Counter(view.verdicts(target))
            if not view.judged(target):
                other.append(f"on {target} nothing is judged")
                continue
            lacks = counted["not supported"]
            without = f" (without {count(lacks, 'call')} that it does not support)" if lacks else ""
            right.append(f"{target}{without}")
    if view.report.ended:
        ended = len(view.report.ended)
        other.append(f"{count(ended, 'model')} {'do' if ended > 1 else 'does'} not run on the CPU")
    models = [name.rpartition("/")[2] for name in view.report.models]
    names = some(models, _NODES)
    said = [f"{names}: right on {', '.join(right)}"] if right else [names]
    return ("; " if right else ": ").join([*said, *(["; ".join(other)] if other else [])])


def _all_known(view: ModelView, target: str, cases: Sequence[str]) -> str:
    """Say that entries expect the results of cases, if they expect all of them."""
    results = [view.results.get((target, case)) for case in cases]
    return ", as known" if all(each and view.known(each) for each in results) else ""


def _by_how_much(result: Result | None) -> str:
    if result is None or not isinstance(result.diff, Diff):
        return ""
    error = result.diff.largest_error
    return f" by {error:.2g}" if isinstance(error, float) else ""


def _sections(view: ModelView) -> Iterator[Section]:
    report = view.report
    by_target = {target: Counter(view.verdicts(target)) for target in view.targets}
    occurring = [each for each in _VERDICTS if any(counted[each] for counted in by_target.values())]
    heads = ("target", "nodes", "calls", *occurring)
    rows: list[Row] = [
        (target, f"{len(report.nodes):,}", f"{len(report.calls):,}", *_counted(counted, occurring))
        for target, counted in by_target.items()
    ]
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
        yield Section("levels", "DirectML by feature level: documented, registered, measured", _levels(view))
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
        alike: dict[object, list[int]] = {}
        for call in view.calls_that(target, "crashed", "wrong", "accepted", "not supported"):
            if (result := view.results.get((target, view.report.calls[call].case))) is not None:
                alike.setdefault(_what(view, call, result), []).append(call)
        for calls in alike.values():
            yield _finding(view, target, calls)
        for region in view.wrong_regions(target):
            result = view.results[target, region.case]
            culprit = result.culprit if isinstance(result.culprit, tuple) else ()
            remarks = [Remark(f"nodes: {', '.join(map(node_name, region.places[0]))}{_more_places(region)}")]
            remarks.append(Remark("; ".join(details(result))))
            remarks += [Remark(f"right without {' and '.join(culprit)}")] if culprit else []
            own = view.wrong_nodes(target, region)
            remarks += (
                [Remark(f"wrong without optimisation: {', '.join(map(node_name, own))}")] if own else []
            )
            known = view.known(result)
            remarks += [*_known_as(known), *_bug_report(view, target, region.case)]
            head = f"{region.made[target]} on {target}: {result.reading.value}"
            yield Item(head, remarks, region.case, "" if known is None else "known")
        yield from _failed(view, target)
        levels: dict[tuple[str, str, str], list[str]] = {}
        for each in view.wrong_levels(target):
            key = each.model, _moved(each), _blame(each)
            levels.setdefault(key, []).append(each.level)
        for (model, what, blame), at in levels.items():
            head = f"the whole of {model} on {target} at {', '.join(at)}: {what}"
            yield Item(head, [Remark(blame)] if blame else [])


def _failed(view: ModelView, target: str) -> Iterator[Item]:
    """Yield results that turn the run red although nothing is known to be wrong: the oracle failed, or an entry expects
    otherwise."""
    for (where, case), result in view.results.items():
        if where == target and result.reading is Reading.NOT_JUDGED and result.unexpected(baseline=False):
            yield Item(
                f"{case.partition('@')[0]} on {target}: not judged",
                [Remark("; ".join(details(result)))],
                case,
            )
    for result in view.against_entries(target):
        remarks = [Remark("an entry expects otherwise: end it, or narrow it"), *_known_as(view.known(result))]
        yield Item(f"{result.operator} on {target}: correct against an entry", remarks, result.case)


def _what(view: ModelView, call: int, result: Result) -> object:
    """Return what calls have in common that are one finding: those of an operator that one entry expects, or that are not
    supported for one reason."""
    known = view.known(result)
    if known is None and result.reading is not Reading.NOT_SUPPORTED:
        return call
    why = known.name if known else result.error.class_ if isinstance(result.error, Error) else ""
    return view.report.calls[call].operator, result.reading, why


def _finding(view: ModelView, target: str, calls: Sequence[int]) -> Item:
    call = calls[0]
    row, nodes = view.report.calls[call], [node_name(node) for each in calls for node in view.nodes_of(each)]
    result = view.results[target, row.case]
    known = view.known(result)
    remarks = [Remark(f"node{'s' * (len(nodes) > 1)}: {some(nodes, _NODES)}")]
    remarks.append(Remark("; ".join(details(result))))
    if inner := [name for each in calls for name in view.within(each, view.wrong_calls(target))]:
        remarks.append(Remark(f"wrong within: {some([node_name(each) for each in inner], _NODES)}"))
    remarks += _known_as(known)
    if not (isinstance(result.error, Error) and result.error.class_ == NOT_EXPRESSIBLE):
        remarks += _bug_report(view, target, row.case)
    others = f" and {count(len(calls) - 1, 'other call')} of {row.operator}" if len(calls) > 1 else ""
    head = f"{row.text}{others} on {target}: {view.verdict(target, call)}"
    return Item(head, remarks, row.case, "" if known is None else "known")


def _known_as(entry: Expectation | None) -> list[Remark]:
    if entry is None:
        return []
    return [Remark(f"known: {entry.name}: {entry.reason}", "soft", link=entry.link or "")]


def _bug_report(view: ModelView, target: str, case: str) -> list[Remark]:
    """Return the command for a report, none for a target that only the harness has."""
    if view.header.targets[target].provider not in REPRODUCED:
        return []
    command = ["harness", "repro", str(view.folder), case, "-t", target, *_REPORTED]
    return [Remark("bug report", case=shlex.join(command))]


def _known(found: Sequence[DefectOfCalls]) -> Items:
    return Items(
        [
            Item(
                f"{each.title}: {count(each.calls, 'call')} on {each.target}",
                [
                    Remark(line(each.reason, 1000), link=each.link),
                    Remark(release_words(*releases(each.releases)), "soft"),
                ],
                tag="" if each.holds else "not in this release",
            )
            for each in found
        ]
    )


def _more_places(region: RegionRow) -> str:
    more = len(region.places) - 1
    return f", and {count(more, 'like place')}" if more else ""


def _moved(each: WholeRun) -> str:
    if each.error:
        return line(each.error, 400)
    if each.far(each.repeats):
        return f"a second run in the same session {_off(each.repeats)}"
    if each.far(each.bound):
        return f"a run with inputs and outputs in memory of the device {_off(each.bound)}"
    if each.misfits:
        return "a run with free dimensions one larger, in the same session, gives what a session of its own does not"
    return f"outputs move by {each.moved:.2g} of the largest element; a rounding of all weights and inputs moves them by {each.noise:.2g}"


def _off(difference: float | None) -> str:
    """Say how far a run is off that is."""
    if difference is None or difference >= ENDLESS:
        return "gives other shapes, or numbers that are not finite"
    return f"is off by {difference:.2g} of the largest element"


def _blame(each: WholeRun) -> str:
    if each.culprit:
        return f"right without {' and '.join(each.culprit)}"
    if each.error:
        return ""
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
    several = len(view.report.models) > _NODES
    shown = [each for each in view.report.whole if each.wrong or each.moves or each.varies or not several]
    rows: list[Row] = [
        (
            *(each.target, each.model, each.level),
            _state(each),
            *(_number(each.apart), _number(each.moved), _number(each.noise), f"{each.nodes:,}"),
            Span(", ".join(f"{name} {number}" for name, number in each.elsewhere.items()), "warn"),
            Span(", ".join(each.culprit), "soft"),
        )
        for each in shown
    ]
    note = Span(
        "differences of outputs as parts of their largest element; rounding: of every weight and input",
        "soft",
    )
    blocks: list[Block] = [Table(heads, rows, range(4, 8), grouped=True), Paragraph(note)] if rows else []
    if others := len(view.report.whole) - len(shown):
        blocks.append(
            Paragraph(Span(f"{count(others, 'other level')} neither wrong nor moved nor varied", "soft"))
        )
    return blocks


def _state(each: WholeRun) -> Span:
    if each.wrong:
        return Span("does not run" if each.error else "wrong", "bad")
    if each.moves or each.varies:
        return Span("moves" if each.moves else "varies", "warn")
    return Span("runs", "good")


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
            *_counted(each.verdicts, occurring),
        )
        for each in view.counts()
    ]
    return Table(heads, rows, range(2, len(heads)), grouped=True)


def _counted(verdicts: Counter[str], occurring: Sequence[str]) -> Iterator[Span]:
    for name in occurring:
        yield Span(f"{verdicts[name]:,}" if verdicts[name] else "", _STYLES.get(name, ""))


def _levels(view: ModelView) -> list[Block]:
    """Show the nodes that documents and registrations allow at each feature level, and the nodes that each
    DirectML target ran."""
    rows: list[Row] = []
    for level in sorted({*view.levels, *view.report.releases}, key=level_key):
        release = view.report.releases.get(level)
        allowed = view.allowed(level)
        kernels = None if release is None else view.registered(TargetInfo(DML, onnxruntime=release))
        both = allowed if kernels is None else [a and b for a, b in zip(allowed, kernels, strict=True)]
        rows.append(
            (
                *(level, release or "", f"{sum(allowed):,}", "" if kernels is None else f"{sum(kernels):,}"),
                *(f"{len(both) - sum(both):,}", f"{view.transfers(both):,}"),
                view.operators_where(not each for each in both),
            )
        )
    heads = (
        "level",
        "onnxruntime",
        "documents",
        "kernels",
        "to the CPU",
        "transfers",
        "operators on the CPU",
    )
    blocks: list[Block] = [Table(heads, rows, range(2, 6))]
    rows = []
    for target in view.targets:
        info = view.header.targets[target]
        if info.provider not in LOWERS_TO_DIRECTML or info.unavailable or info.max_feature_level is None:
            continue
        allowed, ran = view.allowed(info.max_feature_level), view.ran(target)
        kernels = view.registered(info) if info.provider == DML else None
        rows.append(
            (
                *(target, info.max_feature_level, f"{sum(allowed):,}"),
                *(
                    "" if kernels is None else f"{sum(kernels):,}",
                    f"{sum(ran):,}",
                    f"{view.transfers(ran):,}",
                ),
                Span(view.operators_where(a and not b for a, b in zip(allowed, ran, strict=True)), "warn"),
                view.operators_where(b and not a for a, b in zip(allowed, ran, strict=True)),
            )
        )
    columns = (
        "target",
        "level",
        "documents",
        "kernels",
        "ran",
        "transfers",
        "documented, did not run",
        "ran, not documented",
    )
    return [*blocks, *([Table(columns, rows, range(2, 6))] if rows else [])]


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
                rows.append(
                    (target, view.report.calls[node.call].operator, node_name(node.name), f"{error:.1e}")
                )
                passed = max(passed, error) * 10
    return Table(("target", "operator", "node", "difference"), rows, (3,), grouped=True)


def model_data(view: ModelView) -> dict[str, Any]:
    """Return the JSON document: the report, and what became of each call."""
    data: dict[str, Any] = msgspec.to_builtins(view.report)
    data["summary"] = " ".join(sentence(view).split())
    data["verdicts"] = {target: view.verdicts(target) for target in view.targets}
    data["wrong"] = {
        target: [name for call in view.wrong_calls(target) for name in view.nodes_of(call)]
        for target in view.targets
    }
    return data
