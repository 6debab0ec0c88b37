"""Runs graphs on ONNX Runtime in a separate process: one file, standard library, numpy and onnxruntime,
Python 3.8 or later.

`pool.py` starts it unchanged, in any interpreter that has some onnxruntime: here, with another version, on
Windows, over ssh.

Frames on the standard streams, little-endian, no pickle:
    to the worker     u32 header length, u32 payload length, header (JSON), payload
    from the worker   u8 kind, u32 body length, body

    H  hello (JSON): versions, providers, device        A  about to start the next case
    P  placement of a unit's graph (JSON)               R  u32 case, f64 seconds, u32 outputs, and for each output:
                                                           u8 dtype, u8 rank, u32 size, i64 * rank, size bytes
    E  error of a case (JSON)                           D  the batch is done

A batch is a list of units; a unit is one graph with the cases that run on it in one session. The header of a
batch is `{"kinds": [...], "units": [...]}`: a unit names its kind (provider, options, threads, names and
element types, which many units share), the size of its graph and of its payload, the number of its first case, and the
shapes of each case; the payload is, unit by unit, the graph and then the inputs of its cases. Where a unit says `before`,
the inputs of a call of those shapes stand before each case's, and the session runs them first. Its kind names the
`maps`, of which keys and values cross the pipe, and the `optionals`, of which tensors do. Where a unit says what became
of its graph, `optimized`, its sessions do not log. Where an output has another shape than its session declares, the placement
is sent again, with these shapes as `declared`.

Each case is announced before it starts, together with the result of the one before: whatever ends the process, only
that case is lost.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import math
import os
import re
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import lru_cache
from itertools import accumulate
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

Unit = Dict[str, Any]

PROTOCOL = 4
LOST = 88
"""The exit code of a worker whose device was removed."""
_REMOVED = ("887A0005", "887A0006", "887A0007", "887A0020")
"""DXGI_ERROR_DEVICE_REMOVED, _HUNG, _RESET and _DRIVER_INTERNAL_ERROR, as ONNX Runtime writes them in its
messages."""
np: Any = None
FRAME = struct.Struct("<BI")
ANNOUNCED = FRAME.pack(65, 0)
"""An A frame."""
RESULT = struct.Struct("<IdI")
"""What begins an R frame."""
COUNT = struct.Struct("<I")
_HEADS = [struct.Struct("<BBI%dq" % rank) for rank in range(65)]
"""What stands before the elements of a tensor, by its rank."""
REQUEST = struct.Struct("<II")
_STRING = 8
_STORAGE = {
    1: "<f4", 2: "<u1", 3: "<i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 8: "O", 9: "|b1", 10: "<f2", 11: "<f8", 12: "<u4",
    13: "<u8", 14: "<c8", 15: "<c16", 16: "<u2", 17: "<u1", 18: "<u1", 19: "<u1", 20: "<u1", 21: "<u1", 22: "<i1", 23: "<u1",
    24: "<u1", 25: "<u1", 26: "<i1",
}  # fmt: skip
_WITHOUT_NUMPY = frozenset(range(16, 27))
"""The element types that NumPy lacks, so that `session.run` neither takes nor returns them: bfloat16, floats of 8 and
4 bits, integers of 4 and 2 bits."""
_NAMED = {
    "bfloat16": 16, "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20, "uint4": 21, "int4": 22,
    "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26,
}  # fmt: skip
"""These by the name that a session has for them."""
PACKED = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
"""The bits of the element types of which a byte holds several."""
_KEEPS_APART = (1, 15)
"""The first release whose DirectML provider can be told to fuse no nodes (ep.dml.disable_graph_fusion)."""
_LISTS_ALL = (1, 27)
"""The first release that lists nodes around which Casts are inserted, with their provider."""
_VERSIONS = (1, 8)
"""Field numbers of a ModelProto's IR version and its opset imports."""
_IDENTITY = (
    b"\x3a\x2f\x0a\x10\x0a\x01x\x12\x01y\x22\x08Identity\x12\x01g"
    b"\x5a\x0b\x0a\x01x\x12\x06\x0a\x04\x08\x01\x12\x00\x62\x0b\x0a\x01y\x12\x06\x0a\x04\x08\x01\x12\x00"
)
"""The field `graph` of a ModelProto: y = Identity(x) of a float scalar, which every opset has and the CPU
provider runs."""


class CannotFeedError(Exception):
    """This onnxruntime's Python binding has no way to pass such a tensor."""


class NoOutputError(Exception):
    """The provider raised no error, and did not make an output that was asked for."""


class UnknownVersionError(Exception):
    """This onnxruntime does not know the opset or the IR version of the model: no operator was asked."""


class Channel:
    """The private frame channel: descriptor 1 is moved away, so that stray prints of native libraries go to
    stderr."""

    def __init__(self) -> None:
        self.out = os.dup(1)
        os.dup2(2, 1)
        if sys.platform == "win32":
            import msvcrt

            for descriptor in (0, self.out):
                msvcrt.setmode(descriptor, os.O_BINARY)
        self._in = os.fdopen(0, "rb", buffering=1 << 20, closefd=False)
        self._pending: List[bytes] = []

    def read(self) -> Optional[Tuple[Any, memoryview]]:
        """Return the next request as (header, payload), or None at the end of the stream."""
        sizes = self._in.read(REQUEST.size)
        if len(sizes) < REQUEST.size:
            return None
        header, payload = REQUEST.unpack(sizes)
        data = self._in.read(header + payload)
        if len(data) < header + payload:
            return None
        return json.loads(data[:header].decode()), memoryview(data)[header:]

    def add(self, kind: str, body: bytes) -> None:
        """Queue a frame for the next `send`."""
        self._pending += (FRAME.pack(ord(kind), len(body)), body)

    def add_json(self, kind: str, value: Any) -> None:
        self.add(kind, json.dumps(value).encode())

    def announce(self) -> None:
        """Say that the next case is about to start, or the session for it and those behind it."""
        self._pending.append(ANNOUNCED)
        self.send()

    def send(self) -> None:
        """Hand everything that is queued to the operating system."""
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        while data:
            data = data[os.write(self.out, data) :]


