"""Packages with a plugin where the package index lacks them, does not answer, or has one whose library is not
its own."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from harness.model.errors import TargetUnavailable, UsageError
from harness.targets.runtimes import environments, wanted_release
from harness.targets.runtimes.projects import ONNXRUNTIME, PLUGINS
from tests.running import harness, lines_of
from tests.runtimes.conftest import RELEASE, forget
from tests.standin import write_index

GGML = PLUGINS["ggml"]
MODULE = """from pathlib import Path
def library_path():
    return LIBRARY
"""


def reason(folder: Path, target: str) -> str:
    """Run a target that is not here and return the reason in the run's header."""
    ended = harness("run", "-t", target, "-k", "Round@11:case=documented_onnx", "-o", folder)
    assert ended.code == 3, ended.err
    return str(lines_of(folder)[0]["targets"][target]["unavailable"])


def test_a_package_that_the_index_lacks_is_said_with_another_way(
    empty_cache: Path, standins: None, tmp_path: Path
) -> None:
    said = "the package index has no onnxruntime-ggml for this machine; name the library itself, -t plugin=PATH, where you have it"
    assert reason(tmp_path / "run", "ggml") == said
    assert not list(empty_cache.glob("onnxruntime-ggml*"))


def test_an_index_that_does_not_answer_is_said(empty_cache: Path, offline: None, tmp_path: Path) -> None:
    said = "onnxruntime-ggml 0.2.0: the package index does not answer; check the network (installed: none)"
    assert reason(tmp_path / "run", "ggml@0.2.0") == said


@pytest.mark.parametrize("text", ["ggml@x", "ggml@", "gmml", "gmml@0.2.0", "openvino@1"])
def test_what_is_no_environment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no release of onnxruntime"):
        wanted_release.parse_label(text)


def test_environments_are_called_by_release_or_by_plugin() -> None:
    assert wanted_release.parse_label("1.22") == (ONNXRUNTIME, "1.22")
    assert wanted_release.parse_label("ggml@0.2.0") == (GGML, "0.2.0")
    assert wanted_release.parse_label("ggml") == (GGML, None)


def index_with_plugin(folder: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package index have stand-ins: onnxruntime, NumPy, and ggml with a library at a place."""
    address = write_index(folder, {"1.30.0": ["py3"], "1.31.0": ["py3"]})
    place = folder / "simple" / GGML.name
    place.mkdir()
    wheel = "onnxruntime_ggml-0.2.0-py3-none-any.whl"
    info = "onnxruntime_ggml-0.2.0.dist-info"
    with zipfile.ZipFile(place / wheel, "w") as archive:
        archive.writestr("onnxruntime_ggml/__init__.py", MODULE.replace("LIBRARY", library))
        archive.writestr("onnxruntime_ggml/lib/libggml.so", "library")
        needs = "Requires-Dist: onnxruntime<1.31\n"
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: onnxruntime-ggml\nVersion: 0.2.0\n{needs}"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    (place / "index.html").write_text(
        f'<!DOCTYPE html><html><body><a href="{wheel}">{wheel}</a></body></html>\n', encoding="utf-8"
    )
    monkeypatch.setenv("PIP_INDEX_URL", address)
    forget()


def test_an_environment_has_the_onnxruntime_that_the_package_asks_for(
    empty_cache: Path, standins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.31.0 is newer, and the package's metadata excludes it; a library that has changed is found before
    use."""
    index_with_plugin(tmp_path / "index", "str(Path(__file__).parent / 'lib' / 'libggml.so')", monkeypatch)
    _, version = environments.prepare(None, project=GGML)
    ((found, stamp),) = environments.installed(GGML).items()
    assert (str(version), str(found), stamp.facts["onnxruntime"], stamp.facts[GGML.name]) == (
        "0.2.0",
        "0.2.0",
        "1.30.0",
        "0.2.0",
    )
    library = environments.library(version, GGML)
    assert library.read_text(encoding="utf-8") == "library"
    assert library.is_relative_to(empty_cache)
    assert environments.installed() == {}
    assert environments.faults(version, GGML) == ()
    library.write_text("another", encoding="utf-8")
    forget()
    (fault,) = environments.faults(version, GGML)
    assert fault.endswith("libggml.so has changed")


def test_a_library_from_elsewhere_is_not_kept(
    empty_cache: Path, standins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_with_plugin(tmp_path / "index", "'/elsewhere/libggml.so'", monkeypatch)
    with pytest.raises(
        TargetUnavailable, match=r"names a library that is not its own, /elsewhere/libggml\.so: unset"
    ):
        environments.prepare("0.2.0", project=GGML)
    assert environments.installed(GGML) == {}


def test_a_release_of_onnxruntime_is_pruned_beside_a_plugin(with_standin: Path, standins: None) -> None:
    (line,) = [line for line in harness("runtimes", "list").out.splitlines() if line.startswith("cpu@ort-")]
    assert RELEASE in line
    ended = harness("runtimes", "prune", "ggml")
    assert ended.code == 2
    assert ended.err == "harness: no environment for onnxruntime-ggml is installed; installed: none\n"
    assert with_standin.exists()
