"""Writes `issue.md`: the text of a bug report, ready to paste."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from harness.model.case import Tensor, Validity
from harness.model.caseid import parse, value_text
from harness.model.diff import describe, write_element
from harness.model.expected import Exact, Expected, OfLaw, OneOf, nearest
from harness.model.target_info import DML
from harness.model.verdict import Outcome
from harness.render.text import without_paths
from harness.results.memory import said_of
from harness.specs.reading.write import entry_lines
from harness.triage.repro.failure import (
    CASE_FILE,
    DESCRIBE,
    NO_RESPONSE,
    REPRODUCE,
    URGENCY,
    Failure,
    other_facts,
    system_fields,
)
from harness.triage.repro.onnx_alone import OnnxAlone
from harness.triage.repro.snippet import snippet

_SHOWN = 16
_WRITTEN_OUT = 256
_LONGEST_CODE = 30_000
"""Characters of a script that is shown in the issue; the forms of issue trackers take some 65,000."""
_LONGEST_SPEC = 4_000
_OPERATOR_PAGE = "https://onnx.ai/onnx/operators/onnx__{}.html"


def issue(failure: Failure, code: str, bisection: str | None) -> str:
    """Return the report as Markdown, in the fields of ONNX Runtime's issue form: what happens, what ONNX says, the
    input and since when; how to reproduce, the shortest way first; the system. No path of this machine is in it."""
    described = [
        _what_happens(failure),
        "#### What the specification says\n\n" + _specification(failure),
        f"#### {'Input' if failure.origin is None else 'Smallest input'}\n\n" + _input(failure),
    ]
    if failure.onnx_alone is not None:
        described.append("#### ONNX alone\n\n" + _onnx_alone(failure.onnx_alone))
    if bisection is not None:
        described.append("#### Since when\n\n" + bisection.strip())
    described.append("#### Where it was seen\n\n" + table(other_facts(failure)))
    parts = [
        f"# {failure.title}",
        f"### {DESCRIBE}",
        *described,
        f"### {REPRODUCE}",
        _reproduce(failure, code),
    ]
    for name, value in ((URGENCY, NO_RESPONSE), *system_fields(failure)):
        parts += [f"### {name}", value]
    return "\n\n".join(parts) + "\n"


def _onnx_alone(alone: OnnxAlone) -> str:
    """Say what ONNX's own steps do, and on whose side a failure is therefore."""
    version = alone.checker.version or alone.inference.version
    lines = [f"Of `onnx`{f' {version}' if version else ''}, without ONNX Runtime:", ""]
    lines += [f"- {each.step}: {without_paths(each.words)}" for each in alone]
    return "\n".join(lines)


def _what_happens(failure: Failure) -> str:
    case, found = failure.case, failure.signature
    who = "ONNX's shape inference" if failure.in_shape_inference else f"`{failure.info.provider}`"
    what = "a graph of several nodes" if failure.graph.composed else f"`{case.operator}`"
    lines = [f"{who} {failure.what} (`{found.outcome.value}`, {what} at opset {case.opset})."]
    if failure.in_shape_inference:
        lines.append(
            "ONNX Runtime runs it before any provider is asked; the same model ends ONNX's own shape inference too."
        )
    if failure.graph.composed:
        lines.append(_optimizer(failure))
    if failure.mended:
        lines.append(f"**Mended in onnxruntime {failure.mended}**: the newest release does what is expected.")
    lines += wine_said(failure)
    if case.options.variant:
        lines.append(
            f"The graph composes {case.operator}'s mode `{case.options.variant}` of {', '.join(dict.fromkeys(failure.graph.tested))}; "
            "no single operator of ONNX has it."
        )
    lines += given_said(failure)
    if found.outcome is not Outcome.CRASH:
        lines += expected_said(failure)
    return "\n\n".join(lines)