def encode_texts(texts: Sequence[str]) -> bytes:
    """Return texts as they cross the pipe: as u32 the size of what follows the lengths, the length of each in code
    points, then all of them as UTF-8."""
    data = "".join(texts).encode("utf-8", "surrogatepass")
    return struct.pack("<%dI" % (len(texts) + 1), len(data), *map(len, texts)) + data


def decode_texts(view: memoryview, count: int) -> Tuple[List[str], int]:
    """Return the texts at the start of `view` and the number of bytes that they took."""
    size, *lengths = struct.unpack_from("<%dI" % (count + 1), view)
    start = 4 * (count + 1)
    text = str(view[start : start + size], "utf-8", "surrogatepass")
    places = list(accumulate(lengths, initial=0))
    if len(view) - start < size or places[-1] != len(text):
        raise ValueError("a string is cut off")
    return [text[at:end] for at, end in zip(places, places[1:])], start + size


@lru_cache(maxsize=None)
def number_of(dtype: Any) -> int:
    """Return the ONNX element type of an array's, 0 for none; NumPy takes long to tell a name."""
    return next((n for n, storage in _STORAGE.items() if n not in _WITHOUT_NUMPY and dtype == storage), 0)


@lru_cache(maxsize=None)
def stored(element: int) -> Any:
    """Return the type in which NumPy holds an ONNX element type."""
    return np.dtype(_STORAGE[element])


def numbered(output: Any) -> Tuple[Any, int]:
    """Return an output with its ONNX element type. Errors: NoOutputError."""
    if output is None:
        raise NoOutputError("an output was not made, and no error was raised")
    return output, number_of(output.dtype)


def encode_elements(array: Any) -> bytes:
    """Return the bytes of an array as they cross the pipe."""
    if array.dtype != object:
        return bytes(array.tobytes())
    return encode_texts([str(text) for text in array.reshape(-1).tolist()])


