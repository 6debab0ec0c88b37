"""Queries select cases by their ids: `GatherND`, `GatherND@13:sweep=batch`, `Gather*:data=float16;axis=-1`,
`indices=int64`.

A query is `operator[@opset][:term;term…]`, or terms alone for every operator. Each term `key=value` must
occur in the id, in any order; so a query is also any prefix of an id that ends where a term ends, and a whole
id selects itself (and ids that add terms to it). `*` and `?` stand for any characters and for one, in
operator, opset and values; brackets are literal, and between them `*` is one dimension: `data=*[*,*,1]` has
rank 3, and `,...` at the end any further ones: `data=*[*,*,...]` has rank 2 or more, `data=*[...]` any. A
tensor's term may end before its shape: `data=float16` is that dtype at any shape. Integers can be compared:
`axis>=1`, `batch_dims<=0`. Alternatives are separate queries.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from harness.model.caseid import parse
from harness.model.errors import UsageError

EXAMPLE = "GatherElements@13:data=float16;axis=-1"

_HEAD = re.compile(r"(?P<operator>[A-Za-z_*?][A-Za-z0-9_.*?]*)(@(?P<opset>[0-9*?]+))?\Z")
_TERM = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_.]*)(?P<relation>[<>]?=)(?P<value>[^;:=<>\s]+)\Z")
_INTEGER = re.compile(r"-?\d{1,19}\Z")
_GLOB = re.compile(r"[*?]")
_SHAPE = re.compile(r"\[[^\]]*\]")
_LONGEST = 2000
_STARS = 8
"""Each `*` outside of a shape multiplies the ways in which an id can be tried."""


class _Term(NamedTuple):
    """A term: text that must be in the id, the pattern that decides, and what the integer that it finds may
    be."""

    key: str
    needle: str
    pattern: re.Pattern[str]
    bounds: tuple[int | None, int | None] = (None, None)

    def allows(self, number: str) -> bool:
        """Say whether an integer of an id lies within the bounds."""
        least, most = self.bounds
        return (least is None or int(number) >= least) and (most is None or int(number) <= most)


class Query:
    """A parsed query; `text` is as the user wrote it, `operator` and `opset` are globs or None."""

    __slots__ = ("_head", "_start", "keys", "operator", "opset", "terms", "text")

    def __init__(self, text: str, operator: str | None, opset: str | None, terms: Sequence[_Term]) -> None:
        self.text = text
        self.operator = operator
        self.opset = opset
        self.terms = tuple(terms)
        self.keys = tuple(term.key for term in terms)
        head = f"{operator or '*'}@{opset or '*'}:"
        literal = operator is not None and not _GLOB.search(operator)
        self._start = f"{operator}@" if literal else ""
        if literal and opset is not None and not _GLOB.search(opset):
            self._start = head
        self._head = (
            None
            if self._start == head or (literal and opset is None) or head == "*@*:"
            else re.compile(_regex(head, "[^;]"))
        )

    @classmethod
    def parse(cls, text: str) -> Query:
        """Parse a query; raise UsageError that shows a right one."""
        text = text.strip()
        if not text:
            raise UsageError(f"the query is empty; write for example {EXAMPLE!r}")
        if len(text) > _LONGEST:
            raise UsageError(
                f"the query is longer than {_LONGEST:,} characters: what it should select has a shorter one"
            )
        text = re.sub(r"\*{2,}", "*", text)
        head, colon, tail = text.partition(":")
        if not colon and "=" in head:
            head, tail = "", text
        match = _HEAD.match(head)
        if head or colon:
            if match is None:
                raise _malformed(text, f"{head!r} is not an operator with an optional @opset")
            operator, opset = match["operator"], match["opset"]
            if head.count("*") > _STARS:
                raise _malformed(text, f"{head!r} has more than {_STARS} '*'")
        else:
            operator = opset = None
        terms: dict[str, _Term] = {}
        for part in tail.removesuffix(";").split(";") if tail else ():
            found = _TERM.match(part)
            if found is None:
                raise _malformed(text, f"{part!r} is not a key=value")
            key, relation, value = found.groups()
            if key + relation in terms:
                raise _malformed(text, f"{key!r} is given twice; alternatives are separate queries")
            if relation != "=" and not _INTEGER.match(value):
                raise _malformed(
                    text, f"{part!r} compares with {value!r}, which is no integer of at most 19 digits"
                )
            if _SHAPE.sub("", value).count("*") > _STARS:
                raise _malformed(text, f"{part!r} has more than {_STARS} '*'")
            terms[key + relation] = (
                _term(key, value) if relation == "=" else _bound(key, relation, int(value))
            )
        return cls(text, operator, opset, list(terms.values()))

    def matches(self, case_id: str) -> bool:
        """Say whether the query selects the case."""
        if not case_id.startswith(self._start):
            return False
        if self._head is not None and self._head.match(case_id) is None:
            return False
        for term in self.terms:
            found = term.pattern.search(case_id) if term.needle in case_id else None
            if found is None or (found.lastindex and not term.allows(found[1])):
                return False
        return True

    def speaks_of(self, operator: str) -> bool:
        """Say whether it can select ids of an operator."""
        return self.operator is None or re.match(_regex(self.operator, ".") + r"\Z", operator) is not None

    def may_select(self, operator: str, first: str) -> bool:
        """Say whether it can select ids of an operator whose first term is `first`, `sweep=NAME` or
        `case=NAME`."""
        return self.speaks_of(operator) and all(
            term.pattern.search(f":{first}") for term in self.terms if term.key in ("sweep", "case")
        )

    def __repr__(self) -> str:
        return f"Query({self.text!r})"


def parse_all(texts: Iterable[str]) -> tuple[Query, ...]:
    """Parse several queries, any of which may select a case."""
    return tuple(Query.parse(text) for text in texts)


_OTHER_NAMES = {
    "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32", "fp64": "float64", "double": "float64",
    "bf16": "bfloat16", "int": "int32", "long": "int64", "boolean": "bool", "str": "string",
}  # fmt: skip


def explain_no_match(queries: Sequence[Query], operators: Collection[str], ids: Iterable[str]) -> str:
    """Return a hint why queries select nothing of these ids: an operator, opset, key or element type that no
    case has, or that each exists but not together."""
    hints: dict[str, None] = {}
    keys: set[str] = set()
    opsets: dict[str, set[int]] = {}
    for told in map(parse, ids):
        keys.update(told.terms)
        opsets.setdefault(told.operator, set()).add(told.opset)
    for query in queries:
        if query.operator is not None and not any(
            re.match(_regex(query.operator, ".") + r"\Z", name) for name in operators
        ):
            hints[f"no operator {query.operator!r}{_near(query.operator, operators)}"] = None
            continue
        known = opsets.get(query.operator or "", set())
        if query.opset is not None and known and not any(fnmatchcase(str(n), query.opset) for n in known):
            hints[f"opsets of {query.operator}: {', '.join(map(str, sorted(known)))}"] = None
            continue
        for _, other in re.findall(r"(=)(\w+)", query.text):
            if other in _OTHER_NAMES:
                hints[f"no element type {other!r}; did you mean {_OTHER_NAMES[other]!r}?"] = None
        for key in query.keys:
            if key not in keys:
                word = (
                    " (ids do not hold it)"
                    if key in ("validity", "outcome", "verdict", "target", "level", "opset")
                    else ""
                )
                hints[f"no case has the key {key!r}{word}{_near(key, keys)}"] = None
    if not hints:
        return "no case has all of these terms together; `harness list` shows the ids"
    return "; ".join(hints)


def _near(given: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    known_text = f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= 20 else ""
    return (f"; did you mean {near[0]!r}?" if near else "") + known_text


def _malformed(text: str, what: str) -> UsageError:
    return UsageError(f"bad query {text!r}: {what}; write for example {EXAMPLE!r}")


def _term(key: str, value: str) -> _Term:
    needle = max(_GLOB.split(f"{key}={value}".replace("[...]", "*").replace(",...]", "*")), key=len)
    start = re.escape(
        f"{key}="
    )  # literal text first: `re` finds that fastest; what stands before it is looked up afterwards
    if value.startswith("*["):
        value = (
            f"?{value}"  # of a tensor: a list, the value of an attribute of that name, has no element type
        )
    return _Term(key, needle, re.compile(rf"{start}(?<=[:;]{start}){_regex(value, '[^;]')}(?=[;\[]|\Z)"))


def _bound(key: str, relation: str, value: int) -> _Term:
    start = re.escape(f"{key}=")
    pattern = re.compile(rf"{start}(?<=[:;]{start})(-?\d+)(?=;|\Z)")
    return _Term(key, f"{key}=", pattern, (value, None) if relation == ">=" else (None, value))


def _regex(glob: str, any_character: str) -> str:
    """Translate `*` and `?`, which between brackets stand for digits; everything else is literal."""
    pattern, in_shape = [], False
    glob = glob.replace("[...]", "\1")
    glob = re.sub(
        r"(?<=[\[,])\*(?=[,\]])", "\0", glob
    )  # a whole dimension: at least one digit, so that rank 0 is not rank 1
    for part in re.split(r"([*?\[\]\0\1]|,\.\.\.(?=\]))", glob):
        in_shape = (in_shape or part == "[") and part != "]"
        one = r"\d" if in_shape else any_character
        pattern.append(
            {"*": one + "*", "?": one, "\0": r"\d+", "\1": r"\[[\d,]*\]", ",...": r"(?:,\d+)*"}.get(part)
            or re.escape(part)
        )
    return "".join(pattern)
