from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from harness.model.case import DEPLOYMENTS, Options
from harness.specs.expectations.expectations import expectations_json_schema
from harness.specs.graphs.schema import graph_json_schema
from harness.specs.reading.entry_schema import CaseOptions, SweepOptions
from harness.specs.reading.schema import Spec, spec_json_schema
from harness.specs.reading.source import parse
from tests.golden import check_golden
from tests.specs.examples import GATHER_ELEMENTS, GATHER_ND

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_published_schemas_are_fresh() -> None:
    check_golden(DOCS / "spec.schema.json", spec_json_schema())
    check_golden(DOCS / "graph.schema.json", graph_json_schema())
    check_golden(DOCS / "expectations.schema.json", expectations_json_schema())


@pytest.mark.parametrize("text", [GATHER_ELEMENTS, GATHER_ND])
def test_the_json_schema_accepts_what_the_loader_accepts(text: str) -> None:
    schema = json.loads(spec_json_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    tree = parse(text.encode(), path=Path("x"), label="x").tree
    jsonschema.validate(json.loads(json.dumps(tree)), schema, cls=jsonschema.Draft202012Validator)
    assert isinstance(Spec.model_validate(tree), Spec)


def test_the_json_schema_refuses_an_unknown_key() -> None:
    tree = json.loads(json.dumps(parse(GATHER_ND.encode(), path=Path("x"), label="x").tree))
    tree["sweeps"][0]["data"]["dtypes"] = "all"
    with pytest.raises(jsonschema.ValidationError, match="dtypes"):
        jsonschema.validate(tree, json.loads(spec_json_schema()), cls=jsonschema.Draft202012Validator)


def test_options_are_those_of_a_case() -> None:
    assert CaseOptions().model_dump() == {
        name: getattr(Options(), name) for name in Options.__struct_fields__
    }
    of_operators = CaseOptions().model_dump(exclude=set(DEPLOYMENTS))
    assert {k: v[0] for k, v in SweepOptions().model_dump().items()} == of_operators


def test_models_are_frozen() -> None:
    spec = Spec.model_validate(parse(GATHER_ELEMENTS.encode(), path=Path("x"), label="x").tree)
    with pytest.raises(ValidationError, match="frozen"):
        spec.operator = "Round"
