"""Writes a case as an entry of a spec: every element exact, so that the entry read again is the same case,
bit for bit.

Only the payload of a NaN inside a complex number cannot be written; no comparison reads it.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.model.case import Case, DirectmlOptions, DirectmlTensor, Options, Tensor, TensorValue, Validity
from harness.model.dtypes import DTYPES, Array
from harness.model.errors import SpecError, UsageError
from harness.model.float_formats import decode
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.specs.graphs.schema import GraphConstant, NodeEntry, Subgraph
from harness.specs.reading.literals import LiteralError, to_array
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.source import parse
from harness.specs.sweeps.calls import call_of

REDUCED_FROM = ", reduced from"
"""The end of a comment's first line; the next one is the id of the case."""
_WIDTH = 120
_FLOAT_INTEGERS = 1 << 24
Store = Callable[[Tensor], str]
"""Keeps a tensor outside of the spec, and returns the keys by which its entry says where."""
_WRITTEN = 16
"""Elements of a tensor that are written out although there is a store."""


def spec_text(
    spec: LoadedSpec, case: Case, name: str, comment: Sequence[str] = (), store: Store | None = None
) -> str:
    """Return a whole spec file with the case as its only entry, so that it can be run as it is or its entry
    pasted into another.

    The inputs of the case are written out (`case.literals`), those of a graph into a `store` where there is one, or filled
    as it says. Raises UsageError where a tensor is too large for a file.
    """
    if spec.graph is not None:
        text = _graph_text(spec, case, entry_lines(case, name, store), comment)
    else:
        lowers_to = spec.model.lowers_to.directml if spec.model.lowers_to else ()
        text = spec_file(spec.model.operator, (case.opset,), lowers_to, [entry_lines(case, name)], comment)
    try:
        parse(text.encode(), path=Path(name), label=name)
    except SpecError as error:
        raise UsageError(f"{case.id}: cannot be written as a spec entry: {error.problems[0]}") from error
    return text


def spec_file(
    operator: str,
    opsets: Iterable[int],
    lowers_to: Sequence[str],
    entries: Iterable[Sequence[str]],
    comment: Sequence[str] = (),
) -> str:
    """Return the text of a spec with these entries, each as `entry_lines` returns it.

    Without `lowers_to` the operator lowers to what ONNX Runtime's provider creates.
    """
    lines = [f"# {_printable(line)}" for line in comment]
    domain, _, name = operator.rpartition(".")
    lines += [f"operator: {name}", *([f"domain: {domain}"] if domain else [])]
    lines += [f"opsets: [{', '.join(map(str, sorted(set(opsets))))}]"]
    lines += [f"lowers_to: {{directml: [{', '.join(lowers_to)}]}}"] if lowers_to else []
    lines += ["cases:", *(line for entry in entries for line in entry)]
    return "\n".join(lines) + "\n"


def _graph_text(spec: LoadedSpec, case: Case, entry: Sequence[str], comment: Sequence[str]) -> str:
    """Return the spec of a graph without parameters (`graphs/plain.py`) with one entry."""
    assert spec.graph is not None
    given = spec.graph.spec
    lines = [
        *(f"# {_printable(line)}" for line in comment),
        f"graph: {case.operator}",
        f"source: {quoted(given.source)}",
    ]
    lines += [f"opsets: [{case.opset}]", "inputs:" if case.inputs else "inputs: {}"]
    lines += [f"  {each.name}: {{type: {each.dtype}, shape: {list(each.shape)}}}" for each in case.inputs]
    lines += ["constants:"] if given.constants else []
    for name, written in _constants(given.constants).items():
        lines += _wrapped(f"  {name}: {written}")
    lines += ["nodes:", *(f"  - {_node(node)}" for node in given.nodes)]
    lines += [f"outputs: [{', '.join(given.outputs)}]", "cases:", *entry]
    return "\n".join(lines) + "\n"


def _constants(constants: Mapping[str, GraphConstant]) -> dict[str, str]:
    found = {}
    for name, constant in constants.items():
        tensor = Tensor(str(constant.type), to_array(str(constant.type), constant.values, constant.shape))
        found[name] = f"{{type: {tensor.dtype}, {written_values(tensor)}}}"
    return found


def _node(node: NodeEntry) -> str:
    written = {
        name: _subgraph(value) if isinstance(value, Subgraph) else attribute(value)
        for name, value in sorted(node.attributes.items())
    }
    held = {"operator": node.operator, "inputs": _names(node.inputs), "outputs": _names(node.outputs)}
    return _mapping({**held, "attributes": _mapping(written)} if written else held)


