"""Counts the results of a run: each line by itself, or of columns one result and its number in place of all that are
counted alike.

Results that a report shows one by one are read by themselves: those that are wrong or not as expected, and those of
cases on which targets differ. Of the others memory and time grow with their variety, not with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from msgspec import UNSET

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.result import Result
from harness.model.verdict import DEFECTS, NOT_EXECUTED, Outcome, Verdict
from harness.results import columns
from harness.results.columns import Dataset, RunColumns, rows_of, sql_text
from harness.results.cross_check import CheckedResult, CrossCheck
from harness.results.runfile import RunReader, miscounted
from harness.results.tables import Tables

LONG = 10 << 20
"""Bytes of a run file from which its reports take several seconds, and columns beside it save more than they take."""
HEADER = 2
"""The line of a run file's first result."""
_BASIC = """target, operator, validity, levels::VARCHAR, outcome, verdict, reading, placed_on, error."class", memory.outside > 0,
    function_nodes IS NULL, expectation"""
"""What tables count of a result by operator, target, level and validity."""
_VARIANT = """if(contains("case", ';variant='), regexp_extract("case", ';variant=([^;]*)', 1), '')"""
_ALIKE = f"""{_BASIC}, starts_with("case", operator || '@'), opset, inputs, uses, call, error."by", empty, accuracy IS NULL,
    accuracy.unclaimed < accuracy.compared,
    {_VARIANT}"""
"""What reports count of a result: those alike in it are counted together."""
_Take = Callable[[Result, int, int, int], None]
"""Takes a result, its kind and state as `Tables.add` returns them, and how many results it stands for."""


def read_tables(run: RunReader) -> Tables:
    """Count a run file. Errors: UsageError for a damaged one."""
    tables = Tables(run.header)
    count(run, tables)
    return tables


def count(run: RunReader, tables: Tables, take: _Take | None = None, *, singly: int = 0) -> None:
    """Count the results of a run, each by itself if they are not more than `singly`. Errors: UsageError for a damaged
    run."""
    asked = columns.there(run.path) or (
        run.path.stat().st_size >= LONG and columns.newer(run) is not None and find_spec("duckdb")
    )
    if asked:
        with Dataset(f"{run.path}: cannot be counted", scanned=True) as data, data.part(run) as part:
            ((rows,),) = part.rows("count(*)")
            if rows > singly:
                count_columns(run, part, tables, take)
                return
    for result in run:
        counted = tables.add(result)
        if take is not None:
            take(result, *counted, 1)
    tables.finish(run.end, truncated=run.truncated)


def count_columns(
    run: RunReader, part: RunColumns, tables: Tables, take: _Take | None = None, *, shown: bool = True
) -> None:
    """Count the results of a run that columns hold; if none is `shown`, only by operator, target, level and validity,
    without reading ids. Errors: UsageError for damaged columns."""
    held = Counter[str]()
    several = tables.differences.needed
    cross_check, tables.cross_check = tables.cross_check, None  # a result would stand for others
    for number, row, line in _counted(part, several=several) if shown else _alike(part, _BASIC):
        result = run.result(row + HEADER, line)
        counted = tables.add(result, number)
        if take is not None:
            take(result, *counted, number)
        held[result.outcome.value] += number
        held[result.verdict.value] += number
    if part.end is not None and (why := miscounted(part.end, held)):
        raise UsageError(f"{run.path}: damaged columns: {why}")
    tables.cross_check = cross_check
    if shown and cross_check is not None and cross_check.pair is not None:
        whole = {short: name for name, short in tables.names.items()}
        provider, api = (whole[each] for each in cross_check.pair)
        _check_pair(part, cross_check, provider, api)
    tables.finish(part.end, truncated=part.cut)


def _check_pair(part: RunColumns, cross_check: CrossCheck, provider: str, api: str) -> None:
    """Hold the results of two targets against each other, case by case (`CrossCheck.add`)."""
    of = [
        f"any_value({field}) FILTER (target = {sql_text(name)}) AS {field}{place}"
        for place, name in enumerate((provider, api))
        for field in ("validity", "outcome", "output")
    ]
    rows = rows_of(
        part.sql,
        f"""
        SELECT operator, validity0, outcome0, output0 IS NULL, validity1, outcome1, output1 IS NULL,
            output0 IS NOT DISTINCT FROM output1, count(*), min(example)
        FROM (SELECT any_value(operator) AS operator, min("case") AS example, {", ".join(of)} FROM ({part.numbered})
            WHERE {columns.ASKED} AND {_VARIANT} = '' GROUP BY {columns.key('"case"')})
        WHERE outcome0 IS NOT NULL AND outcome1 IS NOT NULL GROUP BY ALL""",
    )
    for operator, *first, unset0, validity, outcome, unset1, same, number, example in rows:
        ours = CheckedResult(Validity(first[0]), Outcome(first[1]), UNSET if unset0 else "one")
        its = CheckedResult(
            Validity(validity), Outcome(outcome), UNSET if unset1 else "one" if same else "other"
        )
        cross_check.count(operator, ours, its, number, example)


def _counted(part: RunColumns, *, several: bool) -> Iterator[tuple[int, int, bytes]]:
    """Yield results in the order of the run: how many each stands for, its row, its line. Those that come nearest to
    their bounds are among them."""
    apart = [
        f"reading IN ({_texts(DEFECTS)})",
        f"verdict IN ({_texts(verdict for verdict in Verdict if verdict is not Verdict.EXPECTED)})",
    ]
    if several:
        case = columns.key('"case"')
        ran = f"SELECT * FROM ({part.numbered}) WHERE outcome NOT IN ({_texts(NOT_EXECUTED)})"
        part.sql.execute(
            f"CREATE OR REPLACE TABLE several AS SELECT {case} AS key FROM ({ran}) GROUP BY key HAVING min(outcome) != max(outcome)"
        )
        apart.append(f"{case} IN (FROM several)")
    yield from _alike(
        part, _ALIKE, " OR ".join(apart), "arg_max(row, accuracy.ratio), arg_max(row, accuracy.ulp)"
    )


def _alike(
    part: RunColumns, alike: str, apart: str = "false", nearest: str = "NULL"
) -> Iterator[tuple[int, int, bytes]]:
    """Yield one result for all that are alike and not `apart`, and the `nearest` of them, in the order of the run."""
    rows = f"SELECT *, {apart} AS apart FROM ({part.numbered})"
    # one thread meets rows in their order, and `arg_max` keeps the first of several
    part.sql.execute(f"""
        CREATE OR REPLACE TABLE counted AS WITH groups AS (
            SELECT count(*) AS number, min(row) AS first, list_distinct([first, {nearest}]) AS shown
            FROM ({rows}) WHERE NOT apart GROUP BY {alike}
        ), taken AS (
            SELECT 1 AS number, row FROM ({rows}) WHERE apart
            UNION ALL SELECT if(row = first, number - len(shown) + 1, 1), row FROM (SELECT *, unnest(shown) AS row FROM groups)
        )
        SELECT *, row_number() OVER (ORDER BY row) - 1 AS n FROM taken""")
    yield from part.taken("counted", "number, taken.row")


def _texts(words: Any) -> str:
    return ", ".join(sql_text(word.value) for word in words)
