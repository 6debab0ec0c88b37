"""Reads one result of a run file, with its case, only if the specs are still those of the run, and restricts the targets
that the file names: anybody may have written it, so it cannot choose what this machine starts.

A host, an interpreter, a library, an option of a plugin's own or a script comes only from the command line.
The rest names a provider, a release and numbers: the same program on this machine whoever wrote the file.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple

from harness.compile.prepare import with_inputs
from harness.model.case import Case
from harness.model.errors import NothingRan, UsageError
from harness.model.header import Header
from harness.model.query import Query
from harness.model.result import Result
from harness.model.result_key import artifact_name
from harness.model.verdict import NOT_EXECUTED
from harness.results.npz import load_arrays
from harness.results.runfile import RunReader
from harness.run.hashes import hash_files, run_hashes
from harness.specs.expand import Plan, expand
from harness.specs.expectations.expectations import Expectations
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.targets.registry import parse_target, started_by
from harness.targets.target import Target

_LISTED = 3
_SUBSETS = 8
"""A run may have used some of the specs; of at most so many files every choice is tried."""


class Recorded(NamedTuple):
    """A failing result of a run, the run's header, and the case as it was run."""

    header: Header
    result: Result
    case: Case
    spec: LoadedSpec


def recorded_failure(run: Path, case_id: str, target: str | None, specs: Sequence[Path]) -> Recorded:
    """Find a failing result of a run file, and its case in the specs; `case_id` can be a query that one case
    of the run matches.

    Raises UsageError where the run has no such case or several, the failing target is not clear, or the specs
    are no longer those of the run; NothingRan where the case conforms.
    """
    reader = RunReader(run)
    header = reader.header
    query = _query(case_id)
    found: dict[str, Result] = {}
    matching: dict[str, dict[str, Result]] = {}
    near: list[str] = []
    for result in reader:
        if result.case == case_id:
            found[result.target] = result
        elif (
            query is not None
            and (result.case in matching or len(matching) < _LISTED)
            and query.matches(result.case)
        ):
            matching.setdefault(result.case, {})[result.target] = result
        elif result.case.startswith(case_id.partition(";")[0]):
            near.append(result.case)
    if not found and len(matching) > 1:
        raise UsageError(
            f"{reader.path}: several cases match {case_id!r}: name one of them, for example {', '.join(matching)}"
        )
    if not found and matching:
        case_id, found = matching.popitem()
    result = _chosen(reader.path, case_id, target, found, near)
    query = Query.parse(case_id)
    plan = expand(load_specs(specs or _specs_of(header)), (query,), everything=_everything(header))
    case = next((case for case in plan.searched(query) if case.id == case_id), None)
    if case is None:
        raise UsageError(
            f"{reader.path}: {case_id}: the specs have no such case any more; name those of the run with --spec"
        )
    _check_same(reader.path, header, plan, case, result.target)
    return Recorded(header, result, case, plan.by_operator[case.operator])


def _everything(header: Header) -> bool:
    return header.selection is not None and header.selection.select in ("all", "thorough")


def _specs_of(header: Header) -> Sequence[Path]:
    """Return the specs of a run's command line if they still exist, otherwise none: the harness's own."""
    asked = () if header.selection is None else tuple(map(Path, header.selection.specs))
    return asked if all(path.exists() for path in asked) else ()


def _query(text: str) -> Query | None:
    """Parse a query; None if it is no query and therefore can only be an id."""
    try:
        return Query.parse(text)
    except UsageError:
        return None


def _chosen(
    path: Path, case_id: str, target: str | None, found: dict[str, Result], near: list[str]
) -> Result:
    if not found:
        closest = difflib.get_close_matches(case_id, near[:2000], n=1, cutoff=0.0)
        hint = f"; the nearest is {closest[0]!r}" if closest else ""
        raise UsageError(f"{path}: the run has no case {case_id!r}{hint}")
    if target is not None:
        if target not in found:
            raise UsageError(
                f"{path}: {case_id} has no result on target {target!r}; it has one on: {', '.join(found)}"
            )
        found = {target: found[target]}
    failing = [one for one in found.values() if one.outcome not in NOT_EXECUTED and not one.conforms]
    if not failing:
        outcomes = ", ".join(f"{one.outcome.value} on {one.target}" for one in found.values())
        raise NothingRan(
            f"{path}: {case_id} has not failed there ({outcomes}): there is nothing to reproduce"
        )
    if len(failing) > 1:
        names = ", ".join(one.target for one in failing)
        raise UsageError(f"{path}: {case_id} fails on {names}: choose one with -t")
    return failing[0]


def _check_same(path: Path, header: Header, plan: Plan, case: Case, target: str) -> None:
    """Raise UsageError unless the case is the one that ran: by the hashes of specs and oracle, or by the
    inputs that the run kept."""
    now = run_hashes([], Expectations(()))
    files = [spec.path for spec in plan.specs]
    choices = (
        [files]
        if len(files) > _SUBSETS
        else list(chain.from_iterable(combinations(files, n) for n in range(1, len(files) + 1)))
    )
    same_specs = any(hash_files(choice) == header.hashes.get("specs") for choice in choices)
    if same_specs and now["oracle"] == header.hashes.get("oracle"):
        return
    if _same_inputs(path.parent / "artifacts" / artifact_name(case.id, target), case, header.seed):
        return
    what = "oracle of that run was another" if same_specs else "specs of that run were others"
    raise UsageError(f"{path}: the {what}, so {case.id} may not be the same case any more; run it again")


def _same_inputs(kept: Path, case: Case, seed: int) -> bool:
    """Say whether a run kept exactly the inputs that the case has now; False where it kept none."""
    arrays = load_arrays(kept)
    if arrays is None:
        return False
    inputs = with_inputs(case, seed).inputs
    for spec, tensor in zip(case.inputs, inputs, strict=True):
        name = f"input_{spec.name}"
        if (
            name not in arrays
            or arrays[name].shape != tensor.array.shape
            or arrays[name].tobytes() != tensor.array.tobytes()
        ):
            return False
    return True


def recorded_target(path: Path, name: str, repeated: str | None) -> Target:
    """Parse a target from a run file; `repeated` is the target of the command line, None where the user named
    none.

    Raises UsageError for one that would start what the file chooses, and for what is no target, with the
    file's name.
    """
    if name == repeated:
        return parse_target(name)
    chosen = started_by(name)
    if chosen:
        raise UsageError(
            f"{path}: the {' and '.join(chosen)} of its target would be the file's choice; "
            f"if it is yours, repeat it: -t {shlex.quote(name)}"
        )
    try:
        return parse_target(name)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
