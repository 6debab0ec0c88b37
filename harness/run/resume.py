"""Resumes an interrupted run: which results it has, and whether the present run may add to them.

`continued` says which options `--resume` takes from the run, and refuses others, because a run file holds the
results of one selection.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness.model.errors import TargetUnavailable, UsageError
from harness.model.header import Asked, End, Header, in_another_order
from harness.model.query import parse_all
from harness.model.result import Result, inexpressible
from harness.model.result_key import result_key
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.results.counts import Counts
from harness.results.runfile import RunReader, rewrite
from harness.run.artifacts import Kept
from harness.run.request import Request
from harness.targets.registry import parse_targets, starts_what_it_names

_OPTIONS = {
    "targets": "-t",
    "queries": "-k",
    "shard": "--shard",
    "select": "--select",
    "seed": "--seed",
    "timeout": "--timeout",
    "reruns": "--rerun-unexpected",
}


def continued(request: Request, given: Collection[str]) -> Request:
    """Return a request to continue the run in `request.out`; `given` are the options that stand on the
    command line, by their names.

    What is not given is the run's. Specs and expectations that are given may lie elsewhere by now: they are
    held against the run by their hashes. Errors: UsageError that names the option where the run was asked for
    something else, or has a target that must be repeated.
    """
    reader = _reader(request.out)
    path, header = reader.path, reader.header
    asked = header.selection
    if asked is None:  # a file older than this key: its command line is repeated
        return request
    then = _words(header.targets, header.seed, asked)
    now = _words([target.name for target in request.targets], request.seed, request.asked())
    for name, option in _OPTIONS.items():
        if name in given and now[name] != then[name]:
            raise UsageError(
                f"{path}:1: cannot be continued: its {option} is {' '.join(then[name]) or 'not given'}, not {' '.join(now[name])}; "
                f"leave {option} out, or start a new run without --resume"
            )
    if "targets" not in given:
        _check_repeated(path, header)
    files: dict[str, Any] = {
        "specs": tuple(map(Path, asked.specs)),
        "expectations": tuple(map(Path, asked.expectations)),
        "baseline": None if asked.baseline is None else Path(asked.baseline),
    }
    return request._replace(
        targets=parse_targets(list(header.targets)),
        targets_left_out=header.targets_left_out,
        queries=parse_all(asked.queries),
        shard=asked.shard,
        select=asked.select,
        seed=header.seed,
        timeout=asked.timeout,
        reruns=asked.reruns,
        **{name: paths for name, paths in files.items() if name not in given},
    )


def _reader(folder: Path) -> RunReader:
    path = folder / "run.jsonl"
    if not path.exists():
        raise UsageError(f"{path}: there is no run to resume; leave --resume out to start one")
    return RunReader(path)


def _check_repeated(path: Path, header: Header) -> None:
    """Refuse hosts, interpreters, libraries and scripts that only the run file names."""
    named = next(filter(starts_what_it_names, header.targets), None)
    if named is not None:
        again = " ".join(f"-t {shlex.quote(name)}" for name in header.targets)
        raise UsageError(
            f"{path}:1: {named} names what it starts: repeat the targets on the command line, {again}"
        )


def _words(targets: Iterable[str], seed: int, asked: Asked) -> dict[str, list[str]]:
    """Return the options of a run as on the command line, by name."""
    return {
        "targets": sorted(targets),
        "queries": sorted(asked.queries),
        "shard": [] if asked.shard is None else [f"{asked.shard.index}/{asked.shard.of}"],
        "select": [asked.select],
        "seed": [str(seed)],
        "timeout": [f"{asked.timeout:g}"],
        "reruns": [str(asked.reruns)],
    }


ANEW = "start a new run without --resume"
MAY_DIFFER = ("python", "platform", "luid", "device_metadata")
"""What belongs to a machine alone: the nodes of a cluster need not have it in common."""


def alike(one: TargetInfo, other: TargetInfo) -> str | None:
    """Return the name of a field in which a target is another on one machine than on another; None if it is the same."""
    for name in one.__struct_fields__:
        if name not in MAY_DIFFER and getattr(one, name) != getattr(other, name):
            return name
    return None


def in_common(one: TargetInfo, other: TargetInfo) -> TargetInfo:
    """Describe a target of two machines, without what only one of them has."""
    differing = [name for name in MAY_DIFFER if getattr(one, name) != getattr(other, name)]
    return msgspec.structs.replace(
        one, **{name: {} if name == "device_metadata" else None for name in differing}
    )


class Done:
    """The results of an interrupted run; `keep` are the bytes of its file that stay, `kept` the tensors
    beside it."""

    def __init__(self, keep: int, kept: Kept) -> None:
        self.keep = keep
        self.kept = kept
        self._conforming: dict[bytes, bool] = {}
        self._refused: set[bytes] = set()
        self.counts = Counts()

    def __len__(self) -> int:
        return len(self.counts)

    def conforming(self, case_id: str, target: str) -> bool | None:
        """Return whether the result of a case conformed, None if it was not run."""
        return self._conforming.get(result_key(case_id, target))

    def refused(self, case_id: str, target: str) -> bool:
        """Say whether the run has a case that the target's API cannot express."""
        return result_key(case_id, target) in self._refused

    def note(self, result: Result) -> None:
        if inexpressible(result):
            self._refused.add(result_key(result.case, result.target))
        else:
            self._conforming[result_key(result.case, result.target)] = result.conforms
            self.kept.add(result)
        self.counts.add(result)


