"""What a run was made with and what came out: versions, and a hash of each file."""

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import web2gpt
from web2gpt.errors import InputError
from web2gpt.io.checksums import checksum


def make_manifest(files: Iterable[Path]) -> dict[str, Any]:
    """Versions of Python and packages; bytes and blake2b-256 of each file, in the order given.

    A folder stands for the files in it. Raises ``InputError`` for a file that is not there.
    """
    listed = [file for path in files for file in _files_of(path)]
    return {
        "web2gpt": web2gpt.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": package_versions(),
        "files": {str(file): _describe(file) for file in dict.fromkeys(listed)},
    }


def package_versions() -> dict[str, str]:
    """The installed version of each package that this project depends on."""
    versions = {}
    for line in requires("web2gpt") or []:
        name = Requirement(line).name
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # an optional one
            continue
    return dict(sorted(versions.items()))


def _files_of(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())
    if not path.exists():
        raise InputError(f"{path}: no such file; run the stage that makes it first.")
    return [path]


def _describe(file: Path) -> dict[str, int | str]:
    return {"bytes": file.stat().st_size, "blake2b": checksum(file)}
