"""What some tests need and a machine may lack: such a test skips and the end of the run says what would let
it run.

`HARNESS_REQUIRE` names what must be there, for example `HARNESS_REQUIRE="browser ssh"`, or is `all`, as in
`.ci/run`: a test that lacks it fails.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable

import pytest

REQUIRE_ENV = "HARNESS_REQUIRE"
NEEDS = {
    "browser": "tests of the report's page in a browser",
    "bubblewrap": "tests of bubblewrap around the Windows runtime",
    "cluster": "tests of runs on a cluster",
    "compiler": "tests of libraries that are compiled here",
    "index": "tests with releases of the package index",
    "notebook": "tests of the notebook of examples",
    "openssl": "tests with certificates",
    "reference": "tests against scikit-learn",
    "pythons": "tests of releases for older Pythons",
    "root": "tests as root",
    "ssh": "tests over ssh",
    "store": "tests of runs in a store",
    "unshare": "tests of unshare around the Windows runtime",
    "windows": "tests of the Windows runtime",
}
"""What can be lacking, and how the tests that need it are called."""
ALL = "all"
NOT_IN_ALL = {"pythons", "root"}
"""What no package of the system provides: it is required only by name."""
_PREFIX = "needs "
MISBEHAVING = [
    pytest.mark.skipif(
        sys.platform == "win32", reason="the misbehaving workers use signals and process groups"
    ),
    pytest.mark.usefixtures("started"),
]
"""Marks of a module whose workers crash and hang."""


def required() -> set[str]:
    """Return what HARNESS_REQUIRE names; an unknown name is an error, since it would require nothing."""
    named = set(os.environ.get(REQUIRE_ENV, "").replace(",", " ").split())
    if unknown := named - NEEDS.keys() - {ALL}:
        raise pytest.UsageError(
            f"{REQUIRE_ENV} names {', '.join(sorted(unknown))}; there are {ALL}, {', '.join(NEEDS)}"
        )
    return named - {ALL} | (NEEDS.keys() - NOT_IN_ALL if ALL in named else set())


def need(name: str, lacking: str | None) -> None:
    """Skip the test or module, or fail where `name` is required, unless `lacking` is None; else it says what is missing
    and what provides it."""
    if lacking is None:
        return
    if name in required():
        pytest.fail(f"{REQUIRE_ENV} requires {name}: {lacking}")
    pytest.skip(f"{_PREFIX}{name}: {lacking}", allow_module_level=True)


def summary(reasons: Iterable[str]) -> list[str]:
    """Return one line for each thing that skipped tests needed, with how many did, out of the reasons of all
    skipped tests."""
    told = (reason.removeprefix("Skipped: ") for reason in reasons)
    counts = Counter(text.removeprefix(_PREFIX) for text in told if text.startswith(_PREFIX))
    split = ((*text.partition(": "), count) for text, count in sorted(counts.items()))
    return [
        f"{count} {NEEDS[name]} did not run: {lacking}" for name, _, lacking, count in split if name in NEEDS
    ]
