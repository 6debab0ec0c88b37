"""Compares two runs as columns: DuckDB joins them by case and target, counts equal results, and groups the differing
ones. Python judges each group once, and reads the listed results.

Keys of both runs lie in memory or in a temporary file.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET

from harness.model.case import BEYOND
from harness.model.facets import facets
from harness.model.result import NOT_EXPRESSIBLE, Diff
from harness.model.signature import difference
from harness.model.verdict import NOT_EXECUTED, Outcome
from harness.results.columns import Dataset, RunColumns, key, rows_of, sql_text
from harness.results.compare.comparison import (
    KEEP,
    OWN,
    Change,
    Changed,
    ChangeGroup,
    ChangeKind,
    ComparedResult,
    Comparison,
    classify,
)
from harness.results.counted import HEADER, count_columns
from harness.results.runfile import RunReader
from harness.results.unexpected import clipped

_TEXTS = ("validity", "outcome", "stage", 'error."class"')
_STRUCTS = ("diff", "repeats")
"""What is compared, beside where a node was placed: rows alike in both are equal results."""
_DIFFERENCE = """CASE WHEN diff IS NULL THEN '' WHEN diff.expected IS NOT NULL AND diff.actual IS NOT NULL
    THEN difference(diff.first_index IS NULL, diff.expected, diff.actual, diff.error, diff.bound) ELSE 'damaged' END"""
_EXECUTED, _NEITHER, _INEXPRESSIBLE, _DAMAGED = 0, 1, 2, 3


_FLAKY = "coalesce(len(list_filter(map_keys(repeats.outcomes), lambda each: each != outcome)) > 0, false)"


def compare_runs(base: RunReader, head: RunReader) -> Comparison:
    """Compare two runs, as far as they go. Errors: UsageError for a damaged run, a case that occurs twice, or
    no target in common."""
    comparison = Comparison(base.header, head.header)
    with Dataset("compare", scanned=True) as data:
        data.sql.execute("SET threads = 2")  # what is asked here does not depend on the order of rows
        sides: list[_Side] = []
        for run, tables in ((base, comparison.base), (head, comparison.head)):
            with data.part(run) as part:
                sides.append(_Side(run, part, [pair[len(sides)] for pair in comparison.pairs]))
            count_columns(run, part, tables, shown=False)
        base_side, head_side = sides
        _join(comparison, base_side, head_side)
        _show(comparison, base_side, head_side, _judge(comparison, base_side, head_side))
    return comparison


class _Side(NamedTuple):
    """One of the two runs, and its targets in the order of the pairs."""

    run: RunReader
    part: RunColumns
    targets: list[str]

    @property
    def keyed(self) -> str:
        """Return a SELECT of the compared results: `key`, `place` of the pair, `facts` for what is compared, `code`
        for the counter of equal results, `row`. Results of other targets are included if they are damaged."""
        place = " ".join(f"WHEN {sql_text(name)} THEN {place}" for place, name in enumerate(self.targets))
        whole = """starts_with("case", operator || '@')"""
        absent = ", ".join(sql_text(each.value) for each in NOT_EXECUTED)
        texts = (
            *_TEXTS,
            f"nullif(placed_on, {self.own})",
            *(f"if({each} IS NULL, NULL, {each}::VARCHAR)" for each in _STRUCTS),
        )
        return f"""
            SELECT hash(place, {key('"case"')}) AS key, place, row, hash(function_nodes, placed_on IS NULL, {key(*texts)}) AS facts,
                CASE WHEN NOT {whole} THEN {_DAMAGED}
                WHEN outcome = '{Outcome.NOT_RUN.value}' AND error."class" IS NOT DISTINCT FROM '{NOT_EXPRESSIBLE}'
                THEN {_INEXPRESSIBLE} WHEN outcome IN ({absent}) THEN {_NEITHER} ELSE {_EXECUTED} END AS code
            FROM (SELECT *, CASE target {place} END AS place FROM ({self.part.numbered})) WHERE place IS NOT NULL OR NOT {whole}"""

    @property
    def own(self) -> str:
        """Return SQL for the provider of a result's target."""
        infos = self.run.header.targets
        own = " ".join(
            f"WHEN {sql_text(name)} THEN {sql_text(infos[name].provider)}" for name in self.targets
        )
        return f"CASE target {own} END"

    @property
    def compared(self) -> str:
        """Return SQL for a result's `ComparedResult` as JSON, as `compared_result` makes it."""
        placed = f"if(placed_on = {self.own}, '{OWN}', coalesce(placed_on, '')) || if(function_nodes IS NULL, '', ', as a function')"
        error = """coalesce(left(error."class", 200), '')"""
        signature = f"json_array(outcome, coalesce(stage, ''), {error}, {_DIFFERENCE})"
        return f"json_array(validity, {signature}, {placed}, {_FLAKY})::VARCHAR"


