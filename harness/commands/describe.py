"""`harness describe`: shows the inputs, attributes, sweeps and values that a spec can use for an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.commands.renderings import Renderings
from harness.model import onnx_schemas
from harness.model.errors import UsageError
from harness.model.operator_schema import Parameter
from harness.operators import OPERATORS
from harness.render.document import Document, Row, Section, Span, Table
from harness.results.summary import count
from harness.specs.description import OperatorDescription, describe
from harness.specs.reading.load import load_specs, operator_of, spec_files
from harness.specs.reading.source import shown, suggestion

SCHEMA = 1


def describe_document(found: OperatorDescription) -> Document:
    """Show signature, sweeps, kinds of values and words of shapes."""
    schema = found.schema
    sections = [
        Section("inputs", "Inputs", [_parameters(schema.inputs)]),
        Section("attributes", "Attributes", [_attributes(found)]),
        Section("outputs", "Outputs", [_parameters(schema.outputs)]),
        Section("sweeps", f"Sweeps: the family is {found.family}", [_sweeps(found)]),
        Section("kinds", "Kinds of values", [_kinds(found)]),
        Section("words", "Words of shapes", [_words(found)]),
    ]
    sections = [
        each for each in sections if any(isinstance(block, Table) and block.rows for block in each.blocks)
    ]
    versions = ", ".join(map(str, found.versions))
    what = f"{schema.name}, {count(len(found.versions), 'version')}: {versions}; below is version {schema.since_version}"
    return Document("", what, sections)


def _parameters(given: tuple[Parameter, ...]) -> Table:
    rows: list[Row] = []
    for each in given:
        words = [word for word in ("optional", "variadic", "sequence") if getattr(each, word)]
        rows.append((Span(each.name, code=True), each.type_param, ", ".join(words), ", ".join(each.dtypes)))
    return Table(("name", "type", "", "element types"), rows)


def _attributes(found: OperatorDescription) -> Table:
    rows: list[Row] = [
        (
            Span(name, code=True),
            each.type,
            "required" if each.required else "" if each.default is None else repr(each.default),
        )
        for name, each in found.schema.attributes.items()
    ]
    return Table(("name", "type", "default"), rows)


def _sweeps(found: OperatorDescription) -> Table:
    of_family = {name: use for use, names in found.uses.items() for name in names}
    rows: list[Row] = [
        (Span(name, code=True), f"use: {of_family[name]}" if name in of_family else "its own", f"{number:,}")
        for name, number in found.sweeps.items()
    ]
    return Table(("sweep", "from", "cases"), rows, right=(2,))


def _kinds(found: OperatorDescription) -> Table:
    rows: list[Row] = [
        (Span(each.input, code=True), Span(each.kind, code=True), each.elements or "–", each.breaks)
        for each in found.kinds
    ]
    return Table(("input", "values", "for example", "breaks"), rows, grouped=True)


def _words(found: OperatorDescription) -> Table:
    rows: list[Row] = [
        (
            Span(each.input, code=True),
            Span(f"{each.key}:" if each.key else "", code=bool(each.key)),
            ", ".join(each.words),
        )
        for each in found.words
    ]
    return Table(("input", "key", "words"), rows, grouped=True)


def describe_data(found: OperatorDescription) -> dict[str, Any]:
    """Return the JSON document: keys are stable within a schema, new ones may be added."""
    schema = found.schema
    return {
        "schema": SCHEMA,
        "operator": schema.name,
        "versions": found.versions,
        "inputs": [each._asdict() for each in schema.inputs],
        "attributes": {name: each._asdict() for name, each in schema.attributes.items()},
        "outputs": [each._asdict() for each in schema.outputs],
        "family": found.family,
        "uses": found.uses,
        "sweeps": found.sweeps,
        "kinds": [each._asdict() for each in found.kinds],
        "words": [each._asdict() for each in found.words],
    }


RENDERINGS = Renderings(describe_document, describe_data)


@click.command("describe")
@click.argument("operator")
@RENDERINGS.options
def describe_command(operator: str, format_: str, output: Path | None) -> None:
    """Show what a spec can express for OPERATOR: inputs, attributes, sweeps, kinds of values, words of
    shapes.

    OPERATOR is a name, such as Softmax or com.microsoft.Gelu, or a spec of an operator of one's own. Exit code 0:
    described; 2: no such operator.
    """
    if operator in OPERATORS and not onnx_schemas.is_graph(operator):
        paths = [path for path in spec_files() if operator_of(path) == operator]
    elif operator.endswith(".yaml"):
        paths = [Path(operator)]
    else:
        raise UsageError(f"{shown(operator)} is no operator{suggestion(operator, OPERATORS)}")
    (spec,) = load_specs(paths)
    if spec.graph is not None:
        raise UsageError(f"{operator}: a graph of several operators; its nodes are described by their names")
    RENDERINGS.show(describe(spec), format_, output)
