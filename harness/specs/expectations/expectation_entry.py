"""One expectation as its file writes it: the cases that it matches, the targets that it applies to, the
expected outcome, and the reason.

Limits of a known mismatch say which elements may be wrong, what they may hold, and by how much they may differ. Shape,
element type and number of outputs are those expected: a deviation in one of these needs a formula (`gives`). Without
limits an entry would cover any wrong value in the cases that it matches, also one that another defect makes.
"""

from __future__ import annotations

import re
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from harness.model.errors import UsageError
from harness.model.query import Query
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.model.wrong_elements import WrongElements
from harness.operators import OPERATORS
from harness.operators.deviations import DEVIATIONS
from harness.specs.reading.schema_types import Alternatives, Strict, Text, refuse
from harness.specs.reading.source import shown

LimitKind = Literal["NaN", "infinity", "sign of zero", "sign", "value"]
Held = Annotated[float | int | bool | str, WithJsonSchema({"type": ["number", "boolean", "string"]})]
"""A number, a text, or one of the words `NaN`, `inf`, `-inf`, `lowest`, `largest`, `subnormal`."""


class DifferenceLimit(Strict):
    """What each wrong element of a known mismatch is; every key that is given has to hold for it.

    `kind` compares it with the expected element: NaN or infinite on one side alone, a zero of the other sign,
    a number of the other sign, or another value. `expected` and `actual` list what the two may be. `ulp` is the
    largest distance in units of the last place of the output's type, `error` the largest absolute error,
    `bounds` the largest error as a multiple of the element's bound. A limit that cannot be measured, as the error
    of a NaN, is not met.
    """

    kind: Alternatives[LimitKind] | None = None
    expected: Alternatives[Held] | None = None
    actual: Alternatives[Held] | None = None
    ulp: Annotated[int, Field(gt=0)] | None = None
    error: Annotated[float, Field(gt=0)] | None = None
    bounds: Annotated[float, Field(gt=1)] | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> DifferenceLimit:
        if not self.model_fields_set:
            raise refuse("limits nothing: give 'kind', 'expected', 'actual', 'ulp', 'error' or 'bounds'")
        return self

    def met(self, wrong: WrongElements) -> NDArray[np.bool_]:
        """Say for each wrong element whether it keeps to the limit, shape (elements,)."""
        found = np.ones(len(wrong), np.bool_)
        if self.kind is not None:
            found &= np.isin(wrong.kinds, self.kind)
        for held, elements in ((self.expected, wrong.expected), (self.actual, wrong.actual)):
            if held is not None:
                found &= np.logical_or.reduce([wrong.holds(each, elements) for each in held])
        for most, distances in (
            (self.ulp, wrong.ulps),
            (self.error, wrong.errors),
            (self.bounds, wrong.bounds),
        ):
            if most is not None:
                found &= distances <= most  # NaN where it cannot be measured
        return found


def _query(text: str) -> str:
    try:
        Query.parse(text)
    except UsageError as error:
        raise refuse(str(error)) from None
    return text


_LONGEST = 200
"""Letters of a version range: Python reads no number of more than 4,300 digits."""


def _specifier(text: str) -> str:
    try:
        if len(text) > _LONGEST or "===" in text:  # which compares texts
            raise InvalidSpecifier
        SpecifierSet(text.replace("_", "."))
    except InvalidSpecifier:
        raise refuse(f"{shown(text)} is not a version range such as '>=1.20,<1.25'") from None
    if not any(within(each, text) for each in beside(text)):
        raise refuse(f"no version lies in {shown(text)}")
    return text


_OUTCOMES = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.PASS)


def _not_pass(name: object) -> object:
    if name == Outcome.PASS.value:
        raise refuse("'pass' needs no expectation", allowed=_OUTCOMES)
    if not isinstance(name, str) or name not in _OUTCOMES:
        raise refuse(
            f"{shown(name)} is not an outcome",
            given=name if isinstance(name, str) else None,
            allowed=_OUTCOMES,
        )
    return Outcome(name)


TODO = "TODO"
"""What `expect update` writes for a reason, a link or what a mismatch gives, which a reviewer has to say; lint and runs
fail until it is replaced."""


def _url(text: str) -> str:
    if text != TODO and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise refuse(f"{shown(text)} is not a link such as 'https://…'")
    return text


def _date(text: object) -> date | None:
    if text is None:
        return None
    try:
        if isinstance(text, str) and len(text) == 10:
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise refuse(f"{shown(text)} is not a date such as 2027-01-31")


def formulas(gives: str) -> list[tuple[str, str]]:
    """Return the formulas that `gives` names, each with the operator of a graph's nodes that it replaces, or
    ""."""
    return [(each.partition(" of ")[0], each.partition(" of ")[2]) for each in gives.split(" and ")]


def _formula(gives: str) -> str:
    named = formulas(gives)
    for formula, operator in named:
        if gives != TODO and formula not in DEVIATIONS:
            raise refuse(
                f"{shown(formula)} is no formula of a deviation", given=formula, allowed=tuple(DEVIATIONS)
            )
        if operator and operator not in OPERATORS:
            raise refuse(f"{shown(operator)} is no operator", given=operator, allowed=tuple(OPERATORS))
        if len(named) > 1 and not operator:
            raise refuse(f"{shown(formula)} names no operator: of several formulas each does")
    return gives


QueryText = Annotated[str, AfterValidator(_query)]
VersionRange = Annotated[str, Field(min_length=1), AfterValidator(_specifier)]
_UNEXPECTED = {"enum": [outcome.value for outcome in Outcome if outcome is not Outcome.PASS]}


