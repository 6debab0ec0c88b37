"""Compares two runs as columns: DuckDB joins them by case and target, and only rows that differ in what is compared become
results again, which Python then judges.

Keys of both runs lie in memory or in a temporary file. What differs is read some at a time.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.model.result import NOT_EXPRESSIBLE, Result, inexpressible
from harness.model.verdict import NOT_EXECUTED, Outcome
from harness.results.columns import Dataset, RunColumns, sql_text
from harness.results.compare.comparison import (
    Change,
    Changed,
    ComparedResult,
    Comparison,
    classify,
    compared_result,
)
from harness.results.counted import HEADER, count_columns
from harness.results.runfile import RunReader

_COMPARED = 'validity, outcome, stage, error."class", function_nodes, diff, repeats'
"""What `compared_result` is made of, beside where a node was placed: rows alike in it are equal results."""
_EXECUTED, _NEITHER, _INEXPRESSIBLE = 0, 1, 2


def compare_runs(base: RunReader, head: RunReader) -> Comparison:
    """Compare two runs, as far as they go. Errors: UsageError for a damaged run, a case that occurs twice, or
    no target in common."""
    comparison = Comparison(base.header, head.header)
    with Dataset("compare", scanned=True) as data:
        sides: list[_Side] = []
        for run, tables in ((base, comparison.base), (head, comparison.head)):
            with data.part(run) as part:
                sides.append(_Side(run, part, [pair[len(sides)] for pair in comparison.pairs]))
            count_columns(run, part, tables)
        _join(comparison, *sides)
    return comparison


class _Side(NamedTuple):
    """One of the two runs, and its targets in the order of the pairs."""

    run: RunReader
    part: RunColumns
    targets: list[str]

    def result(self, row: int, line: bytes) -> Result:
        return self.run.result(row + HEADER, line)

    def compared(self, row: int, line: bytes) -> tuple[Result, ComparedResult, int | None]:
        """Return a result, what of it is compared, and its ULP distance."""
        found = self.result(row, line)
        did = compared_result(found, self.run.header.targets[found.target].provider)
        return found, did, None if found.diff is None else found.diff.max_ulp

    @property
    def keyed(self) -> str:
        """Return a SELECT of the results that are compared: `key`, `place` of the pair, `did` for what is compared,
        `code` for what it counts as where that is the same, `row`. Keys are of MD5, since DuckDB's `hash` gives one
        number to texts that differ in two digits."""
        infos = self.run.header.targets
        place = " ".join(f"WHEN {sql_text(name)} THEN {place}" for place, name in enumerate(self.targets))
        own = " ".join(
            f"WHEN {sql_text(name)} THEN {sql_text(infos[name].provider)}" for name in self.targets
        )
        absent = ", ".join(sql_text(each.value) for each in NOT_EXECUTED)
        return f"""
            SELECT md5_number_lower(concat(place, "case")) AS key, place, row,
                md5_number_lower(row({_COMPARED}, nullif(placed_on, CASE target {own} END), placed_on IS NULL)::VARCHAR) AS did,
                CASE WHEN outcome = '{Outcome.NOT_RUN.value}' AND error."class" IS NOT DISTINCT FROM '{NOT_EXPRESSIBLE}'
                THEN {_INEXPRESSIBLE} WHEN outcome IN ({absent}) THEN {_NEITHER} ELSE {_EXECUTED} END AS code
            FROM (SELECT *, CASE target {place} END AS place FROM ({self.part.numbered})) WHERE place IS NOT NULL"""


def _join(comparison: Comparison, base: _Side, head: _Side) -> None:
    """Count the results that are the same, and judge the others in the order of HEAD, then of BASE. Errors:
    UsageError."""
    sql = base.part.sql
    for name, side in (("base", base), ("head", head)):
        sql.execute(f"CREATE TABLE {name} AS {side.keyed}")
        _once(name, side)
    same = "SELECT place, code, count(*) FROM base JOIN head USING (key, place, did, code) GROUP BY ALL"
    for place, code, number in sql.execute(same).fetchall():
        counts = comparison.counts[comparison.pairs[place]]
        counts.equal += number * (code == _EXECUTED)
        counts.neither += number * (code == _NEITHER)
    sql.execute(f"""
        CREATE TABLE differing AS
        SELECT coalesce(head.place, base.place) AS place, base.row AS of_base, head.row AS of_head,
            row_number() OVER (ORDER BY of_head NULLS LAST, of_base) - 1 AS n
        FROM base FULL JOIN head ON base.key = head.key WHERE base.did IS DISTINCT FROM head.did
        AND NOT (base.key IS NULL AND head.code != {_EXECUTED}) AND NOT (head.key IS NULL AND base.code != {_EXECUTED})""")
    before = base.part.taken("differing", "of_base", "of_base")
    after = head.part.taken("differing", "of_head", "of_head")
    for place, of_base, of_head in head.part.ask("SELECT place, of_base, of_head FROM differing ORDER BY n"):
        was, did_before, ulp_before = base.compared(*next(before)) if of_base is not None else (None,) * 3
        now, did_after, ulp_after = head.compared(*next(after)) if of_head is not None else (None,) * 3
        change: Change | None
        if did_before is not None and did_after is not None:
            grew = ulp_before is not None and ulp_after is not None and ulp_after > ulp_before
            change, why = classify(did_before, did_after, ulp_grew=grew)
        else:
            change, why = Change.MISSING if now is None else Change.NEW, ()
        pair, result = comparison.pairs[place], now or was
        assert result is not None
        if change is not None:
            comparison.add(Changed(change, pair, result, did_before, did_after, ulp_before, ulp_after, why))
        elif result.outcome in NOT_EXECUTED:
            comparison.counts[pair].neither += not inexpressible(result)
        else:
            comparison.counts[pair].equal += 1


def _once(name: str, side: _Side) -> None:
    """Raise UsageError for a case that is in a run twice on one target."""
    sql = side.part.sql
    if not sql.execute(f"SELECT count(*) - count(DISTINCT key) FROM {name}").fetchone()[0]:
        return
    numbers = f"SELECT row, row_number() OVER (PARTITION BY key ORDER BY row) AS number FROM {name}"
    (row,) = sql.execute(f"SELECT min(row) FROM ({numbers}) WHERE number > 1").fetchone()
    ((line,),) = sql.execute(
        f"SELECT {side.part.line} FROM ({side.part.numbered}) AS results WHERE row = {row}"
    ).fetchall()
    raise side.run.twice(row + HEADER, side.result(row, line))
