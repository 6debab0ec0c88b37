"""Finds the release that mended a failure, for its issue."""

from __future__ import annotations

import sys

from packaging.version import Version

from harness.model.errors import UsageError
from harness.model.target_info import CPU
from harness.model.verdict import conforms
from harness.results.bisection.search import bisect
from harness.run.folders import processors
from harness.triage.bisection import Measure, axis
from harness.triage.repro.failure import Failure


def mended(failure: Failure, *, seed: int, timeout: float) -> str | None:
    """Return the release from which the case conforms where the newest one does, None where that fails too.

    Raises UsageError where the release that fails is not published, or is the newest one.
    """
    case, info = failure.case, failure.info
    over = "onnxruntime" if info.provider == CPU else "directml"
    head, comma, options = failure.target.name.partition(",")
    base = head.partition("@")[0]
    version = Version(info.onnxruntime or "0").base_version
    releases = axis(over, f"{base}{comma}{options}", None, None)
    later = tuple(each for each in releases.versions if Version(each) >= Version(version))
    if len(later) < 2:
        print(f"{version} is the newest release: nothing could have mended it", file=sys.stderr)
        return None
    if later[0] != version:
        raise UsageError(
            f"--newest: {version} is no release that can run here; the oldest after it is {later[0]}"
        )
    measure = Measure(releases, [case], jobs=min(2, processors()), timeout=timeout, seed=seed)
    last = measure(later[-1]).seen.get(case.id)
    if last is None or not conforms(last.validity, last.outcome):
        print(f"{later[-1]}, the newest release, does not conform either", file=sys.stderr)
        return None
    found = bisect(later, measure)
    changes = [
        change.after.version
        for change in found.changes
        if case.id in change.after.seen
        and conforms(change.after.seen[case.id].validity, change.after.seen[case.id].outcome)
    ]
    return changes[-1] if changes else None