class OnnxRuntime:
    """Creates sessions and runs cases; the only place that speaks to onnxruntime."""

    def __init__(self) -> None:
        onnxruntime = load()
        self.ort: Any = onnxruntime
        onnxruntime.set_default_logger_severity(4)
        self._providers = onnxruntime.get_available_providers()
        version = version_of(onnxruntime.__version__)
        self._lists = hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info")
        self._lists_all = self._lists and version >= _LISTS_ALL
        self._profiles = "" if self._lists_all else tempfile.mkdtemp()
        self._profiling = False
        parameters = inspect.signature(onnxruntime.InferenceSession.__init__).parameters.values()
        self._chooses = self._providers != ["CPUExecutionProvider"] or any(
            p.kind is p.VAR_KEYWORD for p in parameters
        )  # before 1.7 not
        self._written = os.path.join(tempfile.gettempdir(), "optimized-%d.onnx" % os.getpid())
        with tempfile.TemporaryFile() as log:  # what is logged while a session is created
            self._log = os.dup(log.fileno())
        self._refused: Dict[bytes, Optional[str]] = {}
        self._load: Any = None
        self.fuses = version < _KEEPS_APART
        boot = sys.modules.get("harness_boot")
        if boot is not None:
            boot.before_sessions()
        self._describe = getattr(boot, "describe_device", None)
        self._after_failure = getattr(boot, "after_failure", None)
        self.lost = False

    def hello(self) -> Dict[str, Any]:
        """Say which onnxruntime this is and what it offers."""
        device = {}
        self._bare_options()  # a library of custom operators that does not load ends the worker here
        if self._describe is not None and "DmlExecutionProvider" in self._providers:
            device = self._describe()
        return {
            "onnxruntime": self.ort.__version__,
            "providers": self._providers,
            "device": device,
            "library": file_of_library(self.ort),
        }

    def after_failure(self, unit: Unit, error: Exception) -> bool:
        """Say whether the session must be replaced: a failed DirectML session leaves half its work in a
        command list that all share.

        Whether DirectML's device was removed, only the error tells: Direct3D's device below it need not be,
        and whatever DirectML is asked for on it fails from then on in this process.
        """
        if unit["provider"] != "DmlExecutionProvider":
            return False
        removed = any(code in str(error) for code in _REMOVED)
        if self._after_failure is not None:
            removed = self._after_failure(device_number(unit)) or removed
        self.lost = self.lost or removed
        return self._after_failure is not None

    def session(self, unit: Unit, model: bytes) -> Any:
        """Create the unit's session on its provider alone; an absent provider is an error, never a quiet CPU
        session."""
        if unit["provider"] not in self._providers:
            raise RuntimeError(f"{unit['provider']} is not in this onnxruntime")
        self._remove_profiles()
        options = self._new_options(unit)
        self._placed: Optional[List[List[str]]] = None
        self.transformers: List[str] = []
        self.graph_nodes: List[str] = []
        self.graph_edges: List[List[List[str]]] = []
        self._profiling = not self._lists
        if unit.get("optimized"):
            self.transformers, self.graph_nodes, self.graph_edges = unit["optimized"]
        if not unit.get("tells_transformers"):
            return self._telling(self._deployed(unit, model, options), unit)
        if os.path.exists(self._written):  # by a session whose graph was known
            os.unlink(self._written)
        os.lseek(self._log, 0, os.SEEK_SET)
        os.ftruncate(self._log, 0)
        kept = os.dup(2)
        os.dup2(self._log, 2)
        try:
            session = self._written_or_not(unit, model, options)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            size = os.lseek(self._log, 0, os.SEEK_END)
            os.lseek(self._log, 0, os.SEEK_SET)
            self.transformers = transformers_of(os.read(self._log, size))
            self.graph_nodes, self.graph_edges = self._written_nodes()
        return self._telling(session, unit)

    def _written_or_not(self, unit: Unit, model: bytes, options: Any) -> Any:
        """Create a session that writes its optimised model, or one that does not where the provider is not ONNX Runtime's:
        nodes that it compiled cannot be written."""
        try:
            return self._deployed(unit, model, options)
        except Exception:
            if unit["provider"] in ("CPUExecutionProvider", "DmlExecutionProvider"):
                raise
        options.optimized_model_filepath = ""
        return self._deployed(unit, model, options)

    def _telling(self, session: Any, unit: Unit) -> Any:
        """Return a session of a graph of several operators that tells where all of them ran: one that is profiled where
        the list lacks some. The CPU provider has those that no other took, with Casts around them."""
        graph = len(unit["tested"]) > 1 and unit["provider"] == "CPUExecutionProvider"
        if not graph or self._lists_all or self._profiling or self._placed:
            return session
        listed = Counter(operator for _, operator in self.assignment(session) or ())
        kept = set(unit["tested"]).intersection(self.graph_nodes) if self.graph_nodes else unit["tested"]
        if listed and not Counter(kept) - listed:
            return session
        _, _, options = self._latest
        self._profiling = True
        self._profile(options)
        return self._made(*self._latest)

    def _deployed(self, unit: Unit, model: bytes, options: Any) -> Any:
        """Create a session, where it is `saved` one of the model that another wrote as optimised, with weights of its
        own; keep what it is made of."""
        deployed = dict(unit.get("deployed") or ())
        if "saved" in deployed:
            nodes = self.assignment(self._made(unit, model, options))
            if deployed["saved"] == "ort":
                self._placed = nodes  # a session of this format tells of none
            with open(self._written, "rb") as file:
                model = file.read()
            rest = [
                each for each in deployed.items() if each[0] not in ("saved", "dimensions", "initializers")
            ]
            unit = dict(unit, optimization="off", tells_transformers=False, disabled=None, deployed=rest)
            options = self._new_options(unit)
        self._latest = (unit, model, options)
        return self._made(unit, model, options)

    def _another(self) -> Any:
        """Create the latest session again; the first one's profile tells where nodes ran."""
        self._latest[2].enable_profiling = False
        return self._made(*self._latest)

    def _written_nodes(self) -> Tuple[List[str], List[List[List[str]]]]:
        """Return the operators of the model that the last session wrote as optimised, with the names of what each takes
        and gives, and remove it."""
        try:
            with open(self._written, "rb") as file:
                model = file.read()
            os.unlink(self._written)
            return ([], []) if model[4:8] == b"ORTM" else nodes_of_model(model)
        except (OSError, IndexError):
            return [], []

    def _made(self, unit: Unit, model: bytes, options: Any) -> Any:
        if not self._chooses:
            return self.ort.InferenceSession(model, options)
        more = {"disabled_optimizers": unit["disabled"]} if unit.get("disabled") else {}
        return self.ort.InferenceSession(
            model, options, enable_fallback=0, **self._asked_providers(unit), **more
        )

    def _asked_providers(self, unit: Unit) -> Dict[str, Any]:
        """Return what tells a session which provider it is on."""
        return {"providers": [(unit["provider"], unit["provider_options"])]}

    def elsewhere(self, unit: Unit, model: bytes) -> Optional[List[List[str]]]:
        """Return the placement that a graph would get if other providers were allowed, after its own refused
        it; None where there is none.

        A session that is refused with the fallback forbidden and created with it allowed has nodes on another
        provider, and by that its own provider has no kernel for them; where the release cannot list the
        nodes, that alone is the proof.
        """
        if "session.disable_cpu_ep_fallback" not in unit["config"]:
            return None
        config = {
            key: value for key, value in unit["config"].items() if key != "session.disable_cpu_ep_fallback"
        }
        nodes = self.assignment(self.session(dict(unit, config=config), model))
        return [["CPUExecutionProvider", operator] for operator in unit["tested"]] if nodes is None else nodes

    def unknown_version(self, model: bytes) -> Optional[str]:
        """Return why this release takes no model at all of a model's opset and IR version, None if it takes
        one.

        Asked of the release itself, after a failure, with the same versions on a graph that nothing else can
        be wrong with.
        """
        bare = with_identity(model)
        if bare not in self._refused:
            try:
                self.ort.InferenceSession(bare, *([None, ["CPUExecutionProvider"]] if self._chooses else []))
                self._refused[bare] = None
            except Exception as error:  # noqa: BLE001 - any refusal is one of the versions
                self._refused[bare] = str(error)
        return self._refused[bare]

    def core_refuses(self, model: bytes) -> bool:
        """Say whether this onnxruntime does not load a model, before it knows of any provider.

        Asked of the release itself, since the errors of both are of the same classes; False where its Python
        does not part loading from initializing (before 1.6).
        """
        if self._load is None:
            self._load = self._loading()
        if self._load is False:
            return False
        try:
            self._load(model)
        except Exception:  # noqa: BLE001 - whatever its loading raises is its refusal
            return True
        return False

    def _loading(self) -> Any:
        """Return what loads a model without initializing a session, False where there is no such thing."""
        try:
            make = self.ort.capi.onnxruntime_pybind11_state.InferenceSession
            options = self._bare_options()
            options.intra_op_num_threads = options.inter_op_num_threads = 1  # starting others takes longest

            def load(model: bytes) -> Any:
                return make(options, model, False, False)

            load(b"\x08\x03\x42\x02\x10\x07" + _IDENTITY)  # IR version 3, opset 7: every release loads it
        except Exception:  # noqa: BLE001 - another signature: this release cannot be asked
            return False
        return load

    def _bare_options(self) -> Any:
        """Return options with the custom operators of the library that the target names."""
        options = self.ort.SessionOptions()
        if "HARNESS_CUSTOM_OPERATORS" in os.environ:
            options.register_custom_ops_library(os.environ["HARNESS_CUSTOM_OPERATORS"])
        return options

    def _new_options(self, unit: Unit) -> Any:
        ort = self.ort
        tells = unit.get("tells_transformers")
        deployed = dict(unit.get("deployed") or ())
        options = self._bare_options()
        options.graph_optimization_level = {
            "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
            "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
            "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
            "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
        }[unit["optimization"]]
        parallel = "execution" in deployed
        modes = ort.ExecutionMode
        options.execution_mode = modes.ORT_PARALLEL if parallel else modes.ORT_SEQUENTIAL
        options.intra_op_num_threads = unit["threads"]
        options.inter_op_num_threads = 2 if parallel else 1
        options.enable_mem_pattern = (
            unit["provider"] == "CPUExecutionProvider" and "memory_pattern" not in deployed
        )
        options.enable_cpu_mem_arena = "arena" not in deployed
        options.log_severity_level = 1 if tells else 4
        if "saved" in deployed or (
            tells and unit["config"].get("ep.dml.disable_graph_fusion") != "0"
        ):  # compiled nodes cannot be written
            options.optimized_model_filepath = self._written
        if hasattr(
            options, "add_session_config_entry"
        ):  # since 1.4; a release ignores the entries that it does not know
            config = dict(unit["config"])
            if "prepacking" in deployed:
                config["session.disable_prepacking"] = "1"
            if parallel:  # idle threads leave the processor to others
                config["session.inter_op.allow_spinning"] = "0"
            if deployed.get("saved") == "ort":
                config["session.save_model_format"] = "ORT"
            for key, value in config.items():
                options.add_session_config_entry(key, value)
        for name, extent in deployed.get("dimensions", ()):
            options.add_free_dimension_override_by_name(name, extent)
        self._shared = {
            name: self.ort.OrtValue.ortvalue_from_numpy(array_of(elements, number, shape))
            for name, number, shape, elements in deployed.get("initializers", ())
        }
        for name, value in self._shared.items():
            options.add_initializer(name, value)
        if not self._lists:
            self._profile(options)
        return options

    def _profile(self, options: Any) -> None:
        options.enable_profiling = True
        if hasattr(options, "profile_file_prefix"):
            options.profile_file_prefix = os.path.join(self._profiles, "profile")
        else:  # before 1.6 a profile is written where the process stands
            os.chdir(self._profiles)

    def _remove_profiles(self) -> None:
        """Remove the profiles of sessions that were refused or never asked: there is no other session when
        one is created."""
        for name in os.listdir(self._profiles) if self._profiles else ():
            try:
                os.unlink(os.path.join(self._profiles, name))
            except OSError:
                pass  # still open, on Windows

    def assignment(self, session: Any) -> Optional[List[List[str]]]:
        """Return [provider, operator type] of every node, or None where the session cannot tell before a run (before
        1.24, or `_telling`)."""
        if self._profiling or self._placed:
            return self._placed
        return [
            [group.ep_name, node.op_type]
            for group in session.get_provider_graph_assignment_info()
            for node in group.get_nodes()
        ]

    def profiled(self, session: Any) -> List[List[str]]:
        """Return [provider, operator type] of every node that a profile of the session's runs shows, and end
        profiling."""
        path = session.end_profiling()
        try:
            with open(path, encoding="utf-8") as file:
                events = json.load(file)
        except (OSError, ValueError):
            return []
        finally:
            try:
                os.unlink(path)
            except OSError:
                pass
        return [
            [event["args"]["provider"], event["args"].get("op_name", "")]
            for event in events
            if event.get("cat") == "Node"
            and event.get("name", "").endswith("_kernel_time")
            and event.get("args", {}).get("provider")
        ]

    def profiled_after_failure(
        self, session: Any, unit: Unit, model: bytes, arrays: Optional[Sequence[Any]]
    ) -> List[List[str]]:
        """Return the same of a session whose run failed: its profile lacks the node that failed, so another
        one runs `arrays` as zeros."""
        nodes = self.profiled(session)
        if arrays is None or tells(nodes, unit):
            return nodes
        zeros = [np.full(array.shape, "" if array.dtype == object else 0, array.dtype) for array in arrays]
        try:
            session = self.session(unit, model)
            self.run(session, unit, zeros, 0)
            return self.profiled(session)
        except Exception as error:  # noqa: BLE001 - it cannot run at all, so nothing tells where
            self.after_failure(unit, error)
            return nodes

    def run(self, session: Any, unit: Unit, arrays: Sequence[Any], position: int) -> List[Tuple[Any, int]]:
        """Run one case and return each output as (array, ONNX element type)."""
        names = unit["inputs"]
        wanted = unit["outputs"]
        if unit.get("patterns"):
            return self._run_over_patterns(session, unit, arrays, unit["output_shapes"][position])
        if unit.get("deployed"):
            return self._run_deployed(session, unit, arrays, position)
        asked = unit.get("asked")
        if asked is None:  # once a unit
            if not all(number for _, number in wanted):
                wanted = unit["outputs"] = declared(session, wanted)
            numbers = {n for _, n in names} | {n for _, n in wanted}
            unit["bound"] = unit["in_place"] or not _WITHOUT_NUMPY.isdisjoint(numbers)
            unit["fed"] = [name for name, _ in names]
            asked = unit["asked"] = [name for name, _ in wanted]
        if unit["bound"]:
            return self._run_bound(session, unit, arrays)
        fed = dict(zip(unit["fed"], arrays))
        if unit.get("optionals"):
            outputs = run_with_optionals(session, unit["optionals"], wanted, fed)
        elif unit.get("maps"):
            for name, array in fed.items():
                if name.endswith("_values") and (array.dtype != np.float32 or not array.size):
                    raise CannotFeedError("Python passes maps to float32 alone, and none that is empty")
            outputs = run_with_maps(session, unit["maps"], wanted, fed)
        else:
            outputs = session.run(asked, fed)
        return [numbered(output) for output in outputs]

    def _run_deployed(
        self, session: Any, unit: Unit, arrays: Sequence[Any], position: int
    ) -> List[Tuple[Any, int]]:
        """Run as deployed: first with other elements, of which nothing may be left in what the case gives."""
        deployed = dict(unit["deployed"])
        binding = deployed.get("binding")
        once = dict(unit, deployed=None, patterns=_PATTERNS if binding == "own" else None)

        def run(given: Sequence[Any]) -> List[Tuple[Any, int]]:
            if binding in (None, "own"):
                return self.run(session, dict(once), given, position)
            held = [np.array(array, order="C") for array in given]
            values = self._run_on_values(session if binding == "device" else self._another(), once, held)
            if binding == "outlived":  # the session is gone, and the memory of the inputs is used again
                for array in held:
                    array.fill("" if array.dtype == object else 1)
            return [
                (np.array(elements_of(value, number)), number)
                if number
                else numbered(np.array(value.numpy()))
                for value, (_, number) in zip(values, declared(session, unit["outputs"]))
            ]

        if binding == "outlived" and self._profiling:  # no run of another session is in its profile
            self.run(session, dict(once), arrays, position)
        try:
            run(rotated(arrays, 1))
        except Exception:  # noqa: BLE001 - these elements may be none that the graph takes
            pass
        if "initializers" in deployed:
            session = self._another()
        if "concurrent" not in deployed:
            return run(arrays)
        return together(run, arrays, deployed["concurrent"], 1 if binding == "outlived" else _ROUNDS)

    def _run_on_values(self, session: Any, unit: Unit, arrays: Sequence[Any]) -> Any:
        """Run with inputs and outputs as OrtValues on the provider's device, and return the outputs."""
        held = []
        where = ("dml" if unit["provider"] == "DmlExecutionProvider" else "cpu", device_number(unit))
        binding = session.io_binding()
        for (key, element), array in zip(unit["inputs"], arrays):
            if element in _WITHOUT_NUMPY:  # its OrtValue would be one of the integers that hold its bits
                raise CannotFeedError(f"cannot hold element type {element} in an OrtValue")
            try:
                value = self._on_device(array, *where)
            except Exception as error:  # releases lack one element type or another
                raise CannotFeedError(f"cannot hold {array.dtype} in an OrtValue: {error}") from error
            binding.bind_ortvalue_input(key, value)
            held.append(value)
        for name, _ in unit["outputs"]:
            binding.bind_output(name, *where)
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return binding.get_outputs()

    def _on_device(self, array: Any, device: str, number: int) -> Any:
        """Return an OrtValue with the elements of an array."""
        value = self.ort.OrtValue.ortvalue_from_numpy(array, device, number)
        if device == "dml" and array.size:
            value.numpy()  # waits for the upload: after a failure a session may have another queue than it
        return value

    def _run_bound(self, session: Any, unit: Unit, arrays: Sequence[Any]) -> List[Tuple[Any, int]]:
        """Run with bound buffers: `session.run` neither takes nor returns types that NumPy lacks, and only a binding
        can alias output and input."""
        if not hasattr(session, "io_binding"):
            raise CannotFeedError("this release binds no buffers")
        if unit["in_place"] and unit["provider"] == "DmlExecutionProvider" and arrays[0].size:
            return self._run_aliased(session, unit, arrays)
        binding = session.io_binding()
        wanted = unit["outputs"]
        kept = []
        for (key, element), array in zip(unit["inputs"], arrays):
            own = packed(np.array(array, order="C", copy=True), element)
            kept.append(own)
            kind = kind_of(element, own)
            try:
                if element == _STRING:
                    binding.bind_cpu_input(key, own)
                else:
                    binding.bind_input(key, "cpu", 0, kind, list(array.shape), own.ctypes.data)
            except (TypeError, KeyError, RuntimeError) as error:  # older releases take NumPy types only
                if isinstance(error, RuntimeError) and element not in (*_WITHOUT_NUMPY, _STRING):
                    raise  # the provider's own: it cannot hold such a tensor
                raise CannotFeedError(f"cannot bind element type {element}: {error}") from error
        if unit["in_place"]:
            name, number = wanted[0]
            kind = kind_of(number, kept[0])
            binding.bind_output(name, "cpu", 0, kind, list(arrays[0].shape), kept[0].ctypes.data)
            session.run_with_iobinding(binding)
            return [(unpacked(kept[0], number, arrays[0].shape), number)]
        for name, _ in wanted:
            binding.bind_output(name, "cpu")
        session.run_with_iobinding(binding)
        return [
            (elements_of(value, number), number) if number else numbered(value.numpy())
            for value, (_, number) in zip(binding.get_outputs(), wanted)
        ]

    def _run_aliased(self, session: Any, unit: Unit, arrays: Sequence[Any]) -> List[Tuple[Any, int]]:
        """Run with the first output bound over the first input, in the device's own memory: buffers of the
        host are copied there and back, and alias nothing."""
        binding = session.io_binding()
        try:
            values = [self._on_device(array, "dml", device_number(unit)) for array in arrays]
            for (key, _), value in zip(unit["inputs"], values):
                binding.bind_ortvalue_input(key, value)
            ((name, number),) = unit["outputs"]
            binding.bind_ortvalue_output(name, values[0])
        except Exception as error:  # releases lack one call or another, or one element type
            raise CannotFeedError(f"cannot bind an output over an input on the device: {error}") from error
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return [(values[0].numpy(), number)]

    def _run_over_patterns(
        self, session: Any, unit: Unit, arrays: Sequence[Any], shapes: Sequence[Sequence[int]]
    ) -> List[Tuple[Any, int]]:
        """Run with outputs bound to buffers that hold one pattern, and inputs in memory that holds another
        around them: what is not written, and what is read from outside, shows."""
        pattern, around = unit["patterns"]
        binding = session.io_binding()
        kept = []
        if unit["provider"] == "DmlExecutionProvider":
            device = device_number(unit)
            put = self.ort.OrtValue.ortvalue_from_numpy
            sizes = [room_for(array.nbytes) for array in arrays if array.size]
            held = [put(np.full(size, around, np.uint8), "dml", device) for size in sizes]
            del held  # its memory goes to the inputs, which take less of it
            for (key, _), array in zip(unit["inputs"], arrays):
                if not array.size:  # the device has no memory of no bytes
                    binding.bind_cpu_input(key, array)
                    continue
                kept.append(self._on_device(array, "dml", device))
                binding.bind_ortvalue_input(key, kept[-1])
            values = []
            for (name, number), shape in zip(unit["outputs"], shapes):
                values.append(filled(pattern, number, shape))
                if not values[-1].size:
                    binding.bind_output(name, "cpu")
                    continue
                values[-1] = self._on_device(values[-1], "dml", device)
                binding.bind_ortvalue_output(name, values[-1])
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()
            return [
                (value if isinstance(value, np.ndarray) else value.numpy(), number)
                for value, (_, number) in zip(values, unit["outputs"])
            ]
        for (key, element), array in zip(unit["inputs"], arrays):
            kept.append(within(packed(array, element), around))
            kind = kind_of(element, array)
            binding.bind_input(key, "cpu", 0, kind, list(array.shape), kept[-1].ctypes.data)
        outputs = []
        for (name, number), shape in zip(unit["outputs"], shapes):
            output = packed(filled(pattern, number, shape), number)
            binding.bind_output(name, "cpu", 0, kind_of(number, output), list(shape), output.ctypes.data)
            outputs.append((output, number, shape))
        session.run_with_iobinding(binding)
        return [(unpacked(output, number, shape), number) for output, number, shape in outputs]


