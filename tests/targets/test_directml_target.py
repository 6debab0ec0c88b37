"""The target `directml`: its names and options, and the command that starts its worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.model.errors import TargetUnavailable, UsageError
from harness.model.target_info import DIRECTML
from harness.targets import launches
from harness.targets.launches import launch
from harness.targets.registry import parse_target, parse_targets
from harness.targets.windows import runtime
from harness.targets.windows.releases import usable_levels


def test_names_take_releases_and_levels() -> None:
    assert parse_target("directml").provider == DIRECTML
    assert parse_target("directml@windows").release is None
    assert parse_target("directml@ort-1.22").release == parse_target("dml@ort-1.22").release
    assert parse_target("directml@level-5_0,debug=1").options == {"debug": "1"}
    names = [target.name for target in parse_targets(["directml@levels,device_id=1"])]
    assert names == [f"directml@level-{level},device_id=1" for level in usable_levels()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("directml,fast=1", "bad option 'fast=1'; allowed, each once: device_id=…, dll=…, debug=…"),
        ("directml,device_id=one", "device_id is the number of a DXGI adapter, not 'one'"),
        ("directml,debug=yes", "debug is 0 or 1, not 'yes'"),
        (
            "directml,dll=/no/such.dll",
            "/no/such.dll: No such file or directory; name a DirectML.dll for 64-bit Windows",
        ),
        (f"directml,dll={__file__}", "is not a Windows DLL; name a DirectML.dll for 64-bit Windows"),
        (
            f"directml@level-5_0,dll={__file__}",
            "a DLL of one's own and that of a release; name one of the two",
        ),
        ("directml@level-1_0", "no usable release has 1_0 as its maximum level"),
        ("directml@levelsx", "unknown target 'directml@levelsx'"),
        ("directml@ssh:pc", "unknown target 'directml@ssh:pc'"),
        ("cpu@levels", "unknown target 'cpu@levels'"),
    ],
)
def test_wrong_names_and_options_are_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_targets([text])
    assert message in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="DirectML fuses nodes there")
def test_fusion_of_nodes_needs_windows() -> None:
    with pytest.raises(
        TargetUnavailable, match=r"leave graph_fusion=1 out, or name a Windows PC \(dml@ssh:HOST\)"
    ):
        launch(parse_target("dml,graph_fusion=1"))
    assert launch(parse_target("dml@ssh:pc,graph_fusion=1")).config["ep.dml.disable_graph_fusion"] == "0"


def test_the_worker_is_told_its_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dll = tmp_path / "DirectML.dll"
    dll.write_bytes(b"MZ")
    asked = []
    monkeypatch.setattr(
        launches.runtime,
        "launch",
        lambda worker, **other: asked.append((worker.name, other)) or (["python"], {}),
    )
    started = launch(parse_target(f"directml,device_id=2,dll={dll},debug=1"))
    assert asked == [
        (
            "worker.py",
            {"ort": None, "args": ["device_id=2", "debug=1"], "through": "directml_worker.py", "dll": dll},
        )
    ]
    assert (started.provider, started.config, started.provider_options) == (DIRECTML, {}, {})
    assert (runtime.BOOT.parent / "directml_worker.py").is_file()
