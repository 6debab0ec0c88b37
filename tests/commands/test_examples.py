"""The notebook of examples: it runs from its first cell to its last, and prints what it shows."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.needs import need

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "examples.ipynb"


def printed(notebook: Any) -> dict[str, str]:
    """Return what each cell of code printed, by the cell's id."""
    return {
        cell.id: "".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own packages
@pytest.mark.slow
def test_the_notebook_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("nbclient") is None or find_spec("ipykernel") is None:
        need("notebook", "python -m pip install -e '.[notebook]'")
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    shown = nbformat.read(NOTEBOOK, as_version=4)
    ran = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(ran, timeout=300, kernel_name="python3", record_timing=False).execute()
    if os.environ.get("UPDATE_GOLDEN"):
        ran.metadata = shown.metadata  # without the version of this Python
        nbformat.write(ran, NOTEBOOK)
        shown = nbformat.read(NOTEBOOK, as_version=4)
    assert printed(ran) == printed(shown)
    assert [id for id, text in printed(ran).items() if not text] == ["imports"]
