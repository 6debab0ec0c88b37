"""Targets with a plugin: names and options, what is wrong with a library, and what its worker says."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.model.errors import TargetUnavailable, UsageError
from harness.model.reference.kernels import registered
from harness.model.target_info import TargetInfo
from harness.results.summary import target_facts
from harness.run.target_info import target_info
from harness.targets import plugins
from harness.targets.launches import launch
from harness.targets.launching import Hello
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target, started_by, starts_what_it_names
from harness.targets.runtimes.projects import PLUGINS
from harness.targets.target import greeted
from harness.worker import plugin_worker
from tests.running import harness, lines_of, results_of

FORMATS = ("html", "markdown", "junit", "ctrf", "csv")
STANDIN = '''
"""An onnxruntime that lists the devices it is told to, in place of one with a plugin."""
import json, os, signal
from types import SimpleNamespace as Some
__version__ = os.environ["STANDIN_VERSION"]
_found = []
class InferenceSession:
    def __init__(self, model, options=None, **others):
        raise RuntimeError("no such option")
    if __version__ >= "1.24":
        def get_provider_graph_assignment_info(self): ...
class SessionOptions:
    def add_provider_for_devices(self, devices, options): ...
def set_default_logger_severity(level): ...
def get_available_providers(): return ["CPUExecutionProvider"]
def _device(name, kind, number):
    hardware = Some(type=Some(name=kind), vendor="Maker", vendor_id=0x8086, device_id=number, metadata={})
    return Some(ep_name=name, ep_vendor="Author", ep_metadata={"number": f"n{number}"}, device=hardware)
def get_ep_devices(): return [_device("CPUExecutionProvider", "CPU", 0), *_found]
def register_execution_provider_library(name, path):
    what = json.loads(os.environ["STANDIN_DEVICES"])
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if isinstance(what, str):
        raise RuntimeError(what)
    _found.extend(_device(each.replace("NAME", name), kind, number) for each, kind, number in what)
'''


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what starts a worker on a stand-in for onnxruntime that lists some devices, and returns its
    greeting."""
    (tmp_path / "onnxruntime.py").write_text(STANDIN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def start(devices: str, options: str = "", version: str = "1.31.1") -> Any:
        monkeypatch.setenv("STANDIN_DEVICES", devices)
        monkeypatch.setenv("STANDIN_VERSION", version)
        target = parse_target(f"plugin={shared_library()}{options}")
        pool = WorkerPool(launch(target), size=1, timeout=60)
        try:
            hello = pool.probe()
        finally:
            pool.close()
            start.restarts = pool.restarts
        return greeted(target, hello), hello.device

    return start


def shared_library() -> Path:
    """Return a shared library of this machine that is no plugin."""
    import numpy._core._multiarray_umath as library

    return Path(library.__file__)


def test_a_library_has_options_of_its_own() -> None:
    target = parse_target(
        "plugin=/some/libmine.so,device=GPU,provider=Mine,option.cache=/tmp,option.load=a=b"
    )
    assert target.provider == "Mine"
    assert target.plugin == plugins.Plugin(
        Path("/some/libmine.so"), None, None, "Mine", "GPU", {"cache": "/tmp", "load": "a=b"}
    )
    assert parse_target("plugin=/a@b/lib.so").plugin.library == Path("/a@b/lib.so")
    assert parse_target("plugin=lib.so").provider == plugins.UNKNOWN


def test_packages_have_targets_by_name() -> None:
    assert [(name, project.name, project.provider) for name, project in PLUGINS.items()] == [
        ("openvino", "onnxruntime-ep-openvino", "OpenVINOExecutionProvider"),
        ("ggml", "onnxruntime-ggml", "ggml"),
        ("webgpu", "onnxruntime-ep-webgpu", "WebGpuExecutionProvider"),
    ]
    target = parse_target("ggml@0.2.0,device=0")
    assert target.plugin is not None
    assert (target.plugin.release, target.plugin.device, target.provider, target.release) == (
        "0.2.0",
        "0",
        "ggml",
        None,
    )
    assert parse_target("webgpu").plugin.release is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plugin=", "name the shared library of an execution provider: plugin=PATH"),
        ("plugin", "unknown target 'plugin'"),
        (
            "plugin=a.so,threads=2",
            "bad option 'threads=2'; allowed, each once: device=…, provider=…, option.KEY=…",
        ),
        ("plugin=a.so,option.=2", "bad option 'option.=2'"),
        ("plugin=a.so,option.a=", "bad option 'option.a='"),
        ("plugin=a.so,device=0,device=1", "bad option 'device=1'"),
        ("plugin=a.so,provider=CPUExecutionProvider", "CPUExecutionProvider is not a plugin's"),
        ("ggml,provider=x", "bad option 'provider=x'; allowed, each once: device=…, option.KEY=…"),
        ("ggml@ort-1.2.0", "'ort-1.2.0' is no release of onnxruntime-ggml; write for example 0.2.0"),
        ("ggml@", "'' is no release of onnxruntime-ggml"),
        ("gmml", "unknown target 'gmml'"),
    ],
)
def test_wrong_names_and_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plugin=a.so,option.x=y", ["plugin", "option"]),
        ("ggml,option.cache_dir=/home", ["option"]),
        ("ggml@0.2.0,device=1", []),
        ("cpu@ssh:pc,python=py", ["host", "python"]),
    ],
)
def test_a_library_and_its_options_are_not_started_by_a_file(text: str, parts: list[str]) -> None:
    assert started_by(text) == parts
    assert starts_what_it_names(text) == bool(parts)