def _join(comparison: Comparison, base: _Side, head: _Side) -> None:
    """Count the results that are the same, and number those that differ in the order of HEAD, then of BASE. Errors:
    UsageError."""
    sql = base.part.sql
    sql.execute(f"""
        CREATE TABLE joined AS SELECT place, code, same, if(of_base IS NULL OR of_head IS NULL, key, NULL) AS key,
            if(same, NULL, of_base) AS of_base, if(same, NULL, of_head) AS of_head, count(*) AS number
        FROM (SELECT coalesce(head.place, base.place) AS place, greatest(head.code, base.code) AS code,
            coalesce(head.key, base.key) AS key, base.row AS of_base, head.row AS of_head,
            base.facts IS NOT DISTINCT FROM head.facts AS same
            FROM ({base.keyed}) AS base FULL JOIN ({head.keyed}) AS head ON base.key = head.key) GROUP BY ALL;
        CREATE TABLE differing AS
        SELECT place, of_base, of_head, row_number() OVER (ORDER BY of_head NULLS LAST, of_base) - 1 AS n
        FROM joined WHERE NOT same AND (key IS NULL OR code = {_EXECUTED})""")
    _once(base, head)
    for place, code, number in sql.execute(
        "SELECT place, code, sum(number) FROM joined WHERE same GROUP BY ALL"
    ).fetchall():
        counts = comparison.counts[comparison.pairs[place]]
        counts.equal += number * (code == _EXECUTED)
        counts.neither += number * (code == _NEITHER)


def _once(*sides: _Side) -> None:
    """Raise UsageError for a damaged id, and for a case that is in a run twice on one target: then a result of the other is
    joined twice, or its key is met twice on one side alone."""
    sql = sides[0].part.sql
    ((joined, alone, keys, most),) = sql.execute("""
        SELECT coalesce(sum(number) FILTER (key IS NULL), 0), count(key),
            count(DISTINCT (key, of_head IS NULL)) FILTER (key IS NOT NULL), max(code) FROM joined""").fetchall()
    rows = 0
    for side in sides:
        names = ", ".join(map(sql_text, side.targets))
        rows += side.part.rows("count(*)", f"WHERE target IN ({names})")[0][0]
    if rows == 2 * joined + alone and alone == keys and most != _DAMAGED:
        return
    for side in sides:
        numbers = f"SELECT row, code, row_number() OVER (PARTITION BY key ORDER BY row) AS number FROM ({side.keyed})"
        wrong = f"SELECT min(row) FROM ({numbers}) WHERE number > 1 OR code = {_DAMAGED}"
        lines = f"SELECT row, {side.part.line} FROM ({side.part.numbered}) AS results WHERE row = ({wrong})"
        for row, line in rows_of(sql, lines):
            raise side.run.twice(row + HEADER, side.run.result(row + HEADER, line))


class _Judged(NamedTuple):
    """A number of changes that are alike, and their group if there is one."""

    kind: ChangeKind
    number: int
    group: ChangeGroup | None


