"""The script of the fake target, in YAML:

    startup: ok            # or exit, garbage, hang: what happens before the greeting
    rules:                 # the first one that holds of a case decides
      - {match: "Round@22:X=float16", do: ulp}                         # a query
      - {where: ["batch_dims>=1", "batch_sizes=differ"], do: fail}     # terms of `features`, as `harness explain` finds them
      - {match: GatherND, where: "data.rank>=3", do: reject}           # both
      - {match: "Round@22:X=float32", do: ulp, every: 2}    # a flake: the 1st, 3rd, 5th … time that a worker is asked

Actions of a rule: pass, fail (a wrong output, or an invalid case accepted), reject, unsupported, accept (an
invalid case), misplace, crash, crash_at_load, exit, hang, garbage, raise, and these alterations of the right
output: bit, ulp, zero_sign, nan, order, dtype, shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.model.errors import UsageError
from harness.model.query import Query
from harness.results.rules.features import features
from harness.results.rules.terms import Term
from harness.specs.reading.source import read, shown
from harness.targets.batches import FAKE

if TYPE_CHECKING:
    from harness.targets.target import Target

SCRIPT = "HARNESS_FAKE_SCRIPT"
"""The variable of a worker that names its script."""
ALTERATIONS = ("bit", "ulp", "zero_sign", "nan", "order", "dtype", "shape")
ACTIONS = (
    "pass",
    "fail",
    "reject",
    "unsupported",
    "accept",
    "misplace",
    "crash",
    "crash_at_load",
    "exit",
    "hang",
    "garbage",
    "raise",
    *ALTERATIONS,
)
STARTUPS = ("ok", "exit", "garbage", "hang")


class ScriptRule(NamedTuple):
    """One rule of a script; it applies to the selected cases that have all of its terms."""

    query: Query | None
    where: tuple[Term, ...]
    do: str
    every: int = 1

    def holds(self, case_id: str) -> bool:
        """Say whether the rule speaks of a case."""
        if self.query is not None and not self.query.matches(case_id):
            return False
        if not self.where:
            return True
        found = features(case_id)
        return all(term.holds(found) for term in self.where)


class Script:
    """A parsed script."""

    def __init__(self, path: Path | None) -> None:
        self.startup = "ok"
        self.rules: list[ScriptRule] = []
        if path is None:
            return
        file = read(path)
        tree = file.tree if isinstance(file.tree, dict) else {}
        self.startup = tree.get("startup", "ok")
        if (
            not isinstance(file.tree, dict)
            or set(tree) - {"startup", "rules"}
            or self.startup not in STARTUPS
        ):
            raise UsageError(file.problem((), f"a script has 'rules' and 'startup' ({', '.join(STARTUPS)})"))
        rules = tree.get("rules", ())
        if not isinstance(rules, tuple):
            raise UsageError(file.problem(("rules",), f"should be a list, not {shown(rules)}"))
        for position, rule in enumerate(rules):
            of_rule = partial(file.problem, ("rules", position), allowed=ACTIONS)
            self.rules.append(_rule(rule, of_rule, partial(file.problem, ("rules", position, "every"))))

    def action(self, case_id: str, time: int) -> str:
        """Return the action for a case that this worker receives for the `time`-th time, counted from 0."""
        return next((rule.do for rule in self.rules if not time % rule.every and rule.holds(case_id)), "pass")


def _rule(rule: Any, problem: Callable[[str], str], problem_of_every: Callable[[str], str]) -> ScriptRule:
    if (
        not isinstance(rule, dict)
        or not {"do"} < set(rule) - {"every"} <= {"match", "where", "do"}
        or rule["do"] not in ACTIONS
    ):
        raise UsageError(problem("a rule has 'match' or 'where' or both, and 'do'"))
    every = rule.get("every", 1)
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise UsageError(problem_of_every("'every' is a number from 1 on: of so many times the first"))
    where = rule.get("where", ())
    try:
        query = Query.parse(str(rule["match"])) if "match" in rule else None
        terms = tuple(Term.parse(str(term)) for term in (where if isinstance(where, tuple) else (where,)))
    except UsageError as error:
        raise UsageError(problem(str(error))) from error
    return ScriptRule(query, terms, str(rule["do"]), every)


def check_scripts(targets: Iterable[Target]) -> None:
    """Read the scripts of targets before a worker does. Errors: UsageError, SpecError."""
    for target in targets:
        if target.provider == FAKE and "script" in target.options:
            Script(Path(target.options["script"]))