class Earlier:
    """The run to continue: its header, its end if it has one, and `done`, what need not be run again.

    What a target did not do because it was not there (`absent` counts it) is run now.
    """

    def __init__(self, folder: Path) -> None:
        """Read the run file in a folder. Errors: UsageError where there is none, or a damaged one."""
        reader = _reader(folder)
        self.path = reader.path
        self.header = reader.header
        self.done = Done(0, Kept(folder / "artifacts"))
        self.absent = 0
        for result in reader:
            if result.outcome is Outcome.UNAVAILABLE:
                self.absent += 1
            else:
                self.done.note(result)
        self.done.keep = reader.bytes_read
        self.end = reader.end

    def complete(self) -> End | None:
        """Return the end of a run that has every result that it was to have; None if some are missing."""
        whole = (
            self.end is not None
            and not self.absent
            and len(self.done) == self.end.selected + self.done.counts.inexpressible
        )
        return self.end if whole else None

    def check(self, header: Header) -> None:
        """Hold all that is known before the targets start against the run. Errors: UsageError for another
        seed, spec or baseline."""
        for what, then, now in (
            ("seed", self.header.seed, header.seed),
            *(
                (f"hash of the {name}", self.header.hashes.get(name), value)
                for name, value in header.hashes.items()
            ),
            ("baseline", self.header.baseline, header.baseline),
        ):
            if then != now:
                raise self._refused(f"the {what} changed since")

    def continued(self, present: Header) -> Done:
        """Prepare the run file to be continued on these targets, and return its results; a target may have
        been unavailable before.

        Errors: UsageError for another target, or for expectations in another order; TargetUnavailable for a
        target out of reach now.
        """
        then, targets = self.header.targets, dict(present.targets)
        nodes = (*self.header.nodes, *(node for node in present.nodes if node not in self.header.nodes))
        if in_another_order(self.header, present):
            raise self._refused("the expectations are in another order")
        if then.keys() != targets.keys():
            raise self._refused(f"the targets changed since: it has {', '.join(then)}")
        for name, info in targets.items():
            if then[name].unavailable:
                continue
            if info.unavailable:
                raise TargetUnavailable(
                    f"{self.path}:1: cannot be continued: {name} was there and is not now: {info.unavailable}"
                )
            # of a merged run it is the sum of the shards'
            info = msgspec.structs.replace(info, artifact_limit_bytes=then[name].artifact_limit_bytes)
            targets[name] = info
            if nodes and alike(then[name], info) is None:
                targets[name] = in_common(then[name], info)
                continue
            for field in info.__struct_fields__:
                if getattr(then[name], field) != getattr(info, field):
                    was, now = (getattr(each, field) or "unknown" for each in (then[name], info))
                    raise self._refused(f"{name} changed since: its {field} was {was} and is {now}")
        merged = self.header.merged and msgspec.structs.replace(self.header.merged, missing=())
        header = msgspec.structs.replace(
            self.header, targets=targets, expectations=present.expectations, nodes=nodes, merged=merged
        )
        if header != self.header or self.absent:
            self.done.keep = rewrite(
                self.path, header, lambda result: result.outcome is not Outcome.UNAVAILABLE
            )
        return self.done

    def _refused(self, why: str) -> UsageError:
        return UsageError(f"{self.path}:1: cannot be continued: {why}; {ANEW}")