def _subgraph(graph: Subgraph) -> str:
    held = {
        "inputs": _names(graph.inputs),
        "constants": _mapping(_constants(graph.constants)),
        "nodes": f"[{', '.join(map(_node, graph.nodes))}]",
        "outputs": _names(graph.outputs),
    }
    return _mapping({key: text for key, text in held.items() if text not in ("[]", "{}")})


def _names(names: Sequence[str]) -> str:
    return f"[{', '.join(name or quoted('') for name in names)}]"


def reduced_from(text: str) -> str | None:
    """Return the id of the case that a spec says in its comment to be reduced from, None if it says
    nothing."""
    first, _, rest = text.partition("\n")
    if not (first.startswith("# ") and first.endswith(REDUCED_FROM)):
        return None
    return rest.partition("\n")[0].removeprefix("# ")


def entry_lines(case: Case, name: str, store: Store | None = None) -> list[str]:
    """Return the entry as lines, indented as under `cases:`; large inputs go to `store` where there is one."""
    lines = [f"  - name: {name}"]
    if case.validity is not Validity.VALID:
        lines += [f"    validity: {case.validity.value}", f"    rule: {quoted(_rule(case))}"]
    if case.source:
        lines.append(f"    source: {quoted(case.source)}")
    if case.uses is not None:
        lines.append(f"    uses: {case.uses}")
    lines.append(f"    opsets: [{case.opset}]")
    if case.attributes:
        written = ", ".join(f"{key}: {attribute(value)}" for key, value in sorted(case.attributes.items()))
        lines.append(f"    attributes: {{{written}}}")
    lines.append("    inputs:" if case.inputs else "    inputs: {}")
    for name, given in _inputs(case, store).items():
        lines += _wrapped(f"      {name}: {given}")
    lines += _documented(case)
    default = Options()
    changed = [
        (key, value)
        for key in Options.__struct_fields__
        if (value := getattr(case.options, key)) != getattr(default, key)
    ]
    if changed:
        written = ", ".join(
            f"{key}: {json.dumps(value) if isinstance(value, bool) or ',' in str(value) else value}"
            for key, value in changed
        )
        lines.append(f"    options: {{{written}}}")
    if case.directml is not None:
        lines.append(f"    directml: {_mapping(_asked(case.directml))}")
    return lines


def _asked(options: DirectmlOptions) -> dict[str, str]:
    """Return the requests of a case to DirectML's own API, as a spec writes them."""
    single = {name: getattr(options, name) for name in ("operator", "dimension_count", "in_place")}
    found = {name: str(value) for name, value in single.items() if value is not None}
    if options.layout:
        found["layout"] = _mapping(dict(options.layout))
    if options.attributes:
        found["attributes"] = _mapping({name: attribute(value) for name, value in options.attributes})
    if options.tensors:
        found["tensors"] = _mapping({name: _mapping(_members(tensor)) for name, tensor in options.tensors})
    return found


def _members(tensor: DirectmlTensor) -> dict[str, str]:
    given = {name: getattr(tensor, name) for name in DirectmlTensor.__struct_fields__}
    return {
        name: str(list(value) if isinstance(value, tuple) else value)
        for name, value in given.items()
        if value is not None
    }


def _mapping(given: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in given.items()) + "}"


def _rule(case: Case) -> str:
    """Return the rule as an entry must have it: that of an invalid case begins with the one that the operator
    finds broken."""
    rule, operator = case.rule or "", OPERATORS.get(case.operator)
    if operator is None or case.validity is not Validity.INVALID or case.directml is not None:
        return rule
    broken = operator.broken_rule(call_of(case))
    return rule if broken is None or rule.startswith(broken) else broken


def _inputs(case: Case, store: Store | None) -> dict[str, str]:
    """Return the inputs as a spec writes them, by formal name; those of a variadic one are a list."""
    found: dict[str, list[str]] = {}
    variadic = set()
    for position, spec in enumerate(case.inputs):
        array = case.literals[position] if case.literals is not None else None
        if array is None:
            given = f"shape: {list(spec.shape)}, fill: {spec.values}"
        elif store is not None and array.size > _WRITTEN and spec.dtype != "string":
            given = store(Tensor(spec.dtype, array))
        else:
            given = written_values(Tensor(spec.dtype, array))
        formal, dot, _ = spec.name.partition(".")
        found.setdefault(formal, []).append(f"{{dtype: {spec.dtype}, {given}}}")
        if dot:
            variadic.add(formal)
    return {name: f"[{', '.join(each)}]" if name in variadic else each[0] for name, each in found.items()}


