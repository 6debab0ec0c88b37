"""The part of `repro.py` that calls DirectML itself: it stands in the template in the place of the part that asks
ONNX Runtime. The names above the mark are those of the whole script."""

import json
import os
import sys

import numpy as np

from harness.triage.repro.template import compared, failed, first_line, unknown

DEVICE_ID, DEBUG = 0, False
DESCRIPTION, INPUTS, OUTPUTS, MODULES = {}, [], [], {}


# <library>
def version():
    """Return the release of onnxruntime-directml whose DLL it would be, without loading it here: a crash must not be
    this process's."""
    from importlib import metadata

    if option("--dll"):
        return "of " + os.path.basename(option("--dll"))
    try:
        return "of onnxruntime-directml " + metadata.version("onnxruntime-directml")
    except metadata.PackageNotFoundError:
        return "?"


def option(name):
    """Return what follows an option of the command line, "" where it is not given."""
    given = sys.argv[1:]
    return given[given.index(name) + 1] if name in given[:-1] else ""


def load_modules():
    """Make a package of MODULES and return its `directml.backend`."""
    import types

    for name, text in MODULES.items():
        full = ".".join(["dml", *name.split(".")]) if name else "dml"
        module = types.ModuleType(full)
        is_package = name in ("", "directml")
        if is_package:
            module.__path__ = []
        module.__package__ = full if is_package else full.rpartition(".")[0]
        sys.modules[full] = module
        exec(compile(text, full, "exec"), module.__dict__)
    return sys.modules["dml.directml.backend"]


def open_device():
    """Return the device of DirectML, as the conformance harness opens it; raises OSError where it cannot be had."""
    if sys.platform != "win32":
        raise OSError("it needs Windows; `harness windows python repro.py` runs it on Linux")
    dll = os.path.abspath(option("--dll")) if option("--dll") else None
    if dll is not None and not os.path.isfile(dll):
        raise OSError("--dll %s: no such file" % dll)
    return load_modules().DirectML(dll, int(option("--device") or DEVICE_ID), debug=DEBUG)


def run():
    """Run the call in this process."""
    result = {"version": version(), "ran_on": []}
    try:
        backend = open_device()
        device = backend.hello()["device"]
    except (AttributeError, OSError, ValueError) as error:
        return unknown(result, "DirectML cannot be had: " + first_line(error))
    result["version"] = str(device.get("directml"))
    try:
        session = backend.session({}, json.dumps(DESCRIPTION).encode())
        result["ran_on"] = ["%s, feature level %s" % (device.get("adapter"), device.get("max_feature_level"))]
    except Exception as error:  # noqa: BLE001 - whatever DirectML answers
        return answered(result, "while it is created", error)
    try:
        unit = {"outputs": [(name, number) for name, number, _ in OUTPUTS]}
        found = backend.run(session, unit, [array for _, array in INPUTS], 0)
    except Exception as error:  # noqa: BLE001 - whatever DirectML answers
        return answered(result, "while it runs", error)
    return compared(result, [as_told(elements, n) for n, (elements, _) in enumerate(found)])


def answered(result, when, error):
    """Describe an error; what no structure of DirectML.h could hold was not asked of DirectML."""
    if getattr(error, "label", "") == "CannotFeedError":
        return unknown(result, "DirectML was not asked: " + first_line(error))
    return failed(result, when, error)


def as_told(elements, n):
    """Return the elements of an output as the type that the call has in ONNX: a bool is held as UINT8, an index as
    unsigned."""
    asked = np.dtype(OUTPUTS[n][2])
    held = {"bool": "uint8", "int32": "uint32", "int64": "uint64"}.get(asked.name)
    return np.ascontiguousarray(elements).view(asked) if elements.dtype.name == held else elements


def control():
    """Open the device; whatever comes of it, this process lives to tell."""
    try:
        open_device()
    except (AttributeError, OSError, ValueError) as error:
        return first_line(error)
    return "opens"


# </library>