HERE, OTHER = (62, 183) if sys.platform == "linux" and platform.machine() == "x86_64" else (183, 62)


def elf(kind: int = 3, machine: int = HERE) -> bytes:
    return (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + kind.to_bytes(2, "little")
        + machine.to_bytes(2, "little")
        + bytes(44)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="ELF")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        (b"", "is empty"),
        (b"a text\n", "is no shared library"),
        (elf()[:18], "is a cut off ELF file"),
        (elf(kind=2), "is an ELF file and no shared library"),
        (elf(machine=OTHER), "is for "),
        (b"MZ" + bytes(80), "is a Windows DLL, which this system does not load"),
        (b"\xcf\xfa\xed\xfe" + bytes(80), "is a Mach-O library, which this system does not load"),
    ],
)
def test_what_is_no_library_for_this_machine_starts_no_worker(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "lib.so"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TargetUnavailable) as caught:
        launch(parse_target(f"plugin={path}"))
    said = str(caught.value)
    assert f"{path}: {message}" in said or f"{path} {message}" in said
    assert said.endswith(
        "; name the shared library of an execution provider, built for this machine: plugin=PATH"
    )
    assert "\n" not in said


def test_a_library_for_this_machine_is_taken(tmp_path: Path) -> None:
    plugins.check_library(shared_library(), "plugin")


@pytest.mark.skipif(sys.platform == "win32", reason="devices")
def test_a_device_of_the_system_is_no_library() -> None:
    with pytest.raises(TargetUnavailable, match="is no regular file"):
        launch(parse_target("plugin=/dev/null"))


def test_a_run_on_what_is_no_plugin_ends_with_3_and_one_reason(tmp_path: Path) -> None:
    """The real onnxruntime is asked to register a shared library that exports no providers."""
    path = shared_library()
    ended = harness(
        "run", "-t", f"plugin={path}", "-k", "Round@22:sweep=empty;X=float16", "-o", tmp_path / "run"
    )
    assert ended.code == 3, ended.err
    ((name, info),) = lines_of(tmp_path / "run")[0]["targets"].items()
    assert name == f"plugin={path}"
    assert info["unavailable"] == (
        f"target {name!r}: its library is no plugin of ONNX Runtime, it exports no CreateEpFactories; "
        "name the library of an execution provider that is built for this machine and this release"
    )
    assert {result["outcome"] for result in results_of(tmp_path / "run").values()} == {"unavailable"}
    for form in FORMATS:
        ended = harness("report", tmp_path / "run", "--format", form, "-o", tmp_path / form)
        assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("devices", "options", "message", "starts"),
    [
        (
            "[]",
            "",
            "lists no device on this machine (onnxruntime 1.31.1); it needs hardware, and a driver, that it supports",
            1,
        ),
        ('[["A", "CPU", 0], ["B", "CPU", 0]]', "", "has several providers, A, B; name one with provider=", 1),
        ('[["A", "CPU", 0]]', ",provider=B", "lists devices of A, not of B; name that with provider=", 1),
        ('[["A", "CPU", 0]]', ",device=1", "has no device 1, it lists 0: Maker CPU 8086:0", 1),
        (
            '[["A", "CPU", 0]]',
            ",device=GPU",
            "has no device 'GPU', it lists 0: Maker CPU 8086:0; name one of these by its number",
            1,
        ),
        (
            '[["A", "GPU", 1], ["A", "GPU", 2]]',
            ",device=gpu",
            "has 2 devices 'gpu': 0: Maker GPU 8086:1; 1: Maker GPU 8086:2; name",
            1,
        ),
        ('[["CPUExecutionProvider", "CPU", 0]]', "", "lists no device on this machine", 1),
        ('[["A", "CPU", 0]]', ",option.a=b", "makes no session with option.a=b: no such option", 1),
        (
            '"libmissing.so: cannot open"',
            "",
            "its library cannot be registered: libmissing.so: cannot open; name",
            1,
        ),
        (
            '[["DmlExecutionProvider", "CPU", 0]]',
            "",
            "its library calls its provider DmlExecutionProvider, which is no plugin's",
            0,
        ),
        ('"crash"', "", "registering its library ended the worker (SIGSEGV)", 3),
    ],
)
def test_a_library_without_what_is_asked_says_so_in_one_line(
    standin: Any, devices: str, options: str, message: str, starts: int
) -> None:
    with pytest.raises(TargetUnavailable) as caught:
        standin(devices, options)
    said = str(caught.value)
    assert said.startswith(f"target 'plugin={shared_library()}{options}': {message}")
    assert "\n" not in said
    assert standin.restarts == starts


