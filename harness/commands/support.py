"""`harness support`: answers in short whether the cases of a query are supported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from harness.commands.options import EXPECTATIONS, NamedPath, targets_option
from harness.commands.renderings import Renderings
from harness.model.case import Case
from harness.model.errors import UsageError
from harness.model.header import SCHEMA, Header
from harness.model.query import Query
from harness.model.result import Result
from harness.model.target_info import CPU, DIRECTML, DML, TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.render.support_answer import support_data, support_document
from harness.results.runfile import RunReader, run_file
from harness.results.support_answer import SupportAnswer, SupportRow, measured_rows, planned_rows
from harness.results.tables import Tables, tabulate
from harness.specs.expectations.expectations import Expectations, load_expectations
from harness.targets.registry import parse_targets
from harness.targets.target import Target
from harness.targets.windows import releases

LATEST = Path("reports") / "latest"
RENDERINGS = Renderings(support_document, support_data)
_DEFAULT = ("cpu", "dml")


@click.command("support")
@click.argument("asked", metavar="QUERY")
@click.argument("runs", nargs=-1, type=NamedPath(), metavar="[RUN]...")
@targets_option(
    "cpu, dml, cpu@ort-1.22.1, dml@levels …; repeatable (default: those of the runs, else cpu and dml)."
)
@EXPECTATIONS
@RENDERINGS.options
def support_command(
    asked: str,
    runs: tuple[Path, ...],
    targets: tuple[str, ...],
    expectations: tuple[Path, ...],
    format_: str,
    output: Path | None,
) -> None:
    """Say whether the cases of QUERY are supported: documented, registered, measured, known defects, since when.

    QUERY names an operator, for instance 'Conv:X=float16'. Measured is what the RUNs hold (default: reports/latest if
    it is there). Of other targets the tables of documents and kernels and the expectations alone say something: nothing
    is run. Exit code 0: answered; 4: no case matches.
    """
    query = Query.parse(asked)
    if query.operator is None:
        raise UsageError(f"{asked}: name an operator, for instance 'Conv:{asked}'")
    given = runs or ((LATEST,) if run_file(LATEST).exists() else ())
    wanted = parse_targets(targets) if targets else ()
    names = {target.name for target in wanted}
    rows = [row for run in given for row in _measured(run, query) if not names or row.target in names]
    missing = [
        target
        for target in wanted or parse_targets(_DEFAULT * (not rows))
        if target.name not in {row.target for row in rows}
    ]
    if missing:
        rows += _planned(query, missing, load_expectations(expectations))
    order = {target.name: place for place, target in enumerate(wanted)}
    rows.sort(key=lambda row: (row.operator, order.get(row.target, -1)))
    RENDERINGS.show(SupportAnswer(query.text, tuple(rows)), format_, output)


def _measured(run: Path, query: Query) -> list[SupportRow]:
    """Return the rows of a run about the cases, none if it has none of them."""
    reader = RunReader(run)
    tables = Tables(reader.header, across_targets=False)
    for result in reader:
        if query.matches(result.case):
            tables.add(result)
    tables.finish(reader.end, truncated=reader.truncated)
    return measured_rows(tables, str(run))


def _planned(query: Query, targets: list[Target], known: Expectations) -> Iterator[SupportRow]:
    """Yield what tables and entries say of the cases on targets that no run has."""
    from harness import api

    cases = list(api.load(queries=[query.text]))
    for target in targets:
        info = _info(target)
        results = [_not_run(case, target.name) for case in cases]
        header = Header(SCHEMA, "planned", "", 0, {}, {target.name: info})
        yield from planned_rows(tabulate(header, results, None), known.defects(target.name, info, cases))


def _not_run(case: Case, target: str) -> Result:
    return Result(
        case.id, case.operator, target, case.validity, dict(case.levels), Outcome.NOT_RUN, Verdict.MISSING
    )


def _info(target: Target) -> TargetInfo:
    """Return the facts about a target that are known without starting it."""
    if target.provider in (DML, DIRECTML):
        row = releases.release(target.release)
        return TargetInfo(
            target.provider, onnxruntime=row.onnxruntime, directml=row.directml, max_feature_level=row.level
        )
    if target.provider != CPU:
        raise UsageError(f"{target.name}: no table says what this provider has; name a run of it")
    release = target.release
    with suppress(PackageNotFoundError):
        release = release or version("onnxruntime")
    return TargetInfo(CPU, onnxruntime=release)
