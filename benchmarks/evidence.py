"""`python -m benchmarks.evidence [NAME…]`: the table of changes in docs/triage.md, held against the releases
that it names.

Every row names a reduced case, `docs/evidence/NAME.yaml`, and how its repro ends on the release before the
change and since it. For each row the repro is written on the release before, which needs the case to fail
there, and run by the Python of both releases. The environments are those of `harness runtimes`; what is
missing is installed. Exit code 1 where a row is not true.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from harness.targets.runtimes.environments import prepare

DOCS = Path(__file__).resolve().parents[1] / "docs"
_FILE = re.compile(r"\]\((evidence/\w+\.yaml)\)")
_ENDED = re.compile(r"(\d+\.\d+\.\d+): (\d)")


class Row(NamedTuple):
    """A row of the table: the first release, the spec of the reduced case, and the exit code of its repro
    before and since."""

    since: str
    file: Path
    ended: tuple[tuple[str, int], tuple[str, int]]

    @property
    def name(self) -> str:
        return f"{self.file.stem}-{self.ended[1][0]}"


def rows(page: str) -> list[Row]:
    """Read the rows from the text of docs/triage.md: those lines of tables that name a file of
    `evidence/`."""
    found = []
    for line in page.splitlines():
        files = _FILE.findall(line)
        if line.startswith("|") and files:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            (file,) = files
            before, after = ((release, int(code)) for release, code in _ENDED.findall(line))
            found.append(Row(cells[1], DOCS / file, (before, after)))
    return found


def problems(row: Row, folder: Path) -> list[str]:
    """Write the repro of a row into a folder, run it on both releases, and return what is not as the table
    says."""
    target = f"cpu@ort-{row.ended[0][0]}"
    command = [
        sys.executable,
        "-m",
        "harness",
        "repro",
        "--case",
        str(row.file),
        "-t",
        target,
        "-o",
        str(folder),
    ]
    written = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600)
    if written.returncode:
        return [f"{row.name}: no repro on {target}: {written.stderr.strip()}"]
    wrong = []
    for release, code in row.ended:
        python = prepare(release)[0]
        ended = subprocess.run(
            [python, str(folder / "repro.py")], capture_output=True, encoding="utf-8", timeout=600
        )
        if ended.returncode != code or f"onnxruntime {release}," not in ended.stdout:
            wrong.append(
                f"{row.name}: on {release} the repro ends with {ended.returncode}, not {code}: {ended.stdout}{ended.stderr}"
            )
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="only the rows of these files, without .yaml")
    names = parser.parse_args().name
    chosen = [
        row
        for row in rows((DOCS / "triage.md").read_text(encoding="utf-8"))
        if not names or row.file.stem in names
    ]
    if not chosen:
        parser.error(f"no row has such a file: {', '.join(names)}")
    wrong = 0
    for row in chosen:
        with tempfile.TemporaryDirectory() as folder:
            found = problems(row, Path(folder) / "repro")
        wrong += bool(found)
        print(
            "\n".join(found)
            or f"{row.name}: {', '.join(f'{release} exits with {code}' for release, code in row.ended)}",
            flush=True,
        )
    print(f"{len(chosen) - wrong} of {len(chosen)} rows are true")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
