"""Libraries that onnxruntime itself is asked to load, compiled here: of another plugin interface, without
devices, of another architecture. Each costs its target one line and exit code 3."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import need
from tests.running import harness, lines_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries of Linux")
# The first member of OrtApi is CreateStatus: onnxruntime_c_api.h.
INTERFACE = """
#include <stddef.h>
typedef struct { const void* (*GetApi)(unsigned); const char* (*GetVersionString)(void); } Base;
typedef void* (*CreateStatus)(int, const char*);
void* ReleaseEpFactory(void* factory) { return NULL; }
void* CreateEpFactories(const char* name, const Base* base, const void* log, void** made, size_t most, size_t* number) {
  const CreateStatus* api = base->GetApi(%d);
  %s
}
"""
LIBRARIES = {
    "an interface that is older than plugins": (
        "void* GetProvider(void) { return 0; }",
        "its library is no plugin of ONNX Runtime, it exports no CreateEpFactories; name the library of an "
        "execution provider that is built for this machine and this release",
    ),
    "an interface of a later onnxruntime": (
        INTERFACE % (9999, "return api[0](1, NULL);"),
        "registering its library ended the worker (SIGSEGV): The requested API version [9999] is not available, "
        "only API versions [1, ",
    ),
    "an interface that the library itself refuses": (
        INTERFACE % (1, 'return api[0](1, "built for\\nversion 1 of the interface");'),
        "built for version 1 of the interface; name the library of an execution provider that is built for this "
        "machine and this release",
    ),
    "no provider": (INTERFACE % (1, "*number = 0; return NULL;"), "lists no device on this machine"),
}


def compiled(folder: Path, source: str) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        need("compiler", "install a C compiler, cc")
    (folder / "plugin.c").write_text(source, encoding="utf-8")
    library = folder / "libplugin.so"
    command = [compiler or "", "-shared", "-fPIC", "-o", str(library), str(folder / "plugin.c")]
    subprocess.run(command, check=True, capture_output=True)
    return library


def reason(folder: Path, target: str) -> str:
    """Run a target that cannot be; return the one reason that its run states."""
    ended = harness("run", "-t", target, "-k", "Round@11:case=documented_onnx", "-o", folder / "run")
    assert ended.code == 3, ended.err
    said = str(lines_of(folder / "run")[0]["targets"][target]["unavailable"])
    assert "\n" not in said
    assert " ".join(ended.out.split()).count("is not available here: ") == 1
    return said


@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_library_of_another_interface(tmp_path: Path, kind: str) -> None:
    source, said = LIBRARIES[kind]
    target = f"plugin={compiled(tmp_path, source)}"
    told = reason(tmp_path, target)
    assert told.startswith(f"target {target!r}: ")
    assert said in told


def test_a_library_of_another_architecture(tmp_path: Path) -> None:
    library = compiled(tmp_path, LIBRARIES["no provider"][0])
    content = bytearray(library.read_bytes())
    content[18:20] = (0xF3).to_bytes(2, "little")
    library.write_bytes(content)
    assert f"{library} is for RISC-V, and this machine is " in reason(tmp_path, f"plugin={library}")


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("ggml@1", 2, "'1' is no release of onnxruntime-ggml; write for example 0.2.0"),
        ("ggml,provider=other", 2, "bad option 'provider=other'; allowed, each once: device=…, option.KEY=…"),
        ("plugin=", 2, "name the shared library of an execution provider: plugin=PATH"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_usage(
    tmp_path: Path, target: str, code: int, said: str
) -> None:
    ended = harness("run", "-t", target, "-k", "Round@11:case=documented_onnx", "-o", tmp_path / "run")
    assert ended.code == code
    assert len(ended.err.splitlines()) == 1
    assert said in ended.err
    assert not (tmp_path / "run").exists()
