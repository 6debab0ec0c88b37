"""Asks ONNX's own checker and shape inference about a model, without ONNX Runtime: which of the two a failure belongs
to.

ONNX Runtime contains ONNX's operator definitions, with the code that infers shapes, and runs them while a model
loads. What ends the process there may so be ONNX's; each step runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

from harness.targets.programs import how_ended

CHECKER, INFERENCE = "checker", "shape inference"
_SECONDS = 60
_CODE = """
import json, sys
import onnx
from onnx import checker, shape_inference
model = onnx.ModelProto.FromString(sys.stdin.buffer.read())
said = ""
try:
    if sys.argv[1] == "checker":
        checker.check_model(model)
    else:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
except Exception as error:
    said = str(error) or type(error).__name__
print(json.dumps([onnx.__version__, said]))
"""


class OnnxAnswer(NamedTuple):
    """The outcome of one of ONNX's own steps for a model: `refusal` is its message, `ended` how its process
    ended if it ended; both empty if it accepts the model."""

    step: str
    version: str = ""
    refusal: str = ""
    ended: str = ""

    @property
    def words(self) -> str:
        """The answer in a few words."""
        if self.ended:
            return f"ends the process ({self.ended})"
        return f"refuses it: {self.refusal}" if self.refusal else "accepts it"


class OnnxAlone(NamedTuple):
    """The answers of the checker and of shape inference, of this interpreter's `onnx`."""

    checker: OnnxAnswer
    inference: OnnxAnswer

    @property
    def crashes(self) -> bool:
        """Say whether shape inference ends the process, without ONNX Runtime."""
        return bool(self.inference.ended)


def ask_onnx(model: bytes) -> OnnxAlone:
    """Return what ONNX's checker and shape inference do with a serialised ModelProto."""
    return OnnxAlone(_ask(CHECKER, model), _ask(INFERENCE, model))


def _ask(step: str, model: bytes) -> OnnxAnswer:
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _CODE, step],
            input=model,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return OnnxAnswer(step, ended=f"no answer within {_SECONDS} s")
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode == 0 and lines:
        version, said = json.loads(lines[-1])
        return OnnxAnswer(step, version, said)
    return OnnxAnswer(step, ended=how_ended(done.returncode))
