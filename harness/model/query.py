"""Queries select cases by their ids: `GatherND`, `GatherND@13:sweep=batch`, `Gather*:data=float16;axis=-1`,
`indices=int64`.

A query is `operator[@opset][:term;term…]`, or terms alone for every operator. Each term `key=value` must
occur in the id, in any order; so a query is also any prefix of an id that ends where a term ends, and a whole
id selects itself (and ids that add terms to it). `*` and `?` stand for any characters and for one, in
operator, opset and values; brackets are literal, and between them `*` is one dimension: `data=*[*,*,1]` has
rank 3, and `,...` at the end any further ones: `data=*[*,*,...]` has rank 2 or more, `data=*[...]` any. A
tensor's term may end before its shape: `data=float16` is that dtype at any shape. `*=float16` is a term of any
key. Integers can be compared: `axis>=1`, `batch_dims<=0`. Alternatives are separate queries.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from harness.model.caseid import parse
from harness.model.errors import UsageError

EXAMPLE = "GatherElements@13:data=float16;axis=-1"

_HEAD = re.compile(r"(?P<operator>[A-Za-z_*?][A-Za-z0-9_.*?]*)(@(?P<opset>[0-9*?]+))?\Z")
_TERM = re.compile(r"(?P<key>\*(?==)|[A-Za-z_][A-Za-z0-9_.]*)(?P<relation>[<>]?=)(?P<value>[^;:=<>\s]*)\Z")
_INTEGER = re.compile(r"-?\d{1,19}\Z")
_GLOB = re.compile(r"[*?]")
_SHAPE = re.compile(r"\[[^\]]*\]")
_LONGEST = 4000
_STARS = 8
"""Each `*` outside of a shape multiplies the ways in which an id can be tried."""


class _Term:
    """A term as written: text that must be in the id, the pattern that decides, and what the integer that it
    finds may be.

    The pattern is made when an id has the text: most terms of most expectations are of other operators.
    """

    __slots__ = ("_pattern", "bounds", "key", "needle", "relation", "text", "value")

    def __init__(self, key: str, relation: str, value: str) -> None:
        self.key = key
        self.relation = relation
        self.value = value
        self.text = f"{key}{relation}{value}"
        self.bounds = (int(value) if relation == ">=" else None, int(value) if relation == "<=" else None)
        self.needle = _needle(key, value) if relation == "=" else f"{key}="
        self._pattern: re.Pattern[str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """What decides whether an id has the term; a bound finds the integer."""
        if self._pattern is None:
            self._pattern = re.compile(_pattern(self.key, self.value if self.relation == "=" else None))
        return self._pattern

    def allows(self, number: str) -> bool:
        """Say whether an integer of an id lies within the bounds."""
        least, most = self.bounds
        return (least is None or int(number) >= least) and (most is None or int(number) <= most)

    def holds(self, case_id: str) -> bool:
        """Say whether a case's id has the term."""
        found = self.pattern.search(case_id) if self.needle in case_id else None
        return found is not None and (not found.lastindex or self.allows(found[1]))


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
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> Query:
        """Parse a query; raise UsageError that shows a right one.

        An entry's queries are parsed when its file is checked and again when it is made: only the first time
        counts.
        """
        text = text.strip()
        if not text:
            raise UsageError(f"the query is empty; write for example {EXAMPLE!r}")
        if len(text) > _LONGEST:
            raise UsageError(
                f"the query is longer than {_LONGEST:,} characters: what it should select has a shorter one"
            )
        if "**" in text:
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
            if found is None or not (found["value"] or operator):  # an id holds empty texts: `delimiter=`
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
            terms[key + relation] = _Term(key, relation, value)
        return cls(text, operator, opset, list(terms.values()))

    def matches(self, case_id: str) -> bool:
        """Say whether the query selects the case."""
        if not self._begins(case_id):
            return False
        for term in self.terms:
            if term.needle not in case_id:
                return False
            found = term.pattern.search(case_id)
            if found is None or (found.lastindex and not term.allows(found[1])):
                return False
        return True

    def _begins(self, case_id: str) -> bool:
        return case_id.startswith(self._start) and (
            self._head is None or self._head.match(case_id) is not None
        )

    @property
    def conditions(self) -> dict[str, Callable[[str], bool]]:
        """The conditions on a case of the operator, as written, `@13` and the terms, and what says whether an id meets
        them."""
        opset = {} if self.opset is None else {f"@{self.opset}": self._begins}
        return {**opset, **{term.text: term.holds for term in self.terms}}

    @property
    def bare(self) -> bool:
        """Whether it selects all cases of the operators that it speaks of."""
        return self.opset is None and not self.terms

    @property
    def literal(self) -> str | None:
        """The only operator of which it can select ids; None where there can be several."""
        return None if self.operator is None or _GLOB.search(self.operator) else self.operator

    def speaks_of(self, operator: str) -> bool:
        """Say whether it can select ids of an operator."""
        return self.operator is None or _matches_operator(self.operator, operator)

    def may_select(self, operator: str, first: str) -> bool:
        """Say whether it can select ids of an operator whose first term is `first`, `sweep=NAME` or
        `case=NAME`."""
        return self.speaks_of(operator) and all(
            term.pattern.search(f":{first}") for term in self.terms if term.key in ("sweep", "case")
        )

    def may_go_on(self, start: str) -> bool:
        """Say whether it can select ids that start so: `Round@22:sweep=types`, all that an id tells before its
        first `;`."""
        return self._begins(start) and all(
            term.holds(start) for term in self.terms if term.key in ("sweep", "case")
        )

    def __repr__(self) -> str:
        return f"Query({self.text!r})"


