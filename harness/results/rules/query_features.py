"""Writes a rule in columns that queries select as one query with exceptions (`unless`): what expectations match.

Queries compare ranks (`data=*[*,*,...]`), match shapes in full, or by the first or last extent at a rank, and
compare integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.results.rules.features import HAS
from harness.results.rules.relations import Value
from harness.results.rules.terms import Term


class QueryPair(NamedTuple):
    """A query, and the queries of the terms that it states beyond the rule."""

    match: str
    unless: tuple[str, ...]


def ask(terms: Iterable[Term]) -> QueryPair:
    """Write a conjunction as a query."""
    operator, opset = "*", ""
    wanted: dict[str, str] = {}
    shapes: dict[str, list[str]] = {}
    unless: list[str] = []
    for term in sorted(terms, key=lambda term: (term.column, term.relation)):
        key, _, aspect = term.column.rpartition(".")
        if key and term.relation in (">=", "<="):
            shapes.setdefault(key, [])  # a comparison holds of no case without the tensor
        if aspect in ("rank", "shape", "begins", "ends") and key:
            if term.relation in ("<=", "!="):
                unless.append(_refused(key, term))
            else:
                shapes.setdefault(key, []).extend(_pattern(term))
        elif term.relation == "!=" or (key == HAS[:-1] and term.value == "no"):
            unless.append(f"{aspect}=*" if key == HAS[:-1] else _plain(term))
        elif term.column == "operator":
            operator = str(term.value)
        elif term.column == "opset":
            opset = str(term.value)
        elif key == HAS[:-1]:
            wanted[f"{aspect}="] = "*"
        else:
            name = term.column.removeprefix("call.") + term.relation
            wanted[name] = str(_tighter(term, wanted.get(name)))
    for name, patterns in shapes.items():
        wanted[f"{name}="] = f"{wanted.get(f'{name}=', '*')}{_merged(patterns)}"
    tail = ";".join(key + value for key, value in wanted.items())
    head = f"{operator}{opset}"
    return QueryPair(
        tail if head == "*" and tail else f"{head}:{tail}" if tail else head, tuple(sorted(unless))
    )


def _tighter(term: Term, other: str | None) -> Value:
    """Of two bounds on one integer the one that lets less through."""
    if other is None or not isinstance(term.value, int) or term.relation not in (">=", "<="):
        return term.value
    return max(term.value, int(other)) if term.relation == ">=" else min(term.value, int(other))


def _plain(term: Term) -> str:
    """Write the values that a `!=` excludes."""
    if term.column == "operator":
        return str(term.value)
    return f"*{term.value}" if term.column == "opset" else f"{term.column.removeprefix('call.')}={term.value}"


def _pattern(term: Term) -> list[str]:
    """Write the condition that a `=` or `>=` states about a shape; a rank of at least 0 states nothing."""
    if not isinstance(term.value, int):
        return [str(term.value)]
    if term.relation == "=":
        return [_stars(term.value)]
    return [_stars(term.value)[:-1] + ",...]"] if term.value > 0 else []


def _refused(key: str, term: Term) -> str:
    if isinstance(term.value, int):
        if term.relation == "!=":
            return f"{key}=*{_stars(term.value)}"
        return f"{key}=*{_stars(term.value + 1)[:-1]},...]"
    return f"{key}=*{term.value}"


def _stars(rank: int) -> str:
    return f"[{','.join(['*'] * rank)}]"


def _merged(patterns: list[str]) -> str:
    """Join the conditions on one shape; all of them hold for some case, so ranks agree."""
    if not patterns:
        return "[...]"
    closed = [pattern[1:-1].split(",") for pattern in patterns if not pattern.endswith(",...]")]
    if not closed:
        return max(patterns, key=len)
    merged = closed[0]
    for sizes in closed[1:]:
        merged = [theirs if own == "*" else own for own, theirs in zip(merged, sizes, strict=True)]
    return f"[{','.join(merged)}]"
