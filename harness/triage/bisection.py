"""Measures releases for a bisection: lists them, and runs the cases on one; finds the release that mended a failure."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np
from packaging.version import Version

from harness.compile.graphs import control_graph
from harness.model.case import Case, Tensor
from harness.model.errors import TargetUnavailable, UsageError
from harness.model.target_info import CPU
from harness.model.verdict import NOT_EXECUTED, Outcome
from harness.results.bisection.search import Measured, Seen, bisect
from harness.run.folders import processors
from harness.run.probe import Probe, Probes
from harness.run.recording import execute
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from harness.targets.runtimes import environments, wanted_release
from harness.targets.target import Target, session_config
from harness.targets.windows import releases
from harness.triage.repro.failure import Failure

AXES = {"onnxruntime": "cpu", "directml": "dml"}
"""What can be bisected over, and the target whose release that chooses."""
OLDEST = Version("1.15")
"""Where a search over onnxruntime begins unless an older release is named."""
_SAYS_NOTHING = NOT_EXECUTED | {Outcome.ORACLE_ERROR}


class Axis(NamedTuple):
    """Releases, oldest first, and the target of each: `head@ort-VERSION` with options."""

    over: str
    versions: tuple[str, ...]
    head: str
    options: str
    remark: str = ""

    def target(self, version: str) -> Target:
        """Return the target of a release."""
        return parse_target(f"{self.head}@ort-{version}{self.options}")


def axis(over: str, target: str | None, good: str | None, bad: str | None) -> Axis:
    """Return the releases between two ends; raise UsageError for ends that are not published or stand in the
    wrong order."""
    head, comma, options = (target or AXES[over]).partition(",")
    if head != AXES[over]:
        raise UsageError(
            f"--over {over} chooses the release of {AXES[over]}: -t {target} is not {AXES[over]} with options"
        )
    parse_target(f"{head}{comma}{options}")
    wanted = [None if text is None else wanted_release.parse_version(text) for text in (good, bad)]
    if wanted[0] is not None and wanted[0] == wanted[1]:
        raise UsageError(_order(good, bad))
    remark = ""
    if over == "directml":
        versions = [Version(row.onnxruntime) for row in releases.releases()]
    else:
        versions, complete = environments.published_releases()
        if not complete:
            remark = "the package index does not answer: only installed releases are looked at"
    if not versions:
        raise TargetUnavailable(
            "no release of onnxruntime can run here: the package index does not answer, and none is installed"
        )
    first = _end("--good", good, versions) if good else None
    last = _end("--bad", bad, versions) if bad else None
    if first and last and first >= last:
        raise UsageError(_order(good, bad))
    oldest = first or (OLDEST if over == "onnxruntime" and not (last and last < OLDEST) else versions[0])
    chosen = tuple(str(version) for version in versions if oldest <= version <= (last or versions[-1]))
    if len(chosen) < 2 and (good or bad):
        end, beyond = (f"--good {good}", "newer") if good else (f"--bad {bad}", "older")
        raise UsageError(f"{end}: there is no {beyond} release to compare with, only {', '.join(chosen)}")
    return Axis(over, chosen, head, f"{comma}{options}", remark)


def _order(good: str | None, bad: str | None) -> str:
    return f"--good {good} is not older than --bad {bad}: --good names the older end, --bad the newer, whichever of them fails"


def _end(option: str, text: str, versions: Sequence[Version]) -> Version:
    """Return the release that an end names, `1.22` standing for the newest 1.22.x."""
    wanted = wanted_release.parse_version(text)
    fitting = wanted_release.fitting(wanted, versions)
    if not fitting:
        near = ", ".join(map(str, wanted_release.near(wanted, set(versions))))
        raise UsageError(f"{option} {text}: no such stable release can run here; near: {near}")
    return fitting[-1]


def measure(
    releases: Axis, version: str, cases: Sequence[Case], *, jobs: int, timeout: float, seed: int
) -> Measured:
    """Run cases on a release and return their outcomes; a case that the release cannot load at all is left out, not
    failed."""
    target = releases.target(version)
    try:
        with Probes(target, timeout=timeout, seed=seed, jobs=jobs) as probes:
            found = probes.run(cases)
        loads = _loads(target, found, timeout)
    except TargetUnavailable as error:
        return Measured(version, skipped=str(error))
    seen: dict[str, Seen] = {}
    left_out: Counter[str] = Counter()
    for probe in found:
        case, outcome = probe.prepared.case, probe.judgement.outcome
        if case.opset not in loads:
            left_out[f"opset {case.opset} does not load"] += 1
        elif outcome in _SAYS_NOTHING:
            left_out[": ".join(filter(None, (outcome.value, *_what(probe))))] += 1
        else:
            seen[case.id] = Seen(case.validity, probe.signature, _what(probe)[1])
    return Measured(version, seen, "" if seen else "; ".join(left_out), left_out)


def _loads(target: Target, found: Sequence[Probe], timeout: float) -> frozenset[int]:
    """Return the opsets that the release loads: for those in doubt, a graph that needs nothing but the opset is
    tried."""
    opsets = frozenset(probe.prepared.case.opset for probe in found)
    doubted = opsets - {probe.prepared.case.opset for probe in found if probe.execution.stage != "load"}
    if not doubted:
        return opsets
    control = launch(target)._replace(
        provider=CPU, provider_options={}, config=session_config(parse_target("cpu"))
    )
    given = {"X": Tensor("float32", np.ones(1, np.float32))}
    with closing(WorkerPool(control, size=1, timeout=timeout)) as pool:
        failed = {
            opset
            for opset in sorted(doubted)
            if execute(pool, control_graph(opset), given, f"Identity@{opset}:").outputs is None
        }
    return opsets - failed


def _what(probe: Probe) -> tuple[str, str]:
    """Return the error's class and message, or no class and the first difference."""
    judgement = probe.judgement
    if judgement.error is not None:
        return judgement.error.class_, judgement.error.message
    if judgement.diff is not None:
        diff = judgement.diff
        where = f" of output {diff.output}" if isinstance(diff.output, int) else ""
        return (
            "",
            f"{diff.differing} of {diff.total} elements{where} differ, the first: {diff.actual} instead of {diff.expected}",
        )
    return "", ""


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
    run = partial(measure, releases, cases=[case], jobs=min(2, processors()), timeout=timeout, seed=seed)
    last = run(later[-1]).seen.get(case.id)
    if last is None or not last.conforms:
        print(f"{later[-1]}, the newest release, does not conform either", file=sys.stderr)
        return None
    found = bisect(later, run)
    changes = [
        change.after.version
        for change in found.changes
        if case.id in change.after.seen and change.after.seen[case.id].conforms
    ]
    return changes[-1] if changes else None