@lru_cache(maxsize=1 << 16)
def _matches_operator(glob: str, operator: str) -> bool:
    return glob == operator or (
        _GLOB.search(glob) is not None and re.match(_regex(glob, ".") + r"\Z", operator) is not None
    )


def parse_all(texts: Iterable[str]) -> tuple[Query, ...]:
    """Parse several queries; a case is selected if any of them selects it."""
    return tuple(Query.parse(text) for text in texts)


_OTHER_NAMES = {
    "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32", "fp64": "float64", "double": "float64",
    "bf16": "bfloat16", "int": "int32", "long": "int64", "boolean": "bool", "str": "string",
}  # fmt: skip


def explain_no_match(queries: Sequence[Query], operators: Collection[str], ids: Iterable[str]) -> str:
    """Return a hint why queries select nothing of these ids: an operator, opset, key, element type or name that no
    case has, or that each exists but not together."""
    hints: dict[str, None] = {}
    keys: set[str] = set()
    opsets: dict[str, set[int]] = {}
    words: dict[tuple[str, str], set[str]] = {}
    for case in map(parse, ids):
        keys.update(case.terms)
        opsets.setdefault(case.operator, set()).add(case.opset)
        for key, value in case.terms.items():
            words.setdefault((case.operator, key), set()).add(_word(value))
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
            if key not in (*keys, "*"):
                word = (
                    " (ids do not hold it)"
                    if key in ("validity", "outcome", "verdict", "target", "level", "opset")
                    else ""
                )
                hints[f"no case has the key {key!r}{word}{_near(key, keys)}"] = None
        for term in query.terms:
            there = {
                word
                for (operator, key), some in words.items()
                if key == term.key and query.speaks_of(operator)
                for word in some
            }
            word = _word(term.value)
            if (
                there
                and term.relation == "="
                and not _GLOB.search(word)
                and word not in there | {*_OTHER_NAMES}
            ):
                hints[f"no case has {term.key}={word}{_near(word, there)}"] = None
    if not hints:
        return "no case has all of these terms together; `harness list` shows the ids"
    return "; ".join(hints)


def _word(value: str) -> str:
    """Return a value without its shape and elements."""
    return re.split(r"[\[{(]", value, maxsplit=1)[0]


def _near(given: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    known_text = f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= 20 else ""
    return (f"; did you mean {near[0]!r}?" if near else "") + known_text


def _malformed(text: str, what: str) -> UsageError:
    return UsageError(f"bad query {text!r}: {what}; write for example {EXAMPLE!r}")


def _needle(key: str, value: str) -> str:
    """Return the longest text that every id with the term has."""
    text = f"{key}={value}"
    if "*" not in text and "?" not in text and "..." not in text:
        return text
    return max(_GLOB.split(text.replace("[...]", "*").replace(",...]", "*")), key=len)


def _pattern(key: str, value: str | None) -> str:
    """Return the regular expression of a term; without a value, that of any integer.

    Literal text comes first: `re` finds that fastest; what stands before it is looked up afterwards.
    """
    start = "(?<=[:;])[^:;=]+=" if key == "*" else re.escape(f"{key}=")
    if value is None:
        return rf"{start}(?<=[:;]{start})(-?\d+)(?=;|\Z)"
    if value.startswith("*["):
        # of a tensor: a list, the value of an attribute of that name, has no element type
        value = f"?{value}"
    start = start if key == "*" else rf"{start}(?<=[:;]{start})"
    return rf"{start}{_regex(value, '[^;]')}(?=[;\[]|\Z)"


def _regex(glob: str, any_character: str) -> str:
    """Translate `*` and `?`; between brackets they stand for digits. All other characters are literal."""
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