class When(Strict):
    """Where an entry applies; a condition that is absent holds everywhere, a version that a target cannot
    tell lies in no range."""

    target: Alternatives[Text] = ("*",)
    provider: Alternatives[Text] = ("*",)
    adapter: Text | None = None
    onnxruntime: VersionRange | None = None
    directml: VersionRange | None = None
    max_feature_level: VersionRange | None = None
    transformer: Text | None = None
    """The transformer of ONNX Runtime's optimizer without which a graph does what it should; judged once it is
    found."""

    def holds(self, target: str, info: TargetInfo) -> bool:
        """Say whether every condition holds for a target."""
        ranges = (
            (self.onnxruntime, info.onnxruntime),
            (self.directml, info.directml),
            (self.max_feature_level, info.max_feature_level),
        )
        return (
            any(fnmatchcase(target, glob) for glob in self.target)
            and any(fnmatchcase(info.provider, glob) for glob in self.provider)
            and (self.adapter is None or fnmatchcase(info.adapter or "", self.adapter))
            and all(wanted is None or within(version, wanted) for wanted, version in ranges)
        )


class Entry(Strict):
    """One expectation as the file writes it."""

    match: Alternatives[QueryText]
    unless: Alternatives[QueryText] | None = None
    """Cases that `match` selects and the entry does not speak of."""
    when: When = When.model_construct()
    kernel: Literal["none"] | None = None
    """`none`: the entry holds where the kernel tables name no kernel of the provider for the case's element
    types; what it expects is that the provider refuses, in any of the ways of `WITHOUT_KERNEL`, or is not
    asked."""
    level: Literal["beyond"] | None = None
    """`beyond`: the entry holds for cases that no published level allows."""
    pending: bool = False
    """Whether nobody has looked yet at what these cases do here: whatever it is, it is recorded, shown and no
    failure, until `expires`."""
    sometimes: bool = False
    """Whether a case shows it depends on values that its id does not tell: one that conforms contradicts
    nothing."""
    expect: Annotated[Outcome, BeforeValidator(_not_pass), WithJsonSchema(_UNEXPECTED)]
    gives: Annotated[Text, AfterValidator(_formula)] | None = None
    """The formula of `operators.deviations` that computes what the target gives instead, `FORMULA of OPERATOR` for nodes
    of a graph: anything else is not what the entry speaks of."""
    difference: Alternatives[DifferenceLimit] | None = None
    """Limits of a mismatch: each wrong element keeps to one of them, and shapes and types are as expected."""
    memory: Alternatives[Literal["unwritten", "outside", "unstable"]] | None = None
    """What the elements are that memory decides: left unwritten, read from outside of the inputs, different from run
    to run. Of a mismatch every wrong element is one of these; without `outside` no element may be from there."""
    message: Text | None = None
    """A part of the error's message: a refusal for another reason is not what the entry speaks of, nor is a session that
    declares another shape of an output."""
    masked: Text | None = None
    """Why another wrong value cannot be told from the known one; `expect lint --masked` asks for it."""
    title: Text | None = None
    """The finding in a few words, and below it why; `documents` says what Microsoft's documents have to
    say."""
    reason: Text
    documents: Text | None = None
    link: Annotated[str, AfterValidator(_url)]
    expires: Annotated[date, BeforeValidator(_date)] | None = None
    one_sided: Text | None = None
    """Why no case can lack one condition of `match` alone; `expect lint` asks for such a case otherwise."""

    @model_validator(mode="after")
    def _states_what_a_mismatch_gives(self) -> Entry:
        if self.message is not None and self.expect not in (Outcome.REJECTED, Outcome.MISMATCH):
            raise refuse(
                f"'message' is that of a refusal or a declared shape, and {self.expect.value} is expected"
            )
        names = "gives", "difference", "memory", *(("message",) if self.expect is Outcome.MISMATCH else ())
        stated = [name for name in names if getattr(self, name) is not None]
        if self.expect is Outcome.MISMATCH and not self.pending:
            if not stated and self.masked is None:
                raise refuse(
                    "a known mismatch states what the target gives: 'gives', 'difference', 'memory', or the 'message' of a "
                    "declared shape"
                )
            if len(stated) > 1 and "memory" not in stated:
                raise refuse(
                    f"give {stated[0]!r} or {stated[1]!r}, not both: each says what every element is"
                )
        elif self.difference is not None:
            raise refuse(f"'difference' says what a mismatch looks like, and {self.expect.value} is expected")
        elif stated and self.expect is not Outcome.ACCEPTED_INVALID:
            raise refuse(f"{stated[0]!r} speaks of outputs, and {self.expect.value} has none")
        return self


def beside(*ranges: str) -> list[str]:
    """Return the versions at and beside the ends of ranges."""
    named = [
        Version(each.version.rstrip(".*")) for text in ranges for each in SpecifierSet(text.replace("_", "."))
    ]
    near = [(*each.release[:-1], each.release[-1] + more, 9999) for each in named for more in (-1, 0)]
    return ["0", "9999", *map(str, named), *(".".join(map(str, each)) for each in near if min(each) >= 0)]


@lru_cache(maxsize=1024)
def within(version: str | None, wanted: str) -> bool:
    """Say whether a version, or a feature level such as `5_0`, lies in a range."""
    if version is None:
        return False
    try:
        return SpecifierSet(wanted.replace("_", ".")).contains(version.replace("_", "."), prereleases=True)
    except InvalidVersion:
        return False
