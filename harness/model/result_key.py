"""Keys of a result of a run: a case on a target, as few bytes in memory and as a file name."""

from __future__ import annotations

from hashlib import blake2b, sha256


def result_key(case_id: str, target: str | int) -> bytes:
    """Return ten bytes for a case on a target, named or counted."""
    return blake2b(_text(case_id, target), digest_size=10).digest()


def artifact_name(case_id: str, target: str) -> str:
    """Return the file name under which a run keeps a result's tensors."""
    return sha256(_text(case_id, target)).hexdigest()[:24] + ".npz"


def case_anchor(case_id: str) -> str:
    """Return the fragment that leads to a case on its operator's page of a site; the same in every site."""
    return "c-" + sha256(case_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _text(case_id: str, target: str | int) -> bytes:
    return f"{case_id}|{target}".encode("utf-8", "surrogatepass")
