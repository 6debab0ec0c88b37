"""The worker of a plugin: python plugin_worker.py worker.py '{"library": PATH, "name": …, "provider": …,
"device": …, "options": {…}}'

Serves the frames of `worker.py` on an execution provider of a shared library, which ONNX Runtime registers on
request: https://onnxruntime.ai/docs/execution-providers/plugin-ep-libraries/usage.html. Every session uses
one device of the library. If the library or the device is unavailable, one line on stderr says why and the
process ends with code 87, before it greets.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import mmap
import os
import sys
from typing import Any, NoReturn

REFUSED = 87
"""The exit code of a worker that said why it cannot greet."""
REMEDY = "name the library of an execution provider that is built for this machine and this release"
_FACTORY = "CreateEpFactories"
_NEEDED = ("register_execution_provider_library", "get_ep_devices")


def refuse(why: str) -> NoReturn:
    """Say why in one line and end, without unloading what may be half loaded."""
    print("harness: " + " ".join(why.split()), file=sys.stderr, flush=True)
    os._exit(REFUSED)


def described(device: Any) -> str:
    """Return a device as it is shown and named: its vendor, its type and the numbers of both, `Intel GPU
    8086:56a0`."""
    return f"{device.device.vendor} {adapter(device)}".strip()


def adapter(device: Any) -> str:
    """Return the type of a device and its numbers, hexadecimal: `GPU 8086:56a0`."""
    hardware = device.device
    return f"{hardware.type.name} {hardware.vendor_id:04x}:{hardware.device_id:x}"


def metadata_of(device: Any, library: str) -> dict[str, str]:
    """Return what the provider and the hardware say of a device, without where the library lies."""
    found = {**dict(device.device.metadata), **dict(device.ep_metadata)}
    return {str(key): str(value) for key, value in sorted(found.items()) if value != library}


def chosen(devices: list[Any], wanted: str | None, library: str) -> Any:
    """Return the device of a number, of a type (`GPU`) or of a value in its metadata; the first one where
    none is wanted."""
    listed = "; ".join(f"{number}: {described(device)}" for number, device in enumerate(devices))
    if wanted is None:
        return devices[0]
    if wanted.isdecimal():
        if int(wanted) >= len(devices):
            refuse(f"has no device {wanted}, it lists {listed}")
        return devices[int(wanted)]

    def names(device: Any) -> set[str]:
        return {
            name.casefold()
            for name in (device.device.type.name, described(device), *metadata_of(device, library).values())
        }

    found = [device for device in devices if wanted.casefold() in names(device)]
    if not found:
        refuse(f"has no device {wanted!r}, it lists {listed}; name one of these by its number, device=0")
    if len(found) > 1:
        refuse(f"has {len(found)} devices {wanted!r}: {listed}; name one of these by its number, device=0")
    return found[0]


def main() -> None:
    """Load the frames from the worker's file, register the library, and serve."""
    sys.path.insert(0, os.path.dirname(sys.argv[1]))
    worker: Any = importlib.import_module("worker")
    asked = json.loads(sys.argv[2])
    library = asked["library"]

    class Plugin(worker.OnnxRuntime):  # type: ignore[misc] # a module that is loaded from a file
        """Sessions on one device of the library's provider."""

        def __init__(self) -> None:
            super().__init__()
            ort = self.ort
            options = asked["options"]
            if not all(hasattr(ort, name) for name in _NEEDED) or self._profiles:
                refuse(
                    f"onnxruntime {ort.__version__} loads no plugins, or cannot tell where their nodes are; take 1.24 or later"
                )
            before = {*ort.get_available_providers(), *(device.ep_name for device in ort.get_ep_devices())}
            try:
                with (
                    open(library, "rb") as file,
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
                ):
                    self._sha256 = hashlib.sha256(data).hexdigest()
                ort.register_execution_provider_library(asked["name"], library)
            except Exception as error:  # noqa: BLE001 - whatever a library raises is why it is not here
                if _FACTORY in str(error):
                    refuse(f"its library is no plugin of ONNX Runtime, it exports no {_FACTORY}; {REMEDY}")
                refuse(f"its library cannot be registered: {error}; {REMEDY}")
            listed = [device for device in ort.get_ep_devices() if device.ep_name not in before]
            names = list(dict.fromkeys(device.ep_name for device in listed))
            if not listed:
                refuse(
                    f"lists no device on this machine (onnxruntime {ort.__version__}); it needs hardware, and a driver, that it supports"
                )
            if asked["provider"] not in (None, *names):
                refuse(
                    f"lists devices of {', '.join(names)}, not of {asked['provider']}; name that with provider="
                )
            if asked["provider"] is None and len(names) > 1:
                refuse(f"has several providers, {', '.join(names)}; name one with provider=")
            self._provider = asked["provider"] or names[0]
            others = [name for name in ort.get_available_providers() if name != self._provider]
            self._providers = [self._provider, *others]
            self._device = chosen(
                [device for device in listed if device.ep_name == self._provider], asked["device"], library
            )
            if options:
                self._try(options)

        def _try(self, options: dict[str, str]) -> None:
            """See that a session can be made with these options: one that cannot says nothing of a case."""
            given = ", ".join(f"option.{key}={value}" for key, value in options.items())
            model = b"\x08\x08\x42\x04\x0a\x00\x10\x0d" + worker._IDENTITY  # IR version 8, opset 13
            session = self.ort.SessionOptions()
            session.log_severity_level = 4
            try:
                session.add_provider_for_devices([self._device], options)
                self.ort.InferenceSession(model, session, enable_fallback=0)
            except Exception as error:  # noqa: BLE001 - any refusal is one of the options
                refuse(f"makes no session with {given}: {error}")

        def hello(self) -> dict[str, Any]:
            """Say which onnxruntime, library, provider and device this is."""
            hardware = self._device.device
            device = {
                "provider": self._provider,
                "plugin": os.path.basename(library),
                "plugin_sha256": self._sha256,
                "plugin_vendor": self._device.ep_vendor,
                "vendor": hardware.vendor,
                "adapter": adapter(self._device),
                "device_metadata": metadata_of(self._device, library),
            }
            return {"onnxruntime": self.ort.__version__, "providers": self._providers, "device": device}

        def _asked_providers(self, unit: Any) -> dict[str, Any]:
            """The options of a session name the device, alone: what its provider does not take is an error, never a
            quiet CPU session."""
            return {}

        def _new_options(self, unit: Any) -> Any:
            options = super()._new_options(unit)
            options.add_provider_for_devices([self._device], asked["options"])
            return options

    worker.serve(worker.Channel(), Plugin)


if __name__ == "__main__":
    main()