def run_with_maps(
    session: Any, maps: Sequence[str], outputs: Sequence[Tuple[str, int]], fed: Dict[str, Any]
) -> List[Any]:
    """Run with maps, each fed as a dict of its keys and values; of one that is given, in a sequence, return the keys and
    the values, a row for each map, in the order of the keys."""
    for name in maps:
        if name + "_keys" in fed:
            keys, values = fed.pop(name + "_keys"), fed.pop(name + "_values")
            fed[name] = dict(zip(keys.tolist(), values.tolist()))
    wanted = dict(outputs)
    parts = {name + part: name for name in maps for part in ("_keys", "_values")}
    asked = list(dict.fromkeys(parts.get(name, name) for name in wanted))
    found = []
    for name, output in zip(asked, session.run(asked, fed)):
        if name in wanted:
            found.append(output)
            continue
        items = [item for each in output for item in sorted(each.items())]
        sizes = {len(each) for each in output}
        shape = (len(output), max(sizes) if sizes else 0) if len(sizes) < 2 else (len(items),)
        kind = np.dtype(np.int64 if wanted[name + "_keys"] == 7 else object)  # 7: TensorProto.INT64
        found.append(np.array([key for key, _ in items], kind).reshape(shape))
        found.append(np.array([value for _, value in items], np.float32).reshape(shape))
    return found


