"""Writes `docs/errata.md`: where Microsoft's documents contradict themselves, and where a DLL differs from
them, each with a command.

    python -m tools.errata RUN > docs/errata.md

Derived from a run on `directml`, the data files and the reviewed expectations alone; the same run gives the
same page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.query import Query
from harness.model.reference.feature_levels import load
from harness.model.result import Result, inexpressible
from harness.model.target_info import DIRECTML, TargetInfo
from harness.model.verdict import conforms
from harness.render.directml import did_text
from harness.render.markup import code, escape, table
from harness.render.text import line
from harness.results.requirements import ObservedResult, Rules, Side, Tested
from harness.results.runfile import RunReader
from harness.results.tensor_support import Status, SupportCell, TensorSupport
from harness.specs.expectation_entry import Entry
from harness.specs.expectations import Expectations, load_expectations
from tools.doc_page import print_page


class Erratum(NamedTuple):
    """A contradiction within the documents; `follows` are cases that keep to `but`, `refutes` those that keep
    to `says`."""

    document: str
    says: str
    but: str
    follows: tuple[Query, ...]
    refutes: tuple[Query, ...]


def errata() -> tuple[Erratum, ...]:
    """Return the contradictions that `data/directml_errata.yaml` records."""
    return tuple(
        Erratum(
            each["document"],
            each["says"],
            each["but"],
            *(tuple(map(Query.parse, each[side])) for side in ("follows", "refutes")),
        )
        for each in load("directml_errata.yaml")
    )


class Known(NamedTuple):
    """A reviewed difference with how many cases of the run show it, and one of them."""

    entry: Entry
    cases: int
    example: str


class Measured:
    """What one target of a run did: the results that errata and rules name, and the calls that it took."""

    def __init__(self, run: Path, expectations: Expectations) -> None:
        """Read a run. Errors: UsageError, also for a run without a target that is DirectML's own API."""
        reader = RunReader(run)
        targets = [
            target
            for target, info in reader.header.targets.items()
            if info.provider == DIRECTML and info.unavailable is None
        ]
        if not targets:
            raise UsageError(
                f"{reader.path}: no target of this run is DirectML's own API; run: harness run -t directml"
            )
        self.target = targets[0]
        self.info: TargetInfo = reader.header.targets[self.target]
        self.errata = errata()
        rules, support = Rules(), TensorSupport(reader.header)
        wanted = {
            query.text: query for erratum in self.errata for query in (*erratum.follows, *erratum.refutes)
        }
        self._by_query: dict[str, list[Result]] = {text: [] for text in wanted}
        reviewed = expectations.for_target(self.target, self.info)
        shown: dict[str, Known] = {}
        for result in reader:
            if result.target != self.target or inexpressible(result):
                continue
            rules.add(result)
            support.add(result)
            if (
                not conforms(result.validity, result.outcome)
                and (
                    entry := reviewed.entry(
                        result.case,
                        beyond=result.beyond,
                        outcome=result.outcome,
                        allows=reviewed.named(result.expectation),
                    )
                )
                is not None
            ):
                title = entry.title or entry.reason
                before = shown.get(title, Known(entry, 0, result.case))
                shown[title] = Known(
                    entry,
                    before.cases + 1,
                    min(before.example, result.case, key=lambda case: (len(case), case)),
                )
            for text, query in wanted.items():
                if query.matches(result.case):
                    self._by_query[text].append(result)
        self.known = sorted(shown.values(), key=lambda known: (known.entry.expect.value, -known.cases))
        self.rules = rules.tested()
        self.cells = support.cells(self.target)

    def of(self, queries: Iterable[Query]) -> list[Result]:
        """Return the results of the cases that queries name."""
        return [result for query in queries for result in self._by_query[query.text]]


def page(measured: Measured) -> Iterator[str]:
    """Yield the lines of the page."""
    info = measured.info
    yield "# Errata of Microsoft's DirectML documents\n"
    yield "Generated by `python -m tools.errata`; do not edit. Documents: GATHER_ELEMENTS, GATHER_ND, GATHER_ND1, ELEMENT_WISE_ROUND and"
    yield "BUFFER_TENSOR, in the revisions that `harness/model/data/directml.yaml` names.\n"
    facts = (
        ("DirectML", info.directml),
        ("feature level", info.max_feature_level),
        ("adapter", info.adapter),
        ("platform", info.platform),
    )
    yield f"Measured on {', '.join(f'{name} {escape(value)}' for name, value in facts if value)}.\n"
    yield "## Documents that contradict themselves\n"
    for number, erratum in enumerate(measured.errata, start=1):
        yield from _erratum(number, erratum, measured)
    yield "## Documents and DLL differ\n"
    found = [line for each in measured.rules for line in _differs(each)]
    yield from found or ["Nowhere: every valid call passes, every invalid one is refused.\n"]
    yield from _cells(measured.cells)
    yield "## What is known of the differences, ONNX included\n"
    for known in measured.known:
        yield from _known(known)
    yield "## What the documents leave open, and what the DLL does\n"
    rows = [row for each in measured.rules for row in _open(each)]
    yield from table(
        ["document", "sentence", "cases", "the DLL", "command"], dict.fromkeys(map(tuple, rows)), right=(2,)
    )


