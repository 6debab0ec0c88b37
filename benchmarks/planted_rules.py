"""`python -m benchmarks.planted_rules`: hidden rules in the fake target, found again by `harness explain`
from its run files.

Each rule is drawn over the features of the default specs (`tests/planted.py`) and makes the fake target fail
on every case for which it holds. It counts as recovered where each group that is found, one for valid and one
for invalid cases, has one conjunction of no more terms than the planted rule, without exceptions, and the
groups together hold for exactly the planted cases of the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.model.case import Validity
from harness.results.rules.features import features
from harness.results.rules.terms import Term
from harness.results.runfile import RunReader
from tests.planted import draw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", type=int, default=50)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--select", choices=["all", "pairwise"], default="all")
    parser.add_argument("-k", "--query", default="*", help="only these cases run")
    given = parser.parse_args()
    tried = found = skipped = 0
    for rule in draw(given.seed):
        if tried == given.rules:
            break
        with tempfile.TemporaryDirectory() as folder:
            verdict, said = recovered(Path(folder), rule, given.select, given.query)
        if verdict is None:
            skipped += 1
            continue
        tried += 1
        found += verdict
        print("found" if verdict else "LOST ", " and ".join(map(str, rule)), "|", said, flush=True)
    print(f"{found} of {tried} rules recovered; {skipped} more hold for no case that ran")


def recovered(folder: Path, rule: tuple[Term, ...], select: str, query: str) -> tuple[bool | None, str]:
    """Run the fake target with a hidden rule and explain the run; None where the rule holds for nothing, or
    everything, that ran."""
    script = folder / "script.yaml"
    script.write_text(json.dumps({"rules": [{"where": list(map(str, rule)), "do": "fail"}]}))
    harness = [sys.executable, "-m", "harness"]
    run = [
        *harness,
        "run",
        "-t",
        f"fake,script={script}",
        "--select",
        select,
        "-k",
        query,
        "-o",
        str(folder / "run"),
    ]
    subprocess.run(run, check=False, capture_output=True, timeout=3600)
    explained = subprocess.run(
        [*harness, "explain", str(folder / "run"), "--known", "--format", "json"],
        check=True,
        capture_output=True,
        timeout=3600,
    )
    groups: list[dict[str, Any]] = json.loads(explained.stdout)["groups"]
    planted, caught = set(), set()
    for result in RunReader(folder / "run"):
        if result.validity is Validity.UNSPECIFIED:
            continue
        of = features(result.case) | {"level": result.levels["directml"]}
        if all(term.holds(of) for term in rule):
            planted.add(result.case)
        for group in groups:
            if group["validity"] == result.validity.value and any(
                _holds(each, of) for each in group["rules"]
            ):
                caught.add(result.case)
    if not planted:
        return None, ""
    single = all(len(group["rules"]) <= 1 and group["exact"] for group in groups if group["held_against"])
    short = all(len(each["terms"]) <= len(rule) for group in groups for each in group["rules"])
    against_nothing = any(not group["held_against"] for group in groups)
    said = "; ".join(
        dict.fromkeys(
            " and ".join(term["words"] for term in each["terms"])
            for group in groups
            for each in group["rules"]
        )
    )
    return (None, "") if against_nothing else (single and short and caught == planted, said)


def _holds(rule: dict[str, Any], of: dict[str, Any]) -> bool:
    return all(Term(term["column"], term["relation"], term["value"]).holds(of) for term in rule["terms"])


if __name__ == "__main__":
    main()