def _judge(comparison: Comparison, base: _Side, head: _Side) -> dict[int, _Judged]:
    """Judge the results that differ, once for all that are alike, and put those that are listed into a table `shown`."""
    sql = base.part.sql
    texts = ["BOOLEAN", "VARCHAR", "VARCHAR", "DOUBLE", "DOUBLE"]
    sql.create_function("difference", _difference, texts, "VARCHAR", null_handling="special")
    for name, side in (("base", base), ("head", head)):
        sql.execute(f"""
            CREATE TABLE {name} AS SELECT n, operator, coalesce(levels['directml'], '{BEYOND}') AS level,
                diff.max_ulp AS ulp, {side.compared} AS facts, hash(opset, {key("operator", "level", "inputs", "facts")}) AS alike
            FROM differing JOIN ({side.part.numbered}) AS results ON differing.of_{name} = results.row""")
    sql.execute("""
        CREATE TABLE pairs AS SELECT differing.*, base.ulp AS ulp_before, head.ulp AS ulp_after,
            coalesce(head.ulp > base.ulp, false) AS grew, hash(place, grew, base.alike, head.alike) AS alike
        FROM differing LEFT JOIN base USING (n) LEFT JOIN head USING (n)""")
    judged: dict[int, _Judged] = {}
    decode = msgspec.json.Decoder(ComparedResult).decode
    alike_pairs = """
        SELECT alike, number, place, grew, coalesce(head.operator, base.operator), coalesce(head.level, base.level), base.facts, head.facts
        FROM (SELECT alike, count(*) AS number, min(n) AS n FROM pairs GROUP BY alike) JOIN pairs USING (alike, n)
        LEFT JOIN base USING (n) LEFT JOIN head USING (n) ORDER BY n"""
    for alike, number, place, grew, operator, level, was, now in rows_of(sql, alike_pairs):
        before, after = (None if text is None else decode(text) for text in (was, now))
        change: Change | None
        if before is not None and after is not None:
            change, why = classify(before, after, ulp_grew=grew)
        else:
            change, why = Change.MISSING if after is None else Change.NEW, ()
        pair, either = comparison.pairs[place], after or before
        assert either is not None
        if change is not None:
            kind = ChangeKind(change, pair, operator, either.validity, before, after, why)
            judged[alike] = _Judged(kind, number, comparison.add(kind, level, number))
        elif either.outcome in NOT_EXECUTED:
            inexpressible = either.outcome is Outcome.NOT_RUN and either.error == NOT_EXPRESSIBLE
            comparison.counts[pair].neither += number * (not inexpressible)
        else:
            comparison.counts[pair].equal += number
    sql.execute(
        "CREATE TABLE judged AS SELECT unnest(?::UBIGINT[]) AS alike, unnest(?::VARCHAR[]) AS change",
        [list(judged), [each.kind.change.value for each in judged.values()]],
    )
    sql.execute(f"""
        CREATE TABLE shown AS SELECT * EXCLUDE n, row_number() OVER (ORDER BY n) - 1 AS n FROM (
            SELECT * EXCLUDE of_base, if(of_head IS NULL, of_base, NULL) AS of_base,
                row_number() OVER (PARTITION BY change ORDER BY n) <= {KEEP} AS kept,
                row_number() OVER (PARTITION BY alike ORDER BY n) = 1 AS first
            FROM pairs JOIN judged USING (alike)) WHERE kept OR first""")
    return judged


def _show(comparison: Comparison, base: _Side, head: _Side, judged: dict[int, _Judged]) -> None:
    """Read the results that are listed, and the first of those that are alike: HEAD's, or BASE's where HEAD has none."""
    for side, row in ((head, "of_head"), (base, "of_base")):
        columns = f"alike, kept, first, ulp_before, ulp_after, {row}"
        for alike, kept, first, ulp_before, ulp_after, at, line in side.part.taken("shown", columns, row):
            kind, number, group = judged[alike]
            result = clipped(side.run.result(at + HEADER, line))
            found = Changed(kind, result, ulp_before, ulp_after)
            if kept:
                comparison.kept[kind.change].append(found)
            if first and group is not None:
                if not group.number:
                    group.example = found
                group.count(facets(result.case), number)


def _difference(whole: bool, expected: str, actual: str, error: float | None, bound: float | None) -> str:
    """Name the kind of a difference from columns; `whole` says that it has no first element."""
    index = None if whole else ()
    return difference(Diff(None, 0, 0, index, expected, actual, error, UNSET if bound is None else bound))
