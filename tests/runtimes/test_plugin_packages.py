"""Plugins of the package index: installed, registered, proven to have run what they run, and told apart from
those without a device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from harness.model.cache_folder import CACHE_ENV
from harness.targets.launches import launch
from harness.targets.registry import parse_target
from tests.models import MODELS
from tests.running import complaint, harness, lines_of, results_of

pytestmark = pytest.mark.releases

FORMATS = ("html", "markdown", "junit", "ctrf", "csv")
GGML = "ggml@0.2.0"
QUERIES = (
    "Add@14:case=documented_onnx_backend",
    "MatMul@13:case=documented_numpy",
    "GatherND@13:case=documented_onnx_1",
)


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the environments of these tests be in a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_ENV, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run on the real ggml of the package index, of which its expectations know what is not
    placed."""
    folder = tmp_path_factory.mktemp("ggml") / "run"
    queries = [part for query in QUERIES for part in ("-k", query)]
    ended = harness("run", "-t", GGML, *queries, "-o", folder)
    assert ended.code == 0, ended.err
    return folder


def test_ggml_is_proven_to_have_run_what_it_runs_and_nothing_else(ran: Path) -> None:
    found = {
        (result["operator"], result["outcome"], result["placed_on"]) for result in results_of(ran).values()
    }
    assert found == {
        ("Add", "pass", "ggml"),
        ("MatMul", "pass", "ggml"),
        ("GatherND", "not_placed", "CPUExecutionProvider"),
    }


def test_the_header_says_which_library_and_device_it_was(ran: Path) -> None:
    info = lines_of(ran)[0]["targets"][GGML]
    assert (info["provider"], info["package"], info["package_version"]) == (
        "ggml",
        "onnxruntime-ggml",
        "0.2.0",
    )
    assert info["onnxruntime"].startswith(("1.29.", "1.30."))
    assert info["runtime"] == "environment with onnxruntime-ggml 0.2.0"
    assert info["plugin_vendor"] == "onnxruntime-ggml"
    assert len(info["plugin_sha256"]) == 64
    assert info["adapter"].startswith("CPU ")
    assert info["device_metadata"] == {"backend": "ggml", "version": "0.2.0"}


@pytest.mark.parametrize("form", FORMATS)
def test_reports_of_an_unknown_provider_are_made(ran: Path, tmp_path: Path, form: str) -> None:
    ended = harness("report", ran, "--format", form, "-o", tmp_path / "report")
    assert ended.code == 0, ended.err
    assert "ggml" in (tmp_path / "report").read_text(encoding="utf-8")


def test_a_model_runs_whole_though_its_compiled_nodes_cannot_be_written(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    onnx.save(MODELS["transformer_block"](), model)
    harness("model", model, "-t", GGML, "-o", tmp_path / "out")
    whole = json.loads((tmp_path / "out" / "model.json").read_text())["whole"]
    assert [(each["level"], each["error"]) for each in whole] == [
        (level, "") for level in ("off", "basic", "extended", "all")
    ]


def test_a_library_in_a_file_of_ones_own_is_the_package_s(ran: Path, tmp_path: Path) -> None:
    """The library of the package, by its path, in this interpreter's onnxruntime; its provider's name is the
    one that is given."""
    asked = launch(parse_target(GGML)).argv[-1]
    path = json.loads(asked)["library"]
    ended = harness("run", "-t", f"plugin={path},provider=mine", "-k", QUERIES[0], "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    assert {result["placed_on"] for result in results_of(tmp_path / "run").values()} == {"mine"}
    alone = harness("run", "--resume", "-o", tmp_path / "run")
    assert alone.code == 2
    assert "names what it starts: repeat the targets on the command line" in complaint(alone)


def test_a_release_of_a_plugin_that_is_not_published_is_refused(tmp_path: Path) -> None:
    ended = harness("run", "-t", "ggml@9.9.9", "-k", "Round", "-o", tmp_path / "run")
    assert ended.code == 2
    assert complaint(ended).startswith(
        "the package index has no onnxruntime-ggml 9.9.9 for this machine; near: "
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["openvino@1.8.1", "webgpu@0.4.0"])
def test_a_plugin_runs_or_says_that_it_has_no_device(name: str, tmp_path: Path) -> None:
    """Intel's has a device on an Intel processor alone, WebGPU's with a Vulkan driver."""
    ended = harness("run", "-t", name, "-k", "Round@22:sweep=empty;X=float32", "-o", tmp_path / "run")
    info = lines_of(tmp_path / "run")[0]["targets"][name]
    if ended.code == 3:
        said = f"target {name!r}: lists no device on this machine (onnxruntime "
        assert info["unavailable"].startswith(said)
    else:
        passed = [result for result in results_of(tmp_path / "run").values() if result["outcome"] == "pass"]
        assert passed
        assert {result["placed_on"] for result in passed} == {parse_target(name).provider}
        assert len(info["plugin_sha256"]) == 64


def test_an_environment_with_a_plugin_is_listed_and_pruned_by_its_name(ran: Path) -> None:
    (line,) = [line for line in harness("runtimes", "list").out.splitlines() if line.startswith(f"{GGML}: ")]
    assert line.endswith(" MB, whole")
    ended = harness("runtimes", "prune", "ggml@0.1.0")
    assert (ended.code, complaint(ended)) == (
        2,
        "no environment for onnxruntime-ggml 0.1.0 is installed; installed: ggml@0.2.0",
    )
    assert harness("runtimes", "prune", GGML).out == f"removed: {GGML}\n"
    ended = harness("runtimes", "prune", "ggml")
    assert (ended.code, complaint(ended)) == (
        2,
        "no environment for onnxruntime-ggml is installed; installed: none",
    )