def wine_said(failure: Failure) -> Iterator[str]:
    """Say that a failure was seen under Wine alone."""
    if failure.wine:
        adapter = f" with the adapter {failure.info.adapter}" if failure.info.adapter else ""
        yield f"It was seen under Wine on Linux{adapter}, and has not been tried on Windows."


def given_said(failure: Failure) -> Iterator[str]:
    """Say what the target gives: the message of its error, its outputs, and what these are over other memory."""
    if failure.error is not None and failure.error.message:
        yield fenced(without_paths(failure.error.message[:2000]))
    for name, actual in failure.named(failure.actual or ()) if failure.actual else ():
        yield f"The output {f'`{name}` ' if name else ''}is {tensor_text(actual)}."
    if said := _memory_said(failure):
        yield said


def expected_said(failure: Failure) -> Iterator[str]:
    """Say what each output should be, of a valid case."""
    expected = failure.expected
    for name, each in failure.named(expected) if expected is not None else ():
        yield f"{f'`{name}`' if name else 'It'} should be {expected_text(each)}."


def _optimizer(failure: Failure) -> str:
    """Say what the optimizer made of a graph, and which transformer makes it wrong."""
    level, names = failure.case.options.optimization, failure.culprit
    said = f"The graph is {failure.chain}, optimised at the level `{level}`."
    if failure.optimized:
        said += f" The nodes that ran are {', '.join(failure.optimized)}."
    if names:
        said += f" **Without {' and '.join(f'`{name}`' for name in names)} it gives what it should**"
        without = ", ".join(f'"{name}"' for name in names if "=" not in name)
        said += f" (`InferenceSession(…, disabled_optimizers=[{without}])`)." if without else "."
    return said


def _specification(failure: Failure) -> str:
    case = failure.case
    operators = dict.fromkeys(failure.graph.tested) if failure.graph.composed else (case.operator,)
    page = ">, <".join(map(_OPERATOR_PAGE.format, operators))
    source = f"{case.source} (<{page}>)" if case.source else f"<{page}>"
    if case.validity is Validity.INVALID:
        return f"The call is invalid, so an error is expected. It breaks this rule:\n\n> {case.rule}\n\nSource: {source}."
    if case.validity is Validity.UNSPECIFIED:
        return f"ONNX leaves the result open ({case.rule}), but no call may end the process.\n\nSource: {source}."
    expected = failure.expected
    assert expected is not None
    defined = "; ".join(
        f"{f'`{name}` ' if name else ''}{expected_text(each)}{', exactly' if isinstance(each, Exact) else ''}"
        for name, each in failure.named(expected)
    )
    return f"The call is valid and its result is defined: {defined}.\n\nSource: {source}."


def _input(failure: Failure) -> str:
    case = failure.case
    rows = [
        f"| {spec.name} | {tensor_text(tensor)} |"
        for spec, tensor in zip(case.inputs, failure.prepared.inputs, strict=True)
    ]
    rows += [f"| attribute {name} | {value_text(value)} |" for name, value in case.attributes.items()]
    text = "| | |\n| --- | --- |\n" + "\n".join(rows)
    if case.options.shapes == "static":
        text += "\n\nThe shapes of the graph's inputs are static."
    if case.options.initializer is not None:
        text += f"\n\n`{case.options.initializer}` is an initializer of the graph."
    if case.options.after is not None:
        before = failure.prepared.before or ()
        calls = ", ".join(tensor_text(tensor) for tensor in before)
        text += f"\n\nThe session ran another call first, without which the case may pass: {calls}."
    if case.options.optimization != "off":
        text += f"\n\nGraph optimisation level: {case.options.optimization}."
    if failure.origin is not None:
        text += f"\n\nIt was reduced from `{failure.origin}`."
    return text


