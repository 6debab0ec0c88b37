"""Names of targets in reports, shortened: the path of a file on one machine is meaningless on another, and
takes a table's width."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

import msgspec

from harness.model.header import Header

_FOLDERS = re.compile(r"(?<==)(?:[A-Za-z]:)?[^,=]*[\\/](?=[^,\\/]+(?:,|$))")


def short_names(targets: Collection[str]) -> dict[str, str]:
    """Return `fake,script=…/b.yaml` for `fake,script=/a/b.yaml`, by the whole name; two targets that would
    share a name keep theirs."""
    short = {target: _FOLDERS.sub("…/", target) for target in targets}
    times = Counter(short.values())
    return {target: name if times[name] == 1 else target for target, name in short.items()}


def renamed(header: Header, names: dict[str, str]) -> Header:
    """Return a header whose targets have these names."""
    baseline = header.baseline
    if baseline is not None:
        baseline = msgspec.structs.replace(
            baseline, targets={names.get(now, now): then for now, then in baseline.targets.items()}
        )
    targets = {names[target]: info for target, info in header.targets.items()}
    return msgspec.structs.replace(header, targets=targets, baseline=baseline)
