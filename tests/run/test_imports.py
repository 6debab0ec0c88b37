"""What a run imports: a run of one operator is mostly its imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

UNUSED = {
    *(
        "asyncio",
        "concurrent.futures",
        "dask",
        "duckdb",
        "onnx.reference",
        "onnxruntime",
        "scipy",
        "urllib.request",
    ),
    *(
        "harness.render.foreign",
        "harness.run.cluster",
        "harness.specs.graphs.schema",
        "harness.triage",
        "xml.sax",
    ),
}


def test_a_run_of_an_operator_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    code = (
        "import sys; from harness.commands.cli import cli\n"
        "try: cli(['run', '-t', 'fake', '-k', 'Abs@13', '-o', 'out'])\n"
        "except SystemExit as ended: assert ended.code == 0, ended\n"
        f"print('unused:', *sorted({UNUSED} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "unused:"
    assert (tmp_path / "out" / "report.html").exists()
