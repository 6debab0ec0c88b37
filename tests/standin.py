"""A package index in a folder, whose wheels hold a version and nothing else: for tests of installing, not of
what is installed."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

SLOW_ENV = "STANDIN_SECONDS"
"""How many seconds a stand-in for onnxruntime takes to be imported: an installation starts it once."""
_CODE = f"""import os, time
time.sleep(float(os.environ.get("{SLOW_ENV}", "0")))
__version__ = "%s"
"""


def write_index(folder: Path, releases: Mapping[str, Sequence[str]]) -> str:
    """Write wheels of onnxruntime, by version the tags of the Pythons that have one, and one of numpy; return
    the index's address."""
    for project, versions in {"onnxruntime": releases, "numpy": {"2.0.0": ["py3"]}}.items():
        place = folder / "simple" / project
        place.mkdir(parents=True)
        wheels = [_wheel(place, project, version, tag) for version, tags in versions.items() for tag in tags]
        links = "".join(f'<a href="{name}">{name}</a>\n' for name in wheels)
        (place / "index.html").write_text(
            f"<!DOCTYPE html><html><body>\n{links}</body></html>\n", encoding="utf-8"
        )
    return (folder / "simple").as_uri()


def _wheel(folder: Path, project: str, version: str, tag: str) -> str:
    """Write one wheel; return the name of its file."""
    name, info = f"{project}-{version}-{tag}-none-any.whl", f"{project}-{version}.dist-info"
    files = {
        f"{project}/__init__.py": _CODE % version
        if project == "onnxruntime"
        else f'__version__ = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}-none-any\n",
    }
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
    return name
