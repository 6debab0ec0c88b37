from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from harness.model.reference.feature_levels import level_order, load, table_levels
from harness.specs.reading import source


def test_levels_run_from_the_lowest_to_beyond() -> None:
    order = level_order()
    assert order[0] == "1_0"
    assert order[-2:] == ("6_4", "beyond")
    assert table_levels(["DML_OPERATOR_ELEMENT_WISE_ROUND"]) == ("2_1", "3_0", "beyond")
    assert table_levels(["DML_OPERATOR_GATHER_ND1", "DML_OPERATOR_GATHER_ND"]) == (
        "2_1",
        "3_0",
        "4_1",
        "beyond",
    )
    assert table_levels(["DML_OPERATOR_WITHOUT_A_DOCUMENT"]) == ("beyond",)


@pytest.mark.parametrize(
    "path", sorted(Path(str(files("harness.model.data"))).glob("*.yaml")), ids=lambda path: path.name
)
def test_a_data_file_holds_nothing_that_readers_of_yaml_disagree_on(path: Path) -> None:
    """Read by the rules of specs, which are those of YAML 1.2, it is the same: no `no`, no `2_1` without
    quotes."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, (tuple, list)) else value

    assert plain(source.read(path).tree) == load(path.name)


def test_the_data_files_keep_their_sources() -> None:
    assert "version_history" in load("directml.yaml")["meta"]["sources"]
