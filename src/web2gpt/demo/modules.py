"""Choose the modules whose documentation makes the demo, and have a child process read them.

The choice depends on the version of Python and of the pinned packages alone: windows, games,
tests and what differs between machines are left out, and so is what cannot be imported.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

TIMEOUT = 60.0  # seconds a module may take to be imported and read

LEFT_OUT = frozenset((
    "antigravity", "this", "idlelib", "test", "turtle", "turtledemo", "tkinter", "lib2to3",
    "ensurepip", "venv", "pip", "crypt", "curses", "distutils", "dbm", "nis", "ossaudiodev",
    "readline", "spwd", "posix", "nt", "msilib", "msvcrt", "winreg", "winsound", "pydoc_data",
    "sre_compile", "sre_constants", "sre_parse"
))  # fmt: skip
"""Standard modules that open windows, act when imported, or exist on some machines only."""

PACKAGES = ("numpy", "polars", "scipy.linalg", "scipy.ndimage", "scipy.optimize",
            "scipy.signal", "scipy.spatial", "scipy.stats")  # fmt: skip
"""Installed packages, all of them pinned dependencies, with much prose of their own."""

DEEP = frozenset({"numpy"})
"""Packages whose submodules are read too; the others repeat themselves in theirs."""


def read_modules() -> Iterator[dict[str, Any]]:
    """The documentation of each module (see ``reading``), packages before their submodules."""
    standard = sorted(
        name for name in sys.stdlib_module_names if name[0] != "_" and name not in LEFT_OUT
    )
    with ModuleReader() as reader:
        for name in (*standard, *PACKAGES):
            yield from _read_tree(reader, name, deep=name in standard or name in DEEP)


def _read_tree(reader: "ModuleReader", name: str, *, deep: bool) -> Iterator[dict[str, Any]]:
    module = reader.read(name)
    if module is None:
        return
    yield module
    for submodule in module["submodules"] if deep else ():
        yield from _read_tree(reader, submodule, deep=True)


class ModuleReader:
    """The child process, started again whenever a module has killed or stopped it.

    ``path`` is a further folder to find modules in.
    """

    def __init__(self, path: Path | None = None):
        self._path = path

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory()
        self._child: subprocess.Popen[str] | None = None
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        self._home.cleanup()

    def read(self, name: str) -> dict[str, Any] | None:
        """A module's documentation; None if it cannot be had."""
        child = self._child = self._child or self._start()
        assert child.stdin and child.stdout
        timer = threading.Timer(TIMEOUT, child.kill)
        timer.start()
        try:
            print(name, file=child.stdin, flush=True)
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if not answer:
            self._end()
            return None
        module: dict[str, Any] | None = json.loads(answer)
        return module

    def _start(self) -> subprocess.Popen[str]:
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": self._home.name,
            "PYTHONHASHSEED": "0",
            "MPLBACKEND": "Agg",
            "OPENBLAS_NUM_THREADS": "1",
            "POLARS_MAX_THREADS": "1",
            "COLUMNS": "80",
            "LC_ALL": "C.UTF-8",
        }
        if self._path is not None:
            environment["PYTHONPATH"] = str(self._path)
        return subprocess.Popen(
            [sys.executable, "-s", "-B", "-P", str(Path(__file__).with_name("reading.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=self._home.name,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def _end(self) -> None:
        if self._child:
            self._child.kill()
            self._child.communicate()
        self._child = None
