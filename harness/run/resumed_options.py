"""Continues a run for `--resume`: the options that it takes from the run, and those that it refuses because a
run file holds the results of one selection."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from pathlib import Path

from harness.model.errors import UsageError
from harness.model.header import Asked, Header
from harness.model.query import parse_all
from harness.results.runfile import RunReader
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
    path = request.out / "run.jsonl"
    if not path.exists():
        raise UsageError(f"{path}: there is no run to resume; leave --resume out to start one")
    header = RunReader(path).header
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
    return request._replace(
        targets=parse_targets(list(header.targets)),
        targets_left_out=header.targets_left_out,
        specs=request.specs if "specs" in given else tuple(map(Path, asked.specs)),
        expectations=request.expectations
        if "expectations" in given
        else tuple(map(Path, asked.expectations)),
        queries=parse_all(asked.queries),
        shard=asked.shard,
        select=asked.select,
        seed=header.seed,
        timeout=asked.timeout,
        reruns=asked.reruns,
        baseline=request.baseline
        if "baseline" in given
        else None
        if asked.baseline is None
        else Path(asked.baseline),
    )


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