def _documented(case: Case) -> list[str]:
    """Return the documented results as a spec writes them: `output` for a single one, otherwise `outputs` by
    name."""
    given = [(n, array) for n, array in enumerate(case.documented or ()) if array is not None]
    if not given:
        return []
    dtypes = call_of(case).outputs
    written = [(n, _result(dtypes[n], array)) for n, array in given]
    if len(dtypes) == 1:
        return _wrapped(f"    output: {written[0][1]}")
    schema = operator_schema(case.operator, case.opset)
    named = (_wrapped(f"      {schema.output_name(n)}: {text}") for n, text in written)
    return ["    outputs:", *(line for lines in named for line in lines)]


def _result(dtype: str, array: Array) -> str:
    """Write a documented result; without elements no nesting tells its shape."""
    if array.size:
        return _nested(dtype, array)
    return f"{{shape: {list(array.shape)}, values: []}}"


def attribute(value: Any) -> str:
    """Write the value of an attribute so that it is read as the same one."""
    if isinstance(value, TensorValue):
        if value.indices is None:
            return f"{{dtype: {value.dtype}, {written_values(value.tensor)}}}"
        given = written_values(value._replace(shape=(len(value.elements),), indices=None).tensor)
        places = _nested("int64", value.indices.tensor.array)
        return f"{{dtype: {value.dtype}, shape: {list(value.shape)}, {given}, indices: {places}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute, value))}]"
    if isinstance(value, str):
        return quoted(value)
    if not isinstance(value, float):
        return str(value)
    return "nan" if value != value else element("float64", np.array(value))


def _wrapped(line: str) -> list[str]:
    if len(line) <= _WIDTH or '"' in line:  # a break inside a quoted text would change it
        return [line]
    return textwrap.wrap(
        line, _WIDTH, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False
    )


def written_values(tensor: Tensor) -> str:
    """Write the elements of a tensor, with its shape where no nesting tells it."""
    if not tensor.array.size:
        return f"shape: {list(tensor.array.shape)}, values: []"
    return f"values: {_nested(tensor.dtype, tensor.array)}"


def _nested(dtype: str, array: Array) -> str:
    if array.ndim == 0:
        return element(dtype, array)
    return f"[{', '.join(_nested(dtype, np.asarray(part, array.dtype)) for part in array)}]"


def element(dtype: str, scalar: Array) -> str:
    """Write one element, an array of rank 0, so that `to_array` reads the same bits: as a decimal number if that is
    exact, otherwise as its bit pattern."""
    entry = DTYPES[dtype]
    if dtype == "string":
        return quoted(str(scalar.item()))
    if dtype == "bool":
        return "true" if scalar else "false"
    if entry.is_integer:
        return str(int(scalar))
    if not (entry.is_float or entry.is_minifloat):
        return quoted(str(complex(scalar.item())).strip("()"))
    for text, meaning in _decimals(entry.name, scalar):
        if _reads_as(dtype, meaning, scalar):
            return text
    digits = entry.width // 4
    return f'"0x{int(scalar.view(f"u{entry.itemsize}")):0{digits}x}"'


def _decimals(dtype: str, scalar: Array) -> list[tuple[str, Any]]:
    """Return the ways to write a float, shortest first, each with the value that a reader gets."""
    value = float(decode(dtype, scalar))
    if value != value:
        return []
    if abs(value) == float("inf"):
        text = "inf" if value > 0 else "-inf"
        return [(text, text)]
    if value == 0 and np.signbit(value):
        return [('"-0.0"', "-0.0")]
    if value == int(value) and abs(value) < _FLOAT_INTEGERS:
        return [(str(int(value)), int(value))]
    short = str(scalar) if scalar.dtype.kind == "f" else repr(value)
    return [(short, float(short)), (repr(value), value)]


def _reads_as(dtype: str, meaning: Any, scalar: Array) -> bool:
    try:
        return to_array(dtype, meaning).tobytes() == scalar.tobytes()
    except LiteralError:
        return False


def quoted(text: str) -> str:
    """Write text as a double-quoted YAML scalar."""
    return _printable(json.dumps(text, ensure_ascii=False))


def _printable(text: str) -> str:
    """Replace what a YAML file cannot hold by its escape in a double-quoted scalar."""
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 1 << 16 else f"\\U{ord(c):08x}" for c in text
    )
