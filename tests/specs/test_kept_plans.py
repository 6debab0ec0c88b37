"""Plans that are kept: read instead of made, and never instead of another."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from harness.model.cache_folder import CACHE_ENV
from harness.model.dtypes import Array
from harness.model.errors import SpecError
from harness.operators import OPERATORS, VARIABLE
from harness.specs.cache import digests, kept, kept_plans
from harness.specs.expand import Plan, expand
from harness.specs.expectations import expectations
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading import load
from harness.specs.reading.load import default_folder, load_specs, own_spec
from harness.specs.reading.schema import Spec
from harness.specs.reading.schema_types import STRICT_TYPES
from harness.specs.sweeps import family_sweeps
from harness.specs.sweeps.covering import CoveringArray
from harness.specs.sweeps.interactions import Interactions

SPECS = ("Round", "Softmax")
"""One with covering arrays, one without."""


class _Asked(Exception):
    """Something was planned that had been kept."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_ENV, str(tmp_path))
    return tmp_path / "plans"


def planned(*names: str, everything: bool = False, thorough: bool = False) -> Plan:
    specs = load_specs([default_folder() / f"{name}.yaml" for name in names or SPECS[1:]])
    return expand(specs, everything=everything, thorough=thorough)


@pytest.fixture
def unplanned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let planning fail, so that only what was kept can answer."""

    def ask(*_: object) -> None:
        raise _Asked

    with monkeypatch.context() as patch:
        patch.setattr(Interactions, "case", ask)
        patch.setattr("harness.specs.sweeps.interactions._BUILT", {})
        yield


@pytest.mark.slow
def test_the_plan_of_every_spec_can_be_read() -> None:
    """A part that `kept_plans` does not allow is written, and no run can read it."""
    specs = load_specs()
    expand(specs)
    assert [
        each.model.operator for each in specs if kept_plans.read(each, OPERATORS[each.model.operator]) is None
    ] == []


def test_what_was_kept_is_what_was_planned(folder: Path, request: pytest.FixtureRequest) -> None:
    first = planned(*SPECS)
    cases, arrays = _cases(first), _arrays(first)
    request.getfixturevalue("unplanned")
    second = planned(*SPECS)
    assert _cases(second) == cases
    assert second.counted() == first.counted()
    assert _arrays(second) == arrays
    assert arrays
    assert second.counted()[0] == len(cases)
    assert {path.name.partition("-")[0] for path in folder.iterdir()} == set(SPECS)


def _cases(plan: Plan) -> list[str]:
    return list(map(repr, plan))


def _arrays(plan: Plan) -> list[list[CoveringArray]]:
    return [each.calls.arrays for each in plan.sweeps if each.calls.interactions is not None]


@pytest.mark.parametrize("damage", ["cut", "changed", "not a plan", "harmful", "gone"])
def test_a_damaged_plan_is_made_anew(folder: Path, damage: str, request: pytest.FixtureRequest) -> None:
    cases = _cases(planned())
    for path in folder.iterdir():
        data = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(
                {
                    "cut": data[:-7],
                    "changed": data[:-9] + b"?" + data[-8:],
                    "not a plan": _sealed(pickle.dumps(("no", "plan"))),
                    "harmful": _sealed(b"cos\nsystem\n(S'exit 1'\ntR."),
                }[damage]
            )
    assert _cases(planned()) == cases
    request.getfixturevalue("unplanned")
    assert _cases(planned()) == cases  # it was kept again


def _sealed(data: bytes) -> bytes:
    return sha256(data).digest() + data


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("harness.specs.cache.digests", "os.system"),
        ("harness.model.cache_folder", "Path"),
        ("harness.specs.cache.kept_plans", "read"),
        ("harness.model.case", "Case.__init_subclass__"),
        ("numpy", "ndarray"),
    ],
)
def test_a_plan_names_nothing_but_its_parts(module: str, name: str) -> None:
    named = pickle.PROTO + b"\4" + b"".join(
        pickle.SHORT_BINUNICODE + bytes([len(part)]) + part.encode() for part in (module, name)
    )  # fmt: skip
    with pytest.raises(pickle.UnpicklingError, match="is no part of what is kept"):
        kept.Unpickler(named + pickle.STACK_GLOBAL + pickle.STOP, kept_plans._PARTS).load()


@pytest.mark.parametrize(
    "array", [np.arange(6, dtype=np.float16).reshape(2, 3), np.array(["a", "b"], object), np.array(3)]
)
def test_an_array_of_a_plan_is_kept_as_data(array: Array) -> None:
    first, second = kept.Unpickler(
        kept.pickled([array, array], {np.ndarray: kept_plans._reduced}), kept_plans._PARTS
    ).load()
    assert first is second
    assert (first.dtype, first.shape, first.tolist()) == (array.dtype, array.shape, array.tolist())


def test_no_object_comes_out_of_bytes() -> None:
    with pytest.raises(ValueError, match="OBJECT"):
        kept_plans._array(bytes(8), "O", (1,))


def test_a_folder_that_cannot_be_written_costs_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "file"
    place.touch()
    monkeypatch.setenv(CACHE_ENV, str(place))
    assert planned().counted()[0]


@pytest.mark.parametrize("what", ["code", "operator", "own operators", "thorough"])
def test_what_plans_otherwise_is_not_answered_by_what_was_kept(
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    planned()
    request.getfixturevalue("unplanned")
    if what == "code":
        monkeypatch.setattr(digests, "code", lambda *_: b"another")
    elif what == "operator":
        monkeypatch.setitem(OPERATORS, "Softmax", OPERATORS["Softmax"]._replace(oracle=lambda *_: ()))
    elif what == "own operators":
        monkeypatch.setenv(VARIABLE, str(folder))
    with pytest.raises(_Asked):
        planned(thorough=what == "thorough")


@pytest.mark.usefixtures("folder")
def test_the_whole_product_is_not_answered_by_what_was_kept() -> None:
    assert planned().counted()[0] < planned(everything=True).counted()[0]


def test_only_the_plans_of_a_few_releases_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        monkeypatch.setattr(digests, "code", lambda *_, number=number: bytes([number]))
        planned()
    assert len(list(folder.iterdir())) == 3


def test_a_cache_that_cannot_be_looked_into_costs_the_plans_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / ("x" * 300)))  # longer than a name may be
    assert next(iter(planned()), None) is not None


def test_a_spec_that_changes_after_it_was_read_has_another_plan(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "Round.yaml"
    path.write_bytes(own_spec("Round").read_bytes())
    (before,) = load_specs((path,))
    path.write_bytes(path.read_bytes() + b"# changed\n")
    (after,) = load_specs((path,))
    assert kept_plans._path(before) == kept_plans._path(load_specs((own_spec("Round"),))[0])
    assert kept_plans._path(before) != kept_plans._path(after)


@pytest.mark.parametrize("name", ["Round.yaml", "GatherND.yaml", "graphs/IfBranches.yaml"])
def test_a_spec_of_the_harness_is_checked_once(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what its bytes say, and read anew where they, or the code, change or what is kept is damaged."""
    path = default_folder() / name
    (made,) = load_specs((path,))
    with monkeypatch.context() as unable:
        unable.setattr(kept, "parse", None)
        (again,) = load_specs((path,))
        assert (again.model, again.source) == (made.model, made.source)
        assert again.graph is None or (made.graph is not None and again.graph.spec == made.graph.spec)
        with pytest.raises(SpecError, match="not callable"):
            load_specs((own_spec("Neg"),))
        (place,) = (folder.parent / "sources").iterdir()
        data = place.read_bytes()
        for damaged in (data.replace(b"source", b"course"), data[:-1]):
            place.write_bytes(damaged)
            with pytest.raises(SpecError, match="not callable"):
                load_specs((path,))
        place.write_bytes(data)
        load_specs((path,))
        unable.setattr(digests, "code", lambda *_: b"other")
        with pytest.raises(SpecError, match="not callable"):
            load_specs((path,))


