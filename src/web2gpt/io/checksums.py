"""The checksum by which contents are known: in manifests, checkpoints and the sample index."""

import hashlib
from hashlib import blake2b
from pathlib import Path


def checksum(path: Path) -> str:
    """blake2b-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: blake2b(digest_size=32)).hexdigest()


def checksum_of(content: bytes) -> str:
    """The same of bytes at hand."""
    return blake2b(content, digest_size=32).hexdigest()