def _memory_said(failure: Failure) -> str:
    """Say what the outputs are over memory that holds other bytes, and whose fault it is; empty where that was not
    looked at or says nothing."""
    memory = failure.memory
    if memory is None or not (said := said_of(memory, failure.signature.outcome)):
        return ""
    whose = ""
    if memory.outside:
        whose = " The kernel reads out of bounds."
    elif memory.unwritten:
        whose = " The kernel leaves its output unwritten."
    return f"Run again over memory that holds other bytes: {said}.{whose}"


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Write facts by name, those that are known."""
    return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows if value)])


def _reproduce(failure: Failure, code: str) -> str:
    wheel = "onnxruntime-directml" if failure.info.provider == DML else "onnxruntime"
    version = f"=={failure.info.onnxruntime}" if failure.info.onnxruntime else ""
    numpy = '"numpy<2"' if (failure.info.numpy or "").startswith("1.") else "numpy"
    python = f"   # it ran with Python {failure.info.python}" if failure.info.python else ""
    commands = "\n".join(failure.harness_commands)
    return "\n\n".join(
        [
            f"```python\n{snippet(failure)}\n```",
            "The same with a verdict (`repro.py` needs onnxruntime and numpy alone):",
            "```sh\n"
            + f"python -m pip install {wheel}{version} {numpy}{python}\npython repro.py   # exit code 1 while the bug is there\n```",
            *(["With the conformance harness:", fenced(commands, "sh")] if commands else []),
            *_entry(failure),
            f"<details><summary>repro.py</summary>\n\n```python\n{code.rstrip()}\n```\n\n</details>"
            if len(code) <= _LONGEST_CODE
            else f"`repro.py` is attached ({len(code):,} characters: it carries the input).",
        ]
    )


def _entry(failure: Failure) -> list[str]:
    """Return the case as an entry of a spec, with its elements written out where they are few enough to be
    read."""
    if failure.spec_file is not None:
        if len(failure.spec_file) > _LONGEST_SPEC:
            return [f"`{CASE_FILE}` is attached: the case as a spec."]
        return [f"The case as a spec, `{CASE_FILE}`:", fenced(failure.spec_file.rstrip(), "yaml")]
    inputs = failure.prepared.inputs
    if sum(tensor.array.size for tensor in inputs) > _WRITTEN_OUT or failure.case.options.after is not None:
        return []
    case = msgspec.structs.replace(failure.case, literals=tuple(tensor.array for tensor in inputs))
    terms = parse(case.id).terms
    lines = entry_lines(case, terms.get("case") or terms["sweep"])
    return ["The case as an entry of a spec:", fenced("\n".join(line[2:] for line in lines), "yaml")]


def expected_text(expected: Expected) -> str:
    """Write the admissible results of an output: a tensor, the candidates of each element, or values with the largest
    of their bounds."""
    if isinstance(expected, Exact):
        return tensor_text(expected.tensor)
    if isinstance(expected, OneOf):
        return " or, for each element, ".join(map(tensor_text, expected.candidates))
    if isinstance(expected, OfLaw):
        return expected.says
    largest = float(np.max(expected.bound, initial=0.0))
    return f"{tensor_text(nearest(expected))}, each element within its bound, which is at most {largest:.3g}"


def tensor_text(tensor: Tensor) -> str:
    """Write a tensor in one line: type and shape, and its elements where they are few."""
    if tensor.array.size > _SHOWN:
        return f"`{describe(tensor)}`"
    if tensor.dtype == "string" or not tensor.array.size:
        return f"`{describe(tensor)}` `{tensor.array.tolist()}`"
    if not tensor.array.ndim:
        return f"`{describe(tensor)}` `{write_element(tensor.dtype, tensor.array[()])}`"
    whole = " ".join(
        np.array2string(tensor.array, separator=", ", threshold=_SHOWN, floatmode="unique").split()
    )
    return f"`{describe(tensor)}` `{whole}`"


def fenced(text: str, language: str = "text") -> str:
    """Write a block of code, behind as many signs as the text does not hold."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
