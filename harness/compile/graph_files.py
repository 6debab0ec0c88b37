"""Writes `generated_models/`: content-addressed graph files and the tracked manifest of their hashes.

A file lies in a folder of its operator, named by the SHA-256 of its bytes. The manifest has one line for each operator and opset of the
default specs: how many graphs there are, how many cases run on them, and the SHA-256 over the hash of every
graph with its number of cases. `harness run` compiles in memory and never reads these files, but refuses to
run beside edited ones of its operators.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from harness.compile.prepare import by_graph
from harness.model.errors import UsageError, naming
from harness.model.plain_file import read_bytes, sha256_of
from harness.model.progress import PLANNING, telling
from harness.model.query import Query
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection

FOLDER = Path("generated_models")
MANIFEST = "manifest.txt"
_LARGEST_MANIFEST = 64 << 20
_NAMED = 6


def verify_existing(folder: Path = FOLDER, operators: Iterable[str] | None = None) -> None:
    """Raise UsageError if a graph file of the operators, or of any, is not what its name says."""
    names = operators if operators is not None else os.listdir(folder) if folder.is_dir() else ()
    for path in (path for name in sorted(names) for path in sorted((folder / name).glob("*.onnx"))):
        with naming(path, "read"):
            digest = sha256_of(path)
        if digest != path.stem:
            raise UsageError(
                f"{path}: was edited: its content has the hash {digest[:12]}…; delete it, `harness compile` makes it anew"
            )


def manifest_text(
    specs: Sequence[Path], queries: tuple[Query, ...] = (), models: dict[Path, bytes] | None = None
) -> str:
    """Return the manifest of the selected cases; collect the graphs' bytes in `models` if given, by file."""
    with telling(PLANNING, when=not specs and not queries) as tell:
        selection = Selection(expand(load_specs(specs), queries, tell=tell), queries)
    selection.total()
    graphs: dict[str, Counter[str]] = {}
    for valid in (True, False):
        for graph, cases in by_graph(selection.cases(valid=valid), seed=0):
            operator = cases[0].case.operator
            graphs.setdefault(f"{operator}@{cases[0].case.opset}", Counter())[graph.digest] += len(cases)
            if models is not None:
                models[Path(operator, f"{graph.digest}.onnx")] = graph.model
    return "".join(
        f"{name} {len(found)} graphs {found.total()} cases {_digest(found)}\n"
        for name, found in sorted(graphs.items())
    )


def _digest(graphs: Counter[str]) -> str:
    return sha256(
        "".join(f"{digest} {number}\n" for digest, number in sorted(graphs.items())).encode()
    ).hexdigest()


def write_graphs(specs: Sequence[Path], queries: tuple[Query, ...], folder: Path | None) -> str:
    """Write the graphs of the selected cases, and the manifest if these are all default cases; return a
    summary."""
    folder = folder or FOLDER
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; -o names a folder")
    models: dict[Path, bytes] = {}
    text = manifest_text(specs, queries, models)
    with naming(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        written = 0
        for path, model in ((folder / file, model) for file, model in models.items()):
            if not path.exists() or sha256_of(path) != path.stem:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(model)
                written += 1
        if not specs and not queries:
            (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    return f"{folder}: {len(models):,} graphs, {written:,} written"


def check_manifest(specs: Sequence[Path], folder: Path | None) -> str | None:
    """Return why the manifest is stale, None if it is fresh."""
    path = (folder or FOLDER) / MANIFEST
    verify_existing(path.parent)
    try:
        tracked = read_bytes(path, _LARGEST_MANIFEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}; run: harness compile"
        ) from error
    found, wanted = set(tracked.splitlines()), set(manifest_text(specs).splitlines())
    if found == wanted:
        return None
    names = sorted({line.partition(" ")[0] for line in found ^ wanted})
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{path}: stale: the graphs of {', '.join(names[:_NAMED])}{more} are others than it says; run: harness compile"
