"""The format of a spec file as types. `load` checks operators against ONNX's schemas, `expand` the expansion
of sweeps.

Field names are the YAML's keys. An entry is a `LiteralCase`, a `Sweep` or a `Use` (`entry_schema`); the types of their
values are in `schema_types`.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from harness.specs.reading.entry_schema import LiteralCase, SweepEntry
from harness.specs.reading.schema_types import AllOrOpsets, Alternatives, Strict, Text, json_schema, refuse


class LowersTo(Strict):
    """The providers' operators that we claim this operator becomes."""

    directml: Alternatives[Text]


class Spec(Strict):
    """One spec file; `opsets: all` are the versions of the operator that opset 7 or a later one uses, in a `domain`
    beside ONNX's every version."""

    name: Text = Field(alias="operator")
    domain: Text | None = None
    opsets: AllOrOpsets
    lowers_to: LowersTo | None = None
    because: Text | None = None
    cases: tuple[LiteralCase, ...] = ()
    sweeps: tuple[SweepEntry, ...] = ()

    @property
    def operator(self) -> str:
        """The operator's name, behind its domain where that is not ONNX's."""
        return f"{self.domain}.{self.name}" if self.domain else self.name

    @model_validator(mode="after")
    def _not_empty(self) -> Spec:
        if not self.cases and not self.sweeps:
            raise refuse("a spec needs at least one entry in 'cases' or 'sweeps'")
        return self


def spec_json_schema() -> str:
    """Return the JSON Schema of a spec file, for editors, as the text of `docs/spec.schema.json`."""
    return json_schema(Spec.model_json_schema(), "Operator spec")


if __name__ == "__main__":
    print(spec_json_schema(), end="")
