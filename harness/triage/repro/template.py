"""{{docstring}}"""

import base64
import json
import os
import platform
import signal
import subprocess
import sys

import numpy as np

# <case>
from harness.worker.worker import (
    array_of,
    elements_of,
    kind_of,
    packed,
    run_with_maps,
    run_with_optionals,
    unpacked,
)

LIBRARY = "onnxruntime"
CASE = "Identity"
PROVIDER = "CPUExecutionProvider"
PROVIDER_OPTIONS = {}
SESSION_CONFIG = {}
THREADS = 1
OPTIMIZATION = "ORT_DISABLE_ALL"
IN_PLACE = False
DEPLOYED = {}  # how an application runs the graph
TIMEOUT_SECONDS = 60
TESTED = ["Identity"]
INPUTS = []  # (name, ONNX element type, array); types that NumPy lacks as integers of the same bits, one an element
BEFORE = []  # arrays, one an input: a call that the session runs first
OPTIONALS = []  # inputs and outputs that are optionals: the name, and those of the tensors that stand for it
MAPS = []  # inputs and outputs that are maps, of `X` passed as `X_keys` and `X_values`
OUTPUTS = [("Y", 1, "float32")]  # (name, ONNX element type, NumPy's)
EXPECTED = None  # one entry an output, None where an error is expected, or none where anything but the end of the process is
EXPECTED_ERROR = ""  # the rule that the call breaks
REPORTED = ""
MODEL = ""
OPSET_PROBE = ""  # an Identity at the same opset: what this release cannot even load says nothing
# </case>

BFLOAT16, STRING = 16, 8
_WITHOUT_NUMPY = range(16, 27)  # bfloat16, floats of 8 and 4 bits, integers of 4 and 2
NANS = {
    17: (127, 255),
    18: (128,),
    19: (125, 126, 127, 253, 254, 255),
    20: (128,),
    24: (255,),
}  # of floats of 8 bits
FIXED, BUG, UNKNOWN = 0, 1, 3
MARK = "REPRO-RESULT "
SHARED = []


def main():
    """Run the case, in a process of its own unless told otherwise, and say whether the bug is still there."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    if "--help" in sys.argv[1:]:
        print(__doc__)
        return FIXED
    if "--control" in sys.argv[1:]:
        print("\n" + MARK + json.dumps(control()), flush=True)
        return 0
    if "--inner" in sys.argv[1:]:
        print("\n" + MARK + json.dumps(run()), flush=True)
        return 0
    # read from standard input, as `harness windows python` does, the script is no file that another process can run
    apart = "--in-process" not in sys.argv[1:] and os.path.isfile(__file__)
    result = run_apart() if apart else run()
    print("case:      " + CASE)
    versions = (result.get("version"), np.__version__, platform.python_version(), platform.platform())
    print("versions:  " + LIBRARY + " %s, numpy %s, Python %s, %s" % versions)
    unplaced = "no session was made" if "ran_on" in result else "unknown: the process did not live to tell"
    print("ran on:    " + (", ".join(result.get("ran_on", [])) or unplaced))
    print(
        "expected:  "
        + (
            "an error: " + EXPECTED_ERROR
            if EXPECTED is None
            else "; ".join(map(show_expected, range(len(EXPECTED)))) or "anything but the end of the process"
        )
    )
    print("actual:    " + result["actual"])
    if result.get("wrong") and len(OUTPUTS) > 1:
        print("wrong:     " + ", ".join(result["wrong"]))
    print("reported:  " + REPORTED)
    verdict = judge(result)
    words = {
        FIXED: "FIXED: it does what is expected",
        BUG: "BUG: it is still there",
        UNKNOWN: "CANNOT TELL: " + str(result.get("why")),
    }
    print(words[verdict])
    return verdict


def judge(result):
    """Return FIXED, BUG or UNKNOWN."""
    if result["kind"] == "unknown":
        return UNKNOWN
    if EXPECTED is None:
        return FIXED if result["kind"] == "error" else BUG
    if not EXPECTED:
        return FIXED if result["kind"] in ("output", "error") else BUG
    return FIXED if result["kind"] == "output" and not result["wrong"] else BUG


def run_apart():
    """Run this script in another process, which may crash or hang; say so only where that process can run a model
    at all."""
    done, result = process("--inner")
    if result is not None:
        return result
    printed = [] if done is None else done.stderr.decode("utf-8", "replace").strip().splitlines()
    if done is not None and done.returncode > 0 and printed and "Error" in printed[-1]:
        # Python itself ended it: nothing was asked of the library
        return {"kind": "unknown", "why": printed[-1], "actual": printed[-1], "version": version()}
    _, alive = process("--control")
    if alive is None:
        why = "a process of its own ends here with any model; run it again with --in-process"
        return {"kind": "unknown", "why": why, "actual": why, "version": version()}
    if done is None:
        return {"kind": "timeout", "actual": "no answer within %d s" % TIMEOUT_SECONDS, "version": version()}
    return {
        "kind": "crash",
        "actual": "the process ended with " + ended(done.returncode),
        "version": version(),
    }


def process(argument):
    """Run this script with an argument; return the process, None where it hangs, and what it says, None where it
    ends before."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, argument, *sys.argv[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_SECONDS if argument == "--inner" else 60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, None
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    found = [line for line in lines if line.startswith(MARK)]
    return done, json.loads(found[-1][len(MARK) :]) if found else None