def test_an_onnxruntime_without_plugins_says_so(standin: Any) -> None:
    with pytest.raises(
        TargetUnavailable,
        match=r"onnxruntime 1\.23\.2 loads no plugins, or cannot tell .*; take 1\.24 or later",
    ):
        standin('[["A", "CPU", 0]]', version="1.23.2")


@pytest.mark.parametrize(
    ("options", "adapter"),
    [
        ("", "CPU 8086:0"),
        (",device=1", "GPU 8086:7"),
        (",device=gpu", "GPU 8086:7"),
        (",device=n9", "NPU 8086:9"),
    ],
)
def test_devices_are_named_by_number_type_and_metadata(standin: Any, options: str, adapter: str) -> None:
    target, device = standin('[["Mine", "CPU", 0], ["Mine", "GPU", 7], ["Mine", "NPU", 9]]', options)
    assert target.provider == "Mine"
    assert device["adapter"] == adapter
    assert (device["vendor"], device["plugin_vendor"], device["plugin"]) == (
        "Maker",
        "Author",
        shared_library().name,
    )


def test_a_library_is_registered_under_the_name_that_is_given(standin: Any) -> None:
    assert standin('[["NAME", "CPU", 0]]', ",provider=mine")[0].provider == "mine"
    stem = shared_library().name.partition(".")[0].removeprefix("lib")
    assert standin('[["NAME", "CPU", 0]]')[0].provider == stem


def test_where_the_library_lies_is_not_told() -> None:
    device = SimpleNamespace(
        ep_metadata={"library_path": "/home/me/lib.so", "version": "1"},
        device=SimpleNamespace(metadata={"a": "b"}),
    )
    assert plugin_worker.metadata_of(device, "/home/me/lib.so") == {"a": "b", "version": "1"}


def test_what_the_worker_said_is_found_among_what_libraries_print() -> None:
    link = plugins.Refusals("plugin=x")
    printed = "INFO loaded\nharness: lists no device\nReleaseEp"
    assert link.refusal("exit code 87", printed) == "target 'plugin=x': lists no device"
    assert link.final("exit code 87", printed)
    assert not link.final("SIGSEGV", "INFO loaded")
    assert not link.broken("SIGSEGV", "")


def test_kernels_of_an_unknown_provider_are_unknown() -> None:
    assert registered(TargetInfo("ggml", onnxruntime="1.30.0"), "Add", 14, {"T": "float32"}) == "unknown"


def test_the_header_has_library_package_and_device() -> None:
    device = {
        "provider": "ggml",
        "plugin": "lib.so",
        "plugin_sha256": "ab",
        "plugin_vendor": "Author",
        "vendor": "Maker",
    }
    hello = Hello(
        2,
        "1.30.0",
        ("ggml",),
        "3.11.7",
        "2.4.6",
        "Linux x86_64",
        {**device, "adapter": "GPU 1:2", "device_metadata": {"a": "b"}},
    )
    info = target_info(parse_target("ggml@0.2.0,device=0"), hello, "environment with onnxruntime-ggml 0.2.0")
    assert (info.provider, info.plugin, info.plugin_sha256, info.plugin_vendor) == (
        "ggml",
        "lib.so",
        "ab",
        "Author",
    )
    assert (info.package, info.package_version, info.device_metadata) == (
        "onnxruntime-ggml",
        "0.2.0",
        {"a": "b"},
    )
    facts = dict(target_facts(info))
    assert facts["plugin"] == "lib.so of Author"
    assert facts["package"] == "onnxruntime-ggml 0.2.0"
    assert facts["adapter"] == "Maker GPU 1:2"
    assert facts["device metadata"] == "a=b"
    own = target_info(parse_target("plugin=lib.so,provider=ggml"), hello, "this interpreter")
    assert (own.package, own.package_version, own.plugin) == (None, None, "lib.so")
