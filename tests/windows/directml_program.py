"""A program for the Windows Python: runs operators through the worker's backend and says what that left
behind. Python 3.8.

`growth N`: reference counts and committed bytes after a thousand operators, then bytes each 250 up to N;
`unwritten N`: what an output holds that no dispatch wrote;
`messages N`: N messages of a debug layer. As a worker: `fault`, a fault in a call into DirectML; `removed`, a
Direct3D 12 device that says it was removed.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import sys
from ctypes import wintypes

boot = sys.modules["harness_boot"]
import numpy as np  # noqa: E402

boot.before_sessions()
backend_module = importlib.import_module("harness_boot_modules.directml.backend")
com = importlib.import_module("harness_boot_modules.com")
MEMBERS = ["InputTensor:input", "IndicesTensor:input", "OutputTensor:output", "Axis:uint"]


class Memory(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS."""

    _fields_ = [
        ("size", wintypes.DWORD),
        ("faults", wintypes.DWORD),
        *(
            (name, ctypes.c_size_t)
            for name in (
                "peak_set",
                "set",
                "peak_paged",
                "paged",
                "peak_nonpaged",
                "nonpaged",
                "committed",
                "peak",
            )
        ),
    ]


def committed_bytes() -> int:
    facts = Memory(ctypes.sizeof(Memory))
    kernel = com.library("kernel32")
    ask = com.function(
        kernel, "K32GetProcessMemoryInfo", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32
    )
    assert ask(ctypes.c_void_p(-1), ctypes.byref(facts), facts.size)
    assert facts.committed
    return facts.committed


def references(pointer: int) -> int:
    com.method(pointer, 1, restype=ctypes.c_uint32)()
    return com.method(pointer, 2, restype=ctypes.c_uint32)()


def view(dtype: str, sizes: list) -> dict:
    size = int(np.prod(sizes)) * np.dtype(dtype).itemsize
    return {
        "dtype": dtype,
        "sizes": sizes,
        "strides": None,
        "flags": 0,
        "bytes": (size + 3) & ~3,
        "alignment": 0,
    }


def gather(rows: int, columns: int, number: int) -> tuple:
    data = np.arange(number, number + rows * columns, dtype=np.float32).reshape(rows, columns)
    indices = np.full((rows, 3), number % columns, np.int64)
    tensors = {
        "InputTensor": view("float32", [rows, columns]),
        "IndicesTensor": view("int64", [rows, 3]),
        "OutputTensor": view("float32", [rows, 3]),
    }
    given = {
        "operator": "DML_OPERATOR_GATHER_ELEMENTS", "number": 107, "members": MEMBERS, "tensors": tensors,
        "attributes": {"Axis": 1 if number % 7 else 9}, "inputs": ["InputTensor", "IndicesTensor"], "outputs": ["OutputTensor"],
        "in_place": None, "output_shapes": [[rows, 3]],
    }  # fmt: skip
    return given, [data, indices]


def run(backend: object, number: int) -> bool:
    """Create, compile, initialize and run one operator; every seventh is refused. Say whether its output is
    right."""
    given, arrays = gather(2 + number % 50, 2 + number % 31, number)
    try:
        session = backend.session({}, json.dumps(given).encode())
    except OSError:
        return number % 7 == 0
    ((output, _),) = backend.run(session, {"outputs": [["OutputTensor", 1]]}, arrays, 0)
    return output.tobytes() == np.take_along_axis(arrays[0], arrays[1], 1).tobytes()


def growth(count: int) -> dict:
    backend = backend_module.DirectML(None, 0, debug=False)
    wrong = sum(not run(backend, number) for number in range(1000))
    (api,) = backend._apis.values()
    pointers = {
        "d3d12": backend._gpu.device,
        "directml": api.device,
        "queue": backend._gpu._queue,
        "list": backend._gpu.list,
    }
    history = []
    before = {name: references(pointer) for name, pointer in pointers.items()}, committed_bytes()
    for number in range(1000, count):
        wrong += not run(backend, number)
        if number % 250 == 249:
            history.append(committed_bytes())
    after = {name: references(pointer) for name, pointer in pointers.items()}
    return {"wrong": wrong, "references": [before[0], after], "committed": [before[1], *history]}


def unwritten(count: int) -> dict:
    """Run an operator `count` times, and then once with its dispatch left out: the bytes of the last
    output."""
    backend = backend_module.DirectML(None, 0, debug=False)
    given, arrays = gather(2, 3, 1)
    session = backend.session({}, json.dumps(given).encode())
    outputs = [
        backend.run(session, {"outputs": [["OutputTensor", 1]]}, arrays, 0)[0][0].tobytes()
        for _ in range(count)
    ]
    (api,) = backend._apis.values()
    api._record = lambda *_: None
    ((output, _),) = backend.run(session, {"outputs": [["OutputTensor", 1]]}, arrays, 0)
    return {"distinct": len(set(outputs)), "last": output.tobytes().hex()}


def messages(count: int) -> dict:
    """Read `count` messages of a queue that this program acts out, since Wine has no debug layer."""
    debugging = importlib.import_module("harness_boot_modules.directml.debugging")
    texts = [f"message {number} \u00e9".encode() for number in range(count)]
    cleared = []

    def get(_: int, number: int, message: int, length: int) -> int:
        size = ctypes.sizeof(debugging.Message)
        if message:
            made = debugging.Message(0, 2, number, texts[number], len(texts[number]) + 1)
            ctypes.memmove(message, ctypes.byref(made), size)
        ctypes.c_size_t.from_address(length).value = size
        return 0

    def query(this: int, _: int, found: int) -> int:
        ctypes.c_void_p.from_address(found).value = this
        return 0

    pointer, quad, prototype = ctypes.c_void_p, ctypes.c_uint64, ctypes.WINFUNCTYPE
    table = (pointer * 9)()
    functions = {
        0: prototype(ctypes.c_int32, pointer, pointer, pointer)(query),
        4: prototype(None, pointer)(lambda _: cleared.append(True)),
        5: prototype(ctypes.c_int32, pointer, quad, pointer, pointer)(get),
        8: prototype(quad, pointer)(lambda _: 0 if cleared else count),
    }
    for slot, made in functions.items():
        table[slot] = ctypes.cast(made, pointer)
    this = (pointer * 1)(ctypes.addressof(table))
    queue = debugging.InfoQueue(ctypes.addressof(this))
    return {"first": queue.take(), "second": queue.take()}


def serve(path: str, change: object) -> None:
    """Be a worker whose backend is changed before its first unit; `path` is the file with the frames."""
    spec = importlib.util.spec_from_file_location("harness_worker", path)
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)

    def make_backend() -> object:
        backend = backend_module.DirectML(None, 0, debug=False)
        change(backend)
        return backend

    worker.serve(worker.Channel(), make_backend)


def fault(backend: object) -> None:
    backend._new_session = lambda model: ctypes.string_at(0)


def removed(backend: object) -> None:
    backend._gpu._removed = lambda: -0x7785FFFA  # DXGI_ERROR_DEVICE_HUNG


if __name__ == "__main__":
    if sys.argv[1].endswith("worker.py"):
        serve(sys.argv[1], {"fault": fault, "removed": removed}[sys.argv[2]])
    else:
        actions = {"growth": growth, "unwritten": unwritten, "messages": messages}
        print(json.dumps(actions[sys.argv[1]](int(sys.argv[2]))), flush=True)
