"""One expectation as its file writes it: which cases it matches, where it applies, what it expects, and why."""

from __future__ import annotations

import re
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from harness.model.errors import UsageError
from harness.model.query import Query
from harness.model.result import Diff
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.specs.difference_limit import DifferenceLimit
from harness.specs.schema_types import Alternatives, Strict, Text, refuse
from harness.specs.source import shown


def _query(text: str) -> str:
    try:
        Query.parse(text)
    except UsageError as error:
        raise refuse(str(error)) from None
    return text


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text.replace("_", "."))
    except InvalidSpecifier:
        raise refuse(f"{shown(text)} is not a version range such as '>=1.20,<1.25'") from None
    return text


def _not_pass(name: object) -> object:
    allowed = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.PASS)
    if name == Outcome.PASS.value:
        raise refuse("'pass' needs no expectation", allowed=allowed)
    if not isinstance(name, str) or name not in allowed:
        raise refuse(
            f"{shown(name)} is not an outcome", given=name if isinstance(name, str) else None, allowed=allowed
        )
    return Outcome(name)


TODO = "TODO"
"""What `expect update` writes for a reason or a link that a reviewer has to give; lint and runs fail until it
is replaced."""


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


QueryText = Annotated[str, AfterValidator(_query)]
VersionRange = Annotated[str, Field(min_length=1), AfterValidator(_specifier)]
_UNEXPECTED = {"enum": [outcome.value for outcome in Outcome if outcome is not Outcome.PASS]}


class When(Strict):
    """Where an entry applies; a condition that is absent holds everywhere, a version that a target cannot
    tell lies in no range."""

    target: Alternatives[Text] = ("*",)
    provider: Text | None = None
    adapter: Text | None = None
    onnxruntime: VersionRange | None = None
    directml: VersionRange | None = None
    max_feature_level: VersionRange | None = None

    def holds(self, target: str, info: TargetInfo) -> bool:
        """Say whether every condition holds for a target."""
        ranges = (
            (self.onnxruntime, info.onnxruntime),
            (self.directml, info.directml),
            (self.max_feature_level, info.max_feature_level),
        )
        return (
            any(fnmatchcase(target, glob) for glob in self.target)
            and (self.provider is None or fnmatchcase(info.provider, self.provider))
            and (self.adapter is None or fnmatchcase(info.adapter or "", self.adapter))
            and all(wanted is None or _within(version, wanted) for wanted, version in ranges)
        )


class Entry(Strict):
    """One expectation as the file writes it."""

    match: Alternatives[QueryText]
    unless: Alternatives[QueryText] | None = None
    """Cases that `match` selects and the entry does not speak of."""
    when: When = When()
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
    difference: DifferenceLimit | None = None
    """What the mismatch looks like: another difference is not what the entry speaks of."""
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
    def _differs_where_a_mismatch_is_known(self) -> Entry:
        if self.difference is not None and self.expect is not Outcome.MISMATCH:
            raise refuse(f"'difference' says what a mismatch looks like, and {self.expect.value} is expected")
        return self

    def allows(self, diff: Diff | None) -> bool:
        """Say whether a measured difference, where it is known, is the one that the entry speaks of."""
        return self.difference is None or diff is None or self.difference.allows(diff)


def _within(version: str | None, wanted: str) -> bool:
    """Say whether a version, or a feature level such as `5_0`, lies in a range."""
    if version is None:
        return False
    try:
        return SpecifierSet(wanted.replace("_", ".")).contains(version.replace("_", "."), prereleases=True)
    except InvalidVersion:
        return False