def ended(code):
    """Name an exit code: SIGSEGV, 0xC0000005."""
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return "signal %d" % -code
    return "exit code %d (0x%X)" % (code, code)


# <library>
def version():
    """Return the release of onnxruntime without importing it here: a crash must not be this process's."""
    try:
        from importlib import metadata
    except ImportError:
        return "?"
    for name in ("onnxruntime", "onnxruntime-directml", "onnxruntime-gpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return "?"


def run():
    """Run the case in this process."""
    import onnxruntime as ort

    result = {"version": ort.__version__, "ran_on": []}
    ort.set_default_logger_severity(4)
    if "concurrent" in DEPLOYED or "saved" in DEPLOYED:
        why = "this script runs no session from several threads and saves no model; the harness does"
        return unknown(result, why)
    if PROVIDER not in ort.get_available_providers():
        why = "this onnxruntime has %s, not %s" % (", ".join(ort.get_available_providers()), PROVIDER)
        return unknown(result, why)
    try:
        ort.InferenceSession(
            base64.b64decode(OPSET_PROBE), session_options(ort, {}), providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # noqa: BLE001 - whatever it says, it cannot load the simplest model of this opset
        return unknown(result, "this onnxruntime does not load models of this opset: " + first_line(error))
    try:
        session = ort.InferenceSession(
            base64.b64decode(MODEL),
            session_options(ort, SESSION_CONFIG),
            providers=[(PROVIDER, PROVIDER_OPTIONS)],
            enable_fallback=0,
        )
    except TypeError as error:
        return unknown(result, "this release's InferenceSession takes other arguments: " + first_line(error))
    except Exception as error:  # noqa: BLE001 - whatever a provider raises is its answer
        return failed(result, "while loading", error)
    result["ran_on"] = placement(session)
    if any(name != PROVIDER for name in result["ran_on"]):
        return dict(result, kind="elsewhere", actual="the node is not placed on " + PROVIDER)
    try:
        if BEFORE:
            run_session(ort, session, [(*given[:2], array) for given, array in zip(INPUTS, BEFORE)])
        arrays = run_session(ort, session, INPUTS)
    except (TypeError, KeyError, AttributeError) as error:
        return unknown(
            result, "this release's Python binding has no way to pass these tensors: " + first_line(error)
        )
    except Exception as error:  # noqa: BLE001 - whatever a provider raises is its answer
        return failed(result, "while running", error)
    return compared(result, arrays)


def control():
    """Load the simplest model; whatever ONNX Runtime says of it, this process lives to tell."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    try:
        ort.InferenceSession(
            base64.b64decode(OPSET_PROBE), session_options(ort, {}), providers=[(PROVIDER, PROVIDER_OPTIONS)]
        )
    except Exception as error:  # noqa: BLE001 - an answer of any kind
        return first_line(error)
    return "loads"


def session_options(ort, config):
    """Return options like those of the report."""
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, OPTIMIZATION)
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = PROVIDER == "CPUExecutionProvider" and "memory_pattern" not in DEPLOYED
    options.enable_cpu_mem_arena = "arena" not in DEPLOYED
    if "execution" in DEPLOYED:
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = 2
    if "prepacking" in DEPLOYED:
        options.add_session_config_entry("session.disable_prepacking", "1")
    for name, extent in DEPLOYED.get("dimensions", ()):
        options.add_free_dimension_override_by_name(name, extent)
    for name, number, shape, elements in DEPLOYED.get("initializers", ()):
        SHARED.append(ort.OrtValue.ortvalue_from_numpy(array_of(elements, number, shape)))
        options.add_initializer(name, SHARED[-1])
    options.log_severity_level = 4
    if "--library" in sys.argv[1:]:  # of custom operators
        options.register_custom_ops_library(os.path.abspath(sys.argv[sys.argv.index("--library") + 1]))
    for key, value in config.items():
        options.add_session_config_entry(key, value)
    return options


def placement(session):
    """Return the providers that run the tested nodes, those of all nodes where a function's are in their place;
    those of the session where this release cannot tell."""
    recorded = SESSION_CONFIG.get("session.record_ep_graph_assignment_info") == "1"
    if not recorded or not hasattr(session, "get_provider_graph_assignment_info"):
        return session.get_providers()[:1]
    groups = session.get_provider_graph_assignment_info()
    nodes = [(group.ep_name, node.op_type) for group in groups for node in group.get_nodes()]
    tested = [provider for provider, operator in nodes if operator in TESTED]
    return sorted(set(tested or [provider for provider, _ in nodes]))


def run_bound(ort, session, inputs):
    """Run with outputs in buffers of the caller, or in OrtValues that are read once the inputs' memory is used again."""
    binding = session.io_binding()
    arrays = [np.array(array, order="C") for _, _, array in inputs]
    values = [ort.OrtValue.ortvalue_from_numpy(array) for array in arrays]
    for (key, _, _), value in zip(inputs, values):
        binding.bind_ortvalue_input(key, value)
    buffers = []
    for (name, _, dtype), plain in zip(OUTPUTS, run_plainly(ort, session, inputs)):
        buffers.append(np.full(plain.nbytes, 0xA5, np.uint8).view(dtype).reshape(plain.shape))
        where = (0, np.dtype(dtype).type, list(plain.shape), buffers[-1].ctypes.data)
        binding.bind_output(name, "cpu", *(where if DEPLOYED["binding"] == "own" else ()))
    session.run_with_iobinding(binding)
    if DEPLOYED["binding"] == "own":
        return buffers
    if DEPLOYED["binding"] == "outlived":
        for array in arrays:
            array.fill(1)
    return [value.numpy() for value in binding.get_outputs()]


def run_session(ort, session, inputs):
    """Run as deployed and return the outputs as arrays."""
    return (run_bound if "binding" in DEPLOYED else run_plainly)(ort, session, inputs)


def run_plainly(ort, session, inputs):
    """Run and return the outputs as arrays; types that NumPy lacks, which `session.run` does not take, with bound
    buffers."""
    if OPTIONALS:
        outputs = [output[:2] for output in OUTPUTS]
        fed = {key: array for key, _, array in inputs}
        return run_with_optionals(session, OPTIONALS, outputs, fed)
    if MAPS:
        outputs = [output[:2] for output in OUTPUTS]
        return run_with_maps(session, MAPS, outputs, {key: array for key, _, array in inputs})
    names = [name for name, _, _ in OUTPUTS]
    if not IN_PLACE and all(element not in _WITHOUT_NUMPY for _, element, _ in OUTPUTS + inputs):
        return session.run(names, {key: array for key, _, array in inputs})
    binding = session.io_binding()
    if IN_PLACE and PROVIDER == "DmlExecutionProvider":
        device = int(PROVIDER_OPTIONS.get("device_id", 0))
        values = [ort.OrtValue.ortvalue_from_numpy(array, "dml", device) for _, _, array in inputs]
        for (key, _, _), value in zip(inputs, values):
            binding.bind_ortvalue_input(key, value)
            value.numpy()  # waits for the upload
        binding.bind_ortvalue_output(names[0], values[0])
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return [values[0].numpy()]
    kept = []
    for key, element, array in inputs:
        own = packed(np.array(array, order="C", copy=True), element)
        kept.append(own)
        if element == STRING:
            binding.bind_cpu_input(key, own)
        else:
            kind = kind_of(element, own)
            binding.bind_input(key, "cpu", 0, kind, list(array.shape), own.ctypes.data)
    if IN_PLACE:
        number, shape = OUTPUTS[0][1], inputs[0][2].shape
        kind = kind_of(number, kept[0])
        binding.bind_output(names[0], "cpu", 0, kind, list(shape), kept[0].ctypes.data)
        session.run_with_iobinding(binding)
        return [unpacked(kept[0], number, shape)]
    for name in names:
        binding.bind_output(name, "cpu")
    session.run_with_iobinding(binding)
    return [elements_of(value, number) for value, (_, number, _) in zip(binding.get_outputs(), OUTPUTS)]


# </library>


def unknown(result, why):
    """Describe what says nothing of the bug."""
    return dict(result, kind="unknown", why=why, actual=why)


def compared(result, arrays):
    """Describe outputs, and those that are not as expected."""
    wrong = [OUTPUTS[n][0] for n, array in enumerate(arrays) if EXPECTED and not fits(n, array)]
    shown = "; ".join(label(n) + show(array, OUTPUTS[n][1]) for n, array in enumerate(arrays))
    accepted = "accepted, with the output%s " % ("s" if len(OUTPUTS) > 1 else "")
    return dict(result, kind="output", wrong=wrong, actual=(accepted if EXPECTED is None else "") + shown)


def failed(result, when, error):
    """Describe an error that the library raised."""
    return dict(result, kind="error", actual="%s %s: %s" % (type(error).__name__, when, first_line(error)))


def first_line(error):
    """Return the first line of an error's message."""
    return (str(error).strip().splitlines() or [""])[0][:500]


def fits(n, array):
    """Say whether an output is as expected: its type, its shape, and each of its elements."""
    entry, number = EXPECTED[n], OUTPUTS[n][1]
    if str(array.dtype) != OUTPUTS[n][2]:
        return False
    if "any" in entry:
        if array.shape != entry["any"][0].shape:
            return False
        return bool(np.all(np.logical_or.reduce([equal(array, each, number) for each in entry["any"]])))
    return array.shape == entry["value"].shape and within(array, entry, number)


def within(array, entry, number):
    """Say whether each element lies within the bound of its value; where the bound reaches beyond the type,
    infinity does too."""
    value, bound = entry["value"], entry["bound"]
    with np.errstate(all="ignore"):
        found = np.left_shift(array.astype("u4"), 16).view("f4") if number == BFLOAT16 else array
        found = found.astype("f8")
        same = (found == value) | (np.isnan(found) & np.isnan(value))
        apart = np.where(same, 0.0, np.abs(found - value))
        apart = np.where(np.isnan(apart), np.inf, apart)
        overflowed = (
            np.isinf(found)
            & np.isfinite(value)
            & (np.copysign(1.0, found) * value + bound >= entry["overflow"])
        )
        return bool(np.all((apart <= bound) | overflowed))


def equal(a, b, number):
    """Say which elements have the same bits; any NaN equals any NaN, and the sign of zero matters."""
    if a.dtype == object:
        return np.array([x == y for x, y in zip(a.reshape(-1), b.reshape(-1))], bool).reshape(a.shape)
    parts = 2 if a.dtype.kind == "c" else 1
    part = "u%d" % (a.dtype.itemsize // parts)
    x, y = (np.ascontiguousarray(array).reshape(-1).view(part) for array in (a, b))
    same = x == y
    if number in NANS:
        same |= np.isin(x, NANS[number]) & np.isin(y, NANS[number])
    if a.dtype.kind in "fc" or number == BFLOAT16:
        mantissa = 7 if number == BFLOAT16 else {"u2": 10, "u4": 23, "u8": 52}[part]
        width = np.dtype(part).itemsize * 8
        infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
        nan = [(bits & np.array((1 << (width - 1)) - 1, part)) > np.array(infinity, part) for bits in (x, y)]
        same = same | (nan[0] & nan[1])
    return same.reshape((*a.shape, parts)).all(axis=-1)


def label(n):
    """Name an output where there are several."""
    return OUTPUTS[n][0] + " " if len(OUTPUTS) > 1 else ""


def show_expected(n):
    """Write the expected value of an output."""
    entry, number = EXPECTED[n], OUTPUTS[n][1]
    if "any" in entry:
        return label(n) + " or ".join(show(array, number) for array in entry["any"])
    largest = float(np.max(entry["bound"], initial=0.0))
    return label(n) + "%s, each element of %s within its bound, at most %.3g" % (
        show(entry["value"], None),
        OUTPUTS[n][2],
        largest,
    )


def show(array, number):
    """Write a tensor: element type, shape, elements, and the bits of a few floats."""
    name = str(array.dtype).replace("object", "string")
    if number in _WITHOUT_NUMPY and array.dtype.kind in "iu":
        name = "bits of element type %d as %s" % (number, name)
    edge = 3 if array.ndim < 3 else 1  # of each dimension at either end
    text = np.array2string(array, threshold=40, edgeitems=edge, separator=", ", floatmode="unique")
    written = " ".join(text.split())
    text = "%s%s %s" % (name, list(array.shape), written)
    if array.dtype.kind == "f" and 0 < array.size <= 8:
        bits = array.reshape(-1).view("u%d" % array.itemsize).tolist()
        text += " (bits %s)" % " ".join("%0*x" % (array.itemsize * 2, each) for each in bits)
    return text


if __name__ == "__main__":
    sys.exit(main())