def test_expectations_and_sweeps_of_families_are_kept_as_they_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expectations._parsed.cache_clear()  # earlier tests read them
    made = load_expectations()
    expectations._parsed.cache_clear()
    sweeps = {name: family_sweeps.family_sweeps.__wrapped__(name) for name in family_sweeps.families()}
    monkeypatch.setattr(kept, "parse", None)
    again = load_expectations()
    assert [each.entry for each in again.entries] == [each.entry for each in made.entries]
    assert sweeps == {name: family_sweeps.family_sweeps.__wrapped__(name) for name in sweeps}


def test_a_file_that_is_kept_as_one_thing_is_not_taken_for_another(folder: Path) -> None:
    spec, entries = own_spec("Round"), default_folder() / "expectations" / "ml_cpu.yaml"
    load_specs((spec,))
    expectations._parsed.cache_clear()
    load_expectations((entries,))
    with pytest.raises(SpecError, match="should be a list of entries"):
        load_expectations((spec,))
    with pytest.raises(SpecError, match="should be a mapping"):
        load_specs((entries,))


def test_what_is_kept_is_made_of_strict_types_alone() -> None:
    assert STRICT_TYPES["harness.specs.reading.schema", "Spec"] is Spec
    for key in (
        ("harness.specs.reading.source", "Source"),
        ("os", "system"),
        ("harness.specs.cache.kept", "put"),
    ):
        with pytest.raises(KeyError):
            STRICT_TYPES[key]


def test_with_operators_of_ones_own_specs_are_checked_each_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "OWN_MODULES", (Path("own.py"),))
    load_specs((own_spec("Round"),))
    assert not (folder.parent / "sources").exists()
