"""Nothing but operators, specs and data names an operator, an input or an attribute: what reports and stages
know, they know by role."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache
from pathlib import Path

import onnx.defs
import pytest

PACKAGE = Path(__file__).parents[2] / "harness"
EXEMPT = ("operators", "model/data")
_PROBE = frozenset({"Identity", "Constant", "X", "Y"})
"""The graphs that are made of no case: a probe, neighbours on both sides of the tested node, and what stands
around them."""
_CODES = frozenset("ABCIPQRab")
"""Letters of formats: of arrays, structures, frames and files."""
ELSEWHERE: dict[str, frozenset[str]] = {
    "api.py": frozenset({"Split"}),  # a class: known and unexpected
    "commands/describe.py": frozenset({"Inputs", "key"}),  # a title, the head of a column
    "model/query.py": frozenset({"key"}),  # an attribute of a term
    **dict.fromkeys(  # `harness query`
        (
            "commands/cli.py",
            "commands/help_texts.py",
            "commands/pytest_plugin/__init__.py",
            "commands/query.py",
            "results/columns.py",
        ),
        frozenset({"query"}),
    ),
    "specs/graphs/control_flow.py": frozenset(  # whose attributes are graphs
        {"If", "Loop", "Scan", "SequenceMap", "then_branch", "else_branch", "cond", "M", "num_scan_inputs"}
        | {"scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"}
    ),
    "specs/reading/attribute_values.py": frozenset({"indices"}),  # of a sparse tensor
    "operators/bounded/sums.py": frozenset({"axis", "keepdims", "a"}),  # keyword arguments of NumPy
    "triage/bisection.py": _PROBE,
    "compile/graphs.py": _PROBE,
    "compile/composed.py": frozenset({"Constant"}),  # a constant of a graph as a node
    "compile/protos.py": frozenset({"Identity", "Constant"}),
    "specs/graphs/pattern.py": frozenset(  # further consumers of an inner value: a node, and the branches of one
        {"Abs", "Cast", "Identity", "If", "Size", "else_branch", "then_branch", "to"}
    ),
    "compile/decompile.py": frozenset({"Identity"}),
    "compile/sequences.py": frozenset(
        {"SequenceConstruct", "SequenceEmpty", "SequenceLength", "SequenceAt", "Constant"}
        | {"Optional", "OptionalHasElement", "OptionalGetElement"}
    ),  # what makes sequences and optionals and takes them apart, around whatever operator
    "render/html.py": frozenset({"steps"}),  # what to do next
    "render/assets/site.js": frozenset({"a"}),  # an HTML element
    "render/assets/case.js": _PROBE - {"X", "Y", "Constant"} | {"a", "p"},  # HTML elements
    "render/assets/cases.js": frozenset({"a", "p", "query"}),  # HTML elements, a field of the filter
    **dict.fromkeys(
        ("render/assets/elements.js", "render/assets/operators.js", "render/assets/start.js"),
        frozenset({"a", "p"}),
    ),
    "triage/repro/script.py": _PROBE,
    "triage/repro/template.py": _PROBE | _CODES,
    "triage/repro/directml_template.py": _CODES,
    "targets/windows/fetch.py": frozenset({"Range"}),  # a header of HTTP
    "worker/windows/directml/operators.py": _CODES | {"bias", "scale"},  # members of a structure of DirectML
    **dict.fromkeys(
        (
            "triage/expect/masked.py",
            "triage/expect/run_rows.py",
            "results/explain/failures.py",
            "render/payload.py",
            "specs/sweeps/calls.py",
        ),
        _CODES,
    ),
    **dict.fromkeys(
        ("model/compressed.py", "model/plain_file.py"), frozenset({"B"})
    ),  # bytes, of a memoryview
    **dict.fromkeys(
        (
            "targets/frames.py",
            "targets/pool.py",
            "worker/worker.py",
            "targets/windows/packages.py",
            "worker/windows/com.py",
        ),
        _CODES,
    ),
    **dict.fromkeys(
        (
            "commands/finish.py",
            "commands/report.py",
            "commands/start.py",
            "triage/reduction/element_cost.py",
            "triage/reduction/elements.py",
        ),
        frozenset({"a", "w"}),
    ),
}
"""Names that stand in a file for another reason."""
_ORDINARY = frozenset(
    (
        *(
            "body",
            "broadcast",
            "data",
            "depth",
            "dtype",
            "end",
            "ends",
            "group",
            "high",
            "input",
            "inputs",
            "labels",
            "largest",
            "layout",
        ),
        *(
            "low",
            "offset",
            "pattern",
            "repeats",
            "seed",
            "shape",
            "signal",
            "size",
            "sizes",
            "sorted",
            "split",
            "start",
            "strides",
        ),
        *("target", "tensor", "type", "update", "value", "values"),
    )
)
"""Words of our own vocabulary and of file formats that some operator has as a name too."""


@cache
def names() -> frozenset[str]:
    """Names of operators, and those of inputs and attributes that are no ordinary words."""
    found: set[str] = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found.add(schema.name)
            found.update(parameter.name for parameter in schema.inputs)
            found.update(schema.attributes)
    return frozenset(name for name in found if name not in _ORDINARY)


def used(path: Path) -> set[str]:
    """Return the names in a file as code means them: strings that are one, and in the page's module compared
    words."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return {word for word in re.findall(r"""["'`](\w+)["'`]""", text) if word in names()}
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and not token.string.startswith(('"""', "r'''", "'''")):
            word = token.string.lstrip("rbfuRBFU").strip("\"'")
            if word in names():
                found.add(word)
    return found


def files() -> list[Path]:
    every = (path for suffix in ("py", "js", "j2") for path in PACKAGE.rglob(f"*.{suffix}"))
    return sorted(
        path for path in every if not path.relative_to(PACKAGE).as_posix().startswith((*EXEMPT, "_specs"))
    )


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_names_what_only_operators_know(path: Path) -> None:
    allowed = ELSEWHERE.get(path.relative_to(PACKAGE).as_posix(), frozenset())
    assert used(path) - allowed == set()


def test_the_test_sees_them(tmp_path: Path) -> None:
    python, script = tmp_path / "a.py", tmp_path / "a.js"
    python.write_text(
        '"""Gather and Round may stand in prose."""\nif name == "Round" or column.startswith("indices"):\n    axis = given["batch_dims"]\n'
    )
    script.write_text('const input = operator === "Round" ? "X" : "indices";')
    assert used(python) == {"Round", "indices", "batch_dims"}
    assert used(script) == {"Round", "X", "indices"}