def run_with_optionals(
    session: Any,
    optionals: Sequence[Sequence[str]],
    outputs: Sequence[Tuple[str, int]],
    fed: Dict[str, Any],
) -> List[Any]:
    """Run with optionals, each fed as its tensor, a list of tensors, or None; of one that is given, return whether it has
    an element, and the element, of a sequence its second one."""
    types = {each.name: each.type for each in session.get_inputs()}
    given = {name: array for name, array in fed.items() if name in types}
    parts = {}
    for name, *tensors in optionals:
        if name not in types:
            parts.update({tensor: (name, tensor == tensors[0]) for tensor in tensors})
        elif "seq(" in types[name]:
            given[name] = [fed[tensor] for tensor in tensors] if tensors else None
        else:
            given[name] = fed[tensors[0]] if tensors else None
    wanted = [parts.get(name, (name, False)) for name, _ in outputs]
    asked = list(dict.fromkeys(name for name, _ in wanted))
    results = dict(zip(asked, session.run(asked, given)))
    found = []
    for name, asks in wanted:
        value = np.array(results[name] is not None) if asks else results[name]
        found.append(value[1] if isinstance(value, list) else value)
    return found


_ROUNDS = 8
"""Runs of each thread, where they share a session."""
_PATTERNS = (0xA5, 0x5A)
"""What own buffers hold before a run, and around inputs."""


