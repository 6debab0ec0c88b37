"""The bare loop for DirectML's own operators: nothing is used again, as in a first program written against
the documents.

Runs in the Windows Python. Reads u32 length and a pickle of (description, bytes of each input, bytes of the
right output) a case, says `ready`, waits for a line, says how many seconds all cases took, waits for another.
Each case makes its operator, initializer, binding table and buffers, and releases them.
"""

from __future__ import annotations

import importlib
import pickle
import struct
import sys
import time
from ctypes import byref, c_uint32, c_void_p

boot = sys.modules["harness_boot"]
import numpy as np  # noqa: E402

boot.before_sessions()
package = "harness_boot_modules."
com = importlib.import_module(package + "com")
api_module = importlib.import_module(package + "directml.api")
backend = importlib.import_module(package + "directml.backend")
gpu_module = importlib.import_module(package + "directml.gpu")
layouts = importlib.import_module(package + "directml.layouts")
operators = importlib.import_module(package + "directml.operators")


def make(device: int, slot: int, interface: str, types: tuple, *arguments: object) -> int:
    made = c_void_p()
    com.check(
        com.method(device, slot, *types, c_void_p, c_void_p)(
            *arguments, byref(com.Guid(interface)), byref(made)
        ),
        "create",
    )
    return int(made.value or 0)


def bind(table: int, slot: int, parts: list) -> object:
    bindings = api_module.Bindings(len(parts))
    com.method(table, slot, c_uint32, c_void_p, restype=None)(len(parts), bindings.of(parts))
    return bindings


def map_buffer(buffer: int) -> int:
    mapped = c_void_p()
    com.check(com.method(buffer, 8, c_uint32, c_void_p, c_void_p)(0, None, byref(mapped)), "Map")
    return int(mapped.value or 0)


def run(gpu: object, api: object, description: object, inputs: list) -> bytes:
    """Run one operator; these need no temporary and no persistent memory."""
    compiled = api.compile(description)
    one = byref(c_void_p(compiled))
    initializer = make(api.device, 10, api_module.INITIALIZER, (c_uint32, c_void_p), 1, one)
    needs = layouts.BindingProperties()
    com.method(compiled, 8, c_void_p, restype=c_void_p)(byref(needs))
    gpu.use_descriptors(2 * max(1, needs.descriptors))
    desc = layouts.BindingTableDesc(initializer, gpu.cpu, gpu.gpu, max(1, needs.descriptors))
    table = make(api.device, 12, api_module.BINDING_TABLE, (c_void_p,), byref(desc))
    record = com.method(api._recorder, 8, c_void_p, c_void_p, c_void_p, restype=None)
    record(gpu.list, initializer, table)
    gpu.order_writes()
    desc.dispatchable = compiled
    com.check(com.method(table, 12, c_void_p)(byref(desc)), "Reset")
    made, bound = [table, initializer, compiled], []
    for data in inputs:
        size = (len(data) + 3) & ~3
        buffer, upload = (
            gpu.create_buffer(size, gpu_module.DEFAULT),
            gpu.create_buffer(size, gpu_module.UPLOAD),
        )
        gpu_module.ctypes.memmove(map_buffer(upload), data, len(data))
        gpu.transition(buffer, gpu_module.COMMON, gpu_module.COPY_DEST)
        gpu.copy(buffer, 0, upload, 0, size)
        gpu.transition(buffer, gpu_module.COPY_DEST, gpu_module.UNORDERED_ACCESS)
        bound.append((buffer, 0, size))
        made += [buffer, upload]
    size = description.tensors["OutputTensor"].bytes
    output, readback = (
        gpu.create_buffer(size, gpu_module.DEFAULT),
        gpu.create_buffer(size, gpu_module.READBACK),
    )
    kept = bind(table, 8, bound), bind(table, 9, [(output, 0, size)])
    record(gpu.list, compiled, table)
    gpu.transition(output, gpu_module.UNORDERED_ACCESS, gpu_module.COPY_SOURCE)
    gpu.copy(readback, 0, output, 0, size)
    gpu.flush()
    data = gpu_module.ctypes.string_at(map_buffer(readback), size)
    com.release(*made, output, readback)
    del kept
    return bytes(data)


def main() -> None:
    stream = sys.stdin.buffer
    (length,) = struct.unpack("<I", stream.read(4))
    cases = pickle.loads(stream.read(length))
    gpu = gpu_module.Gpu(gpu_module.create_d3d12_device(0, debug=False))
    api = api_module.Api(gpu, backend.wheel_path(), operators.LEVELS["1_0"])
    print("ready", flush=True)
    stream.readline()
    started = time.perf_counter()
    outputs = [run(gpu, api, operators.Description(description), inputs) for description, inputs, _ in cases]
    seconds = time.perf_counter() - started
    for output, (_, _, expected) in zip(outputs, cases, strict=True):
        assert np.frombuffer(output, np.uint8)[: len(expected)].tobytes() == expected
    print(seconds, flush=True)
    stream.readline()


main()