def _erratum(number: int, erratum: Erratum, measured: Measured) -> Iterator[str]:
    yield f"### {number}. {erratum.document}\n"
    yield f"- It says: {escape(erratum.says)}"
    yield f"- But: {escape(erratum.but)}"
    for words, queries in (
        ("A call that keeps to the second", erratum.follows),
        ("A call that keeps to the first", erratum.refutes),
    ):
        if queries:
            yield f"- {words}: {_summary(measured.of(queries))}"
            yield f"  {command(query.text for query in queries)}"
    yield ""


def _summary(results: list[Result]) -> str:
    counts: dict[str, int] = {}
    for result in results:
        level = result.levels.get("directml", "")
        text = did_text(
            ObservedResult(
                result.validity,
                result.outcome,
                result.stage or "",
                result.error.class_ if result.error else "",
            )
        )
        text += (
            f" (first allowed by feature level {level})"
            if level and result.validity is Validity.VALID
            else ""
        )
        counts[text] = counts.get(text, 0) + 1
    return escape("; ".join(f"{number:,} × {text}" for text, number in counts.items())) or "not run"


def command(queries: Iterable[str]) -> str:
    """Write the command that shows the cases of queries."""
    return code(" ".join(["harness run -t directml", *(f"-k {_quoted(query)}" for query in queries)]))


def _quoted(text: str) -> str:
    return f'"{text}"' if set(text) & set(";*?[] ") else text


def _differs(tested: Tested) -> Iterator[str]:
    """Yield an entry for each way in which the DLL contradicts a sentence."""
    for words, side in (("calls that keep it", tested.holds), ("calls that break it", tested.breaks)):
        for did in side.contradicts:
            yield f"- **{tested.rule.document}, {escape(tested.rule.section)}**: {escape(tested.rule.sentence)}"
            yield f"  Of the {words}, {side.counts[did]:,} of {_ran(side):,}: {escape(did_text(did))}."
            yield f"  {command([side.examples[did]])}\n"


def _known(known: Known) -> Iterator[str]:
    entry = known.entry
    yield f"- **{escape(entry.title or entry.reason)}** ({known.cases:,} × {entry.expect.value}). {escape(entry.reason)}"
    if entry.documents:
        yield f"  The documents: {escape(entry.documents)}"
    yield f"  {command([known.example])}\n"


def _ran(side: Side) -> int:
    return sum(side.counts.values())


def _cells(cells: Iterable[SupportCell]) -> Iterator[str]:
    cells = list(cells)
    known = [cell for cell in cells if cell.status in (Status.REJECTED, Status.ACCEPTED)]
    counts = {status: sum(cell.status is status for cell in cells) for status in Status}
    yield f"Of the {len(cells):,} cells of operator × tensor × data type × DimensionCount (1 to 9): "
    yield "; ".join(f"{number:,} {status.value}" for status, number in counts.items()) + ".\n"
    for cell in known:
        assert cell.result is not None
        yield f"- {cell.key.operator} {cell.key.tensor} {cell.key.dtype} × {cell.key.rank}: {cell.status.value}"
        yield f"  {command([cell.result.case])}\n"


def _open(tested: Tested) -> Iterator[list[str]]:
    for side in (tested.holds, tested.breaks):
        for did, count in side.counts.items():
            if did.validity is Validity.UNSPECIFIED:
                document, sentence = tested.rule.document, f"{tested.rule.section}: {tested.rule.sentence}"
                example = command([side.examples[did]])
                yield [document, escape(line(sentence, 400)), f"{count:,}", escape(_means(did)), example]


def _means(did: ObservedResult) -> str:
    words = {
        "pass": "gives the oracle's result",
        "mismatch": "gives another result than the oracle",
        "accepted_invalid": "gives some result without an error",
    }
    return words.get(did.outcome.value, did_text(did))


def main(arguments: Sequence[str]) -> int:
    """Print the page for a run."""
    return print_page(
        arguments, "python -m tools.errata RUN", (1,), lambda run: page(Measured(run, load_expectations()))
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
