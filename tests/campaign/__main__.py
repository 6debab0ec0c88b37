"""Runs the campaign: prints what it found, 0 if that is nothing, else 1."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.campaign.faults import fault_campaign
from tests.campaign.inputs import input_campaign
from tests.campaign.kinds import KINDS


def main() -> None:
    """Parse the command line and run both parts."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--faults", type=int, default=100, help="signals to send (default: %(default)s)")
    parser.add_argument("--inputs", type=int, default=2000, help="files to damage (default: %(default)s)")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="the same seed damages the same files; moments of signals differ all the same",
    )
    parser.add_argument(
        "--kind", choices=sorted(KINDS), action="append", help="only such files (default: all)"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="what one file may take (default: %(default)s)"
    )
    parser.add_argument("--keep", type=Path, help="folder for what went wrong (default: a temporary one)")
    chosen = parser.parse_args()
    keep = chosen.keep or Path(tempfile.mkdtemp(prefix="campaign-"))
    keep.mkdir(parents=True, exist_ok=True)
    problems = []
    for name, number, run in (
        ("faults", chosen.faults, lambda: fault_campaign(chosen.faults, chosen.seed, keep)),
        (
            "inputs",
            chosen.inputs,
            lambda: input_campaign(chosen.inputs, chosen.seed, keep, chosen.seconds, chosen.kind),
        ),
    ):
        if not number:
            continue
        began = time.monotonic()
        found = run()
        problems += found.problems
        counted = ", ".join(f"{key} {count:,}" for key, count in sorted(found.counts.items()))
        print(
            f"{name}: {len(found.problems):,} problems in {time.monotonic() - began:.0f} s; {counted}",
            flush=True,
        )
    for problem in problems:
        print(f"  {problem}")
    if problems:
        print(f"kept in {keep}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
