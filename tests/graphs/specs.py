"""A small graph as text, and what tests make of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from harness.model.case import Case
from harness.specs.expand import Plan, expand
from harness.specs.graphs.deployments import graph_cases
from harness.specs.reading.load import LoadedSpec, load_specs

SCALED = """\
graph: ScaledSum
source: https://example.org/
opsets: [13]
types: {T: [float32, float16]}
inputs:
  A: {type: T, shape: [2, 3]}
  B: {type: T, shape: [3]}
constants: {half: 0.5}
parameters: {sum: [A, B], by: half}
nodes:
  - {operator: Add, inputs: $sum, outputs: total}
  - {operator: Mul, inputs: [total, $by], outputs: Y}
outputs: Y
sweeps:
  - name: scale
    factors:
      T: [float32, float16]
      sum: [[A, B], [B, A]]
      A.shape: [[2, 3], [0, 3]]
"""


def loaded(folder: Path, text: str = SCALED) -> LoadedSpec:
    """Write a spec of a graph and load it."""
    path = folder / "graph.yaml"
    path.write_text(text, encoding="utf-8")
    return load_specs([path])[0]


def planned(folder: Path, text: str = SCALED) -> Plan:
    """Write a spec of a graph, load and plan it."""
    return expand([loaded(folder, text)])


def cases(folder: Path, text: str = SCALED) -> tuple[list[Case], Counter[str]]:
    """Return the cases of a spec of a graph, and by reason what it leaves out."""
    left_out = Counter[str]()
    spec = loaded(folder, text)
    assert spec.graph is not None
    return graph_cases(spec.graph, left_out), left_out