def rotated(arrays: Sequence[Any], by: int) -> List[Any]:
    """Return arrays with the same elements in other places."""
    return [np.roll(array, by) for array in arrays]


def together(
    run: Callable[[Sequence[Any]], List[Tuple[Any, int]]], arrays: Sequence[Any], threads: int, rounds: int
) -> List[Tuple[Any, int]]:
    """Run from several threads at once, every second of which has other elements; return what differs from a run
    alone, if anything does."""
    start = threading.Barrier(threads)
    found: List[Any] = []

    def work(number: int) -> None:
        given = rotated(arrays, number) if number % 2 else arrays
        start.wait()
        for _ in range(rounds):
            try:
                outputs: Any = [(np.array(output), number) for output, number in run(given)]
            except Exception as error:  # noqa: BLE001 - whatever a provider raises is its answer
                outputs = error
            if number % 2 == 0:
                found.append(outputs)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    alone = run(arrays)
    for outputs in found:
        if isinstance(outputs, Exception):
            raise outputs
        if [(a.shape, encode_elements(a)) for a, _ in outputs] != [
            (a.shape, encode_elements(a)) for a, _ in alone
        ]:
            return list(outputs)
    return alone


def device_number(unit: Unit) -> int:
    """Return which device the provider of a unit is to use."""
    return int(unit["provider_options"].get("device_id", 0))


def array_of(elements: str, number: int, shape: Sequence[int]) -> Any:
    """Return the array of an ONNX element type whose bytes are written in hexadecimal."""
    return np.frombuffer(bytes.fromhex(elements), stored(number)).reshape(shape).copy()


_MARGIN = 1 << 16
"""Bytes of a pattern on each side of an input; the least that DirectML's provider allocates at once."""


def room_for(size: int) -> int:
    """Return the bytes of the power of two, at least 64 KiB, that DirectML's provider allocates for a
    tensor."""
    return max(_MARGIN, 1 << (max(size, 1) - 1).bit_length())


def filled(pattern: int, number: int, shape: Sequence[int]) -> Any:
    """Return an array of an ONNX element type whose bytes are all the pattern."""
    array = np.empty(shape, stored(number))
    array.reshape(-1).view(np.uint8)[...] = pattern
    return array


