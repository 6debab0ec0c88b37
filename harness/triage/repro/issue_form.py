"""The fields of ONNX Runtime's issue form that say where a failure was seen.

Source: `.github/ISSUE_TEMPLATE/08-general.yml` of microsoft/onnxruntime; an issue that the form makes has a heading
for each field, in this order.
"""

from __future__ import annotations

from harness.model.target_info import CPU, DML, TargetInfo
from harness.render.text import without_paths
from harness.targets.launches import THIS_INTERPRETER
from harness.triage.repro.failure import Failure

DESCRIBE, REPRODUCE, URGENCY = "Describe the issue", "To reproduce", "Urgency"
NO_RESPONSE = "_No response_"
OTHER = "Other / Unknown"
_PROVIDERS = {CPU: "Default CPU", DML: "DirectML"}
_ARCHITECTURES = {
    "x86_64": "X64",
    "amd64": "X64",
    "arm64": "ARM64",
    "aarch64": "ARM64",
    "x86": "X86",
    "i686": "X86",
}


def system_fields(failure: Failure) -> list[tuple[str, str]]:
    """Return the fields below "System information" with their values, none of which names this machine's paths."""
    info = failure.info
    return [
        ("Platform", _platform(failure)),
        ("OS Version", _system(failure)),
        ("ONNX Runtime Installation", "Released Package"),
        ("ONNX Runtime Version or Commit ID", info.onnxruntime or NO_RESPONSE),
        ("ONNX Runtime API", "Python"),
        ("Architecture", _architecture(info)),
        ("Execution Provider", _PROVIDERS.get(info.provider, OTHER)),
        ("Execution Provider Library Version", f"DirectML {info.directml}" if info.directml else NO_RESPONSE),
    ]


def other_facts(failure: Failure) -> list[tuple[str, str]]:
    """Return what the form does not ask for: adapter, options of provider and session, versions of Python and
    NumPy."""
    info, session = failure.info, failure.session
    options = ", ".join(f"{key}={value}" for key, value in session.provider_options.items())
    facts = (
        ("execution provider", info.provider),
        ("provider options", options),
        ("threads of the session", "" if session.threads == 1 else str(session.threads)),
        ("adapter", info.adapter),
        ("vendor", info.vendor),
        ("driver", info.driver),
        ("maximum feature level", info.max_feature_level),
        ("Python", info.python),
        ("NumPy", info.numpy),
        ("runtime", _runtime(failure)),
    )
    return [(name, without_paths(value)) for name, value in facts if value]


def _runtime(failure: Failure) -> str:
    if failure.wine:
        return "Wine on Linux, not Windows"
    return "" if failure.info.runtime == THIS_INTERPRETER else failure.info.runtime


def _platform(failure: Failure) -> str:
    if failure.wine:
        return OTHER
    platform = (failure.info.platform or "").lower()
    known = {"windows": "Windows", "linux": "Linux", "darwin": "Mac", "macos": "Mac"}
    return next((name for start, name in known.items() if platform.startswith(start)), OTHER)


def _system(failure: Failure) -> str:
    platform = without_paths(failure.info.platform or "") or OTHER
    return f"Wine on Linux, which presents itself as {platform}" if failure.wine else platform


def _architecture(info: TargetInfo) -> str:
    platform = (info.platform or "").lower()
    return next((name for word, name in _ARCHITECTURES.items() if word in platform), OTHER)