def within(array: Any, around: int) -> Any:
    """Return a copy of an array in the middle of memory that holds a pattern."""
    memory = np.full(array.nbytes + 2 * _MARGIN, around, np.uint8)
    copy = memory[_MARGIN : _MARGIN + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def kind_of(number: int, array: Any) -> Any:
    """Return what a binding takes as an element type: NumPy's, or ONNX's number of one that NumPy lacks."""
    return number if number in _WITHOUT_NUMPY else array.dtype.type


def packed(array: Any, number: int) -> Any:
    """Return elements as runtimes and files hold them: of 4 or 2 bits several in a byte, the first in its low bits."""
    bits = PACKED.get(number)
    if bits is None:
        return array
    each = 8 // bits
    low = array.reshape(-1).view("u1") & ((1 << bits) - 1)
    low.resize(-(-array.size // each) * each, refcheck=False)  # with zeros
    columns = low.reshape(-1, each)
    found = columns[:, 0].copy()
    for place in range(1, each):
        found |= columns[:, place] << (place * bits)
    return found


def unpacked(held: Any, number: int, shape: Sequence[int]) -> Any:
    """Return the elements that bytes hold in this way, one in each byte, with the sign of signed ones."""
    bits = PACKED.get(number)
    if bits is None:
        return held.reshape(shape)
    each = 8 // bits
    columns = held.view("u1").repeat(each).reshape(-1, each)
    for place in range(1, each):
        columns[:, place] >>= place * bits
    found = columns.reshape(-1)[: math.prod(shape)] & ((1 << bits) - 1)
    if _STORAGE[number] == "<i1":
        sign = 1 << (bits - 1)
        found = (found ^ sign) - sign
    return found.view(_STORAGE[number]).reshape(shape)


def declared(session: Any, outputs: Sequence[Tuple[str, int]]) -> List[Tuple[str, int]]:
    """Return outputs with the element types that NumPy lacks, which a session inferred; 0 for any other that is not known."""
    types = {each.name: _NAMED.get(each.type[len("tensor(") : -1], 0) for each in session.get_outputs()}
    return [(name, number or types.get(name, 0)) for name, number in outputs]


def elements_of(value: Any, number: int) -> Any:
    """Return the elements of an OrtValue in host memory as an array."""
    if number not in _WITHOUT_NUMPY and hasattr(value, "numpy"):
        return value.numpy()
    shape = value.shape()
    storage = stored(number)
    count = math.prod(shape)
    size = -(-count * PACKED[number] // 8) if number in PACKED else count * storage.itemsize
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    return unpacked(np.frombuffer(raw, storage), number, shape)


_CHANGED = re.compile(rb"GraphTransformer (.+?) modified: 1")


def transformers_of(log: bytes) -> List[str]:
    """Return the transformers that changed a graph, each once, as the log of a session's creation names
    them: `GraphTransformer NAME modified: 1 with status: OK`."""
    names = _CHANGED.findall(log.replace(b"\0", b""))  # Windows' runtime writes UTF-16
    return [name.decode("utf-8", "replace") for name in dict.fromkeys(names)]


def placement(backend: Any, nodes: Optional[Sequence[Sequence[str]]]) -> Dict[str, Any]:
    """Return the body of a P frame; `fuses` stands there alone where the release cannot be told not to fuse
    nodes."""
    body: Dict[str, Any] = {"nodes": nodes}
    transformers = getattr(backend, "transformers", None)
    if transformers:
        body["transformers"] = transformers
        body["graph_nodes"] = getattr(backend, "graph_nodes", [])
        body["graph_edges"] = getattr(backend, "graph_edges", [])
    return dict(body, fuses=True) if getattr(backend, "fuses", False) else body


def encode_outputs(outputs: Sequence[Tuple[Any, int]]) -> bytes:
    """Return the body of an R frame behind the number of outputs."""
    parts = []
    for output, element in outputs:
        body = encode_elements(output)
        parts.append(_HEADS[output.ndim].pack(element, output.ndim, len(body), *output.shape))
        parts.append(body)
    return b"".join(parts)


def declared_shapes(session: Any, outputs: Sequence[Tuple[str, int]]) -> List[Optional[List[Optional[int]]]]:
    """Return the shape that a session declares of each output, None for a dimension that is open and for a shape that is
    not known; nothing where no dimension is."""
    known = {
        each.name: [extent if isinstance(extent, int) else None for extent in each.shape] or None
        for each in getattr(session, "get_outputs", list)()
        if each.type.startswith("tensor(")
    }
    shapes = [known.get(name) for name, _ in outputs]
    return shapes if any(set(shape or ()) - {None} for shape in shapes) else []


def contradicts(shape: Sequence[Optional[int]], actual: Sequence[int]) -> bool:
    """Say whether an output that a session declares with one shape has another."""
    return len(shape) != len(actual) or any(a not in (None, b) for a, b in zip(shape, actual))


def refuses(backend: Any, model: bytes) -> bool:
    """Say whether a backend has a core between it and the provider, and that core does not load a model."""
    return hasattr(backend, "core_refuses") and backend.core_refuses(model)


def tells(nodes: Sequence[Sequence[str]], unit: Unit) -> bool:
    """Say whether a placement lists every tested operator."""
    return set(unit["tested"]) <= {operator for _, operator in nodes}


def run_unit(channel: Channel, backend: Any, unit: Unit, payload: memoryview, at: int) -> None:
    """Run all cases of one unit, whose payload begins at a place."""
    model = bytes(payload[at : at + unit["model"]])
    at += unit["model"]
    first = unit["first"]
    cases = unit["cases"]
    earlier = unit.get("before") or [None] * len(cases)

    def tell_placement(nodes: Optional[Sequence[Sequence[str]]], **more: Any) -> None:
        channel.add_json("P", dict(placement(backend, nodes), **more))

    shapes_declared: Any = None
    started = time.perf_counter()
    channel.announce()
    placed = False
    try:
        session = backend.session(unit, model)
        nodes = backend.assignment(session)
        tell_placement(nodes)
        placed = nodes is not None
        channel.send()
    except Exception as error:  # noqa: BLE001 - whatever a provider raises is its answer
        # creating the session is common to all cases of the unit: one answer for all
        seconds = time.perf_counter() - started
        backend.after_failure(unit, error)
        try:
            refused = backend.unknown_version(model)
            if refused is not None:
                raise UnknownVersionError(refused) from error
            nodes = backend.elsewhere(unit, model)
            if nodes is not None:
                tell_placement(nodes)
            report = failure(first, "load", error, seconds)
        except Exception as other:  # noqa: BLE001 - with every provider allowed it fails for another reason, which says more
            report = failure(first, "load", other, seconds)
            backend.after_failure(unit, other)
        if report["class"] != UnknownVersionError.__name__ and not backend.lost and refuses(backend, model):
            report["by"] = "core"
        # a device that is gone says nothing of the graph: another worker tries the other cases
        channel.add_json("E", dict(report, count=1 if backend.lost else len(cases)))
        end_if_lost(channel, backend)
        return
    failed = False
    for number, shapes in enumerate(cases, start=first):
        if number != first:
            channel.announce()
            started = time.perf_counter()
        try:
            before = None
            if earlier[number - first] is not None:
                before, at = decode_inputs(unit, payload, at, earlier[number - first])
            arrays, at = decode_inputs(unit, payload, at, shapes)
            if session is None:
                session = backend.session(unit, model)
            if before is not None:
                backend.run(session, dict(unit, patterns=None), before, number - first)
            outputs = backend.run(session, unit, arrays, number - first)
            if not placed:
                nodes = backend.profiled(session)
                tell_placement(nodes)
                placed = True
            seconds = time.perf_counter() - started
            if shapes_declared is None:
                shapes_declared = declared_shapes(session, unit["outputs"])
            if any(s and contradicts(s, array.shape) for s, (array, _) in zip(shapes_declared, outputs)):
                tell_placement(nodes, declared=shapes_declared)
                shapes_declared = []
            channel.add("R", RESULT.pack(number, seconds, len(outputs)) + encode_outputs(outputs))
        except Exception as error:  # noqa: BLE001 - whatever a provider raises is its answer
            report = failure(number, "run", error, time.perf_counter() - started)
            spoilt = backend.after_failure(unit, error)
            if not placed and session is not None and not backend.lost:
                nodes = backend.profiled_after_failure(session, unit, model, None if failed else arrays)
                tell_placement(nodes)
                placed = tells(nodes, unit)
                spoilt = spoilt or not placed  # its profile is spent: the next case gets a session of its own
            failed = True
            channel.add_json("E", report)
            end_if_lost(channel, backend)
            if spoilt:
                session = None


def file_of_library(onnxruntime: Any) -> str:
    """Return size and time of the library that a release consists of: another build has others."""
    try:
        state = os.stat(onnxruntime.capi.onnxruntime_pybind11_state.__file__)
    except (AttributeError, OSError):
        return ""
    return "%d %d" % (state.st_size, state.st_mtime_ns)


def version_of(text: str) -> Tuple[int, ...]:
    """Return major and minor number of a release: `1.15.1` is (1, 15)."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def with_identity(model: bytes) -> bytes:
    """Return a ModelProto with the IR version and the opsets of another, and one Identity for its graph."""
    versions = [whole for number, _, whole in _fields(memoryview(model)) if number in _VERSIONS]
    return b"".join(versions) + _IDENTITY


def nodes_of_model(model: bytes) -> Tuple[List[str], List[List[List[str]]]]:
    """Return the operators of the nodes of a ModelProto's graph, in its order, each behind its domain where it has one,
    and the names of what each takes and gives."""
    operators, edges = [], []
    for number, graph, _ in _fields(memoryview(model)):
        for place, node, _ in _fields(graph) if number == 7 else ():
            if place == 1:
                # inputs, outputs, operator and domain by their fields
                texts: Dict[int, List[str]] = {1: [], 2: [], 4: [], 7: []}
                for field, part, _ in _fields(node):
                    if field in texts:
                        texts[field].append(str(part, "utf-8", "replace"))
                operators.append(".".join(filter(None, texts[7] + texts[4])))
                edges.append([texts[1], texts[2]])
    return operators, edges


def _fields(message: memoryview) -> Iterator[Tuple[int, memoryview, memoryview]]:
    """Yield the fields of a message of Protocol Buffers: number, content of a length-delimited one, and the whole."""
    at = 0
    while at < len(message):
        start, content = at, message[:0]
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 2:
            size, at = _varint(message, at)
            content = message[at : at + size]
            at += size
        elif kind == 0:
            _, at = _varint(message, at)
        else:
            at += 8 if kind == 1 else 4
        yield key >> 3, content, message[start:at]


def _varint(data: Sequence[int], at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def decode_inputs(
    unit: Unit, payload: memoryview, at: int, shapes: Sequence[Sequence[int]]
) -> Tuple[List[Any], int]:
    """Return the inputs of a call, and where they end."""
    arrays = []
    for (_, element), shape in zip(unit["inputs"], shapes):
        count = math.prod(shape)
        if element == _STRING:
            texts, size = decode_texts(payload[at:], count)
            array = np.empty(count, object)
            array[:] = texts
            array = array.reshape(shape)
        else:
            dtype = stored(element)
            size = count * dtype.itemsize
            array = (
                np.frombuffer(payload, dtype, count, at).reshape(shape) if count else np.empty(shape, dtype)
            )
        at += size
        arrays.append(array)
    return arrays, at


def failure(case: int, stage: str, error: Exception, seconds: float) -> Dict[str, Any]:
    """Describe a provider's error: class (an error can name one more telling than its type), message, and the
    stage it came from. A mistake of this program is no answer of a provider: it ends the process."""
    if isinstance(error, (AttributeError, NameError, AssertionError)):
        raise error
    label = getattr(error, "label", None) or type(error).__name__
    return {"case": case, "stage": stage, "class": label, "message": str(error)[:4000], "seconds": seconds}


def end_if_lost(channel: Channel, backend: Any) -> None:
    """End the process after an error with which its device is gone for good; a new worker takes the cases
    that are left."""
    if backend.lost:
        channel.send()
        os._exit(LOST)


def load() -> Any:
    """Import onnxruntime without the telemetry of 1.29 and later, which has a thread, a file in the user's folder and a
    server that it reports sessions to."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def die_with_parent() -> None:
    """Ask the operating system to end this process with its parent, so that a killed harness leaves nothing
    behind."""
    parent = os.getppid()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
        # the parent may have died while this interpreter was starting
        if os.getppid() != parent or os.environ.get("HARNESS_PARENT", str(parent)) != str(parent):
            os._exit(1)
    elif sys.platform != "win32":

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(1)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


def limit_memory(limit: int) -> None:
    """Bound this process's address space to `limit` bytes, where the platform can."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def serve(channel: Channel, make_backend: Callable[[], Any]) -> None:
    """Greet, then answer requests until the stream ends."""
    die_with_parent()
    request = channel.read()
    if request is None:
        return
    start = request[0]
    if start.get("memory_limit"):
        limit_memory(start["memory_limit"])
    import platform

    global np
    np = importlib.import_module(
        "numpy"
    )  # after the memory limit, and after what a platform has to do before
    backend = make_backend()
    hello = {
        "protocol": PROTOCOL,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }
    hello.update(backend.hello())
    channel.add_json("H", hello)
    channel.send()
    while True:
        request = channel.read()
        if request is None:
            return
        header, payload = request
        at = 0
        for unit in header["units"]:
            run_unit(channel, backend, dict(header["kinds"][unit["kind"]], **unit), payload, at)
            at += unit["bytes"]
        channel.add("D", b"")
        channel.send()


def main() -> None:
    """Serve as a worker of onnxruntime."""
    serve(Channel(), OnnxRuntime)


if __name__ == "__main__":
    main()
