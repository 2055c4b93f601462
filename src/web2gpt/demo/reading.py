"""Read the documentation strings of one module at a time; runs in a child process of its own.

Importing strange modules may print, hang, exit or crash, hence the child: names come in a line at
a time, and for each a line of JSON goes out: the module's own documentation, that of its public
functions and classes, and the names of its submodules, or null when it cannot be imported. What
modules print goes nowhere. Everything is in sorted order.
"""

import importlib
import inspect
import json
import os
import pkgutil
import warnings
from types import ModuleType
from typing import Any

Entry = dict[str, Any]

LEFT_OUT = ("test", "setup", "main", "idle", "example", "distutils", "f2py")
"""Submodules whose name contains one of these document nothing, or do things when imported."""


def main() -> None:
    """Answer each name on standard input."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    names = iter(os.fdopen(os.dup(0)).readline, "")
    os.dup2(nowhere, 0)
    warnings.simplefilter("ignore")
    for name in names:
        print(json.dumps(read_module(name.strip())), file=answers, flush=True)


def read_module(name: str) -> Entry | None:
    """The documentation in a module, or None if it cannot be imported."""
    try:
        module = importlib.import_module(name)
    except BaseException:  # noqa: BLE001 - a module may do anything, exiting included
        return None
    return {
        "name": name,
        "doc": _doc(module),
        "submodules": _submodules(module),
        "entries": [entry for key in _public(module) if (entry := _entry(module, key))],
    }


def _public(module: ModuleType) -> list[str]:
    named = getattr(module, "__all__", None)
    return sorted(set(named) if named else {key for key in vars(module) if not key.startswith("_")})


def _entry(module: ModuleType, key: str) -> Entry | None:
    """A function or class that is the module's own, as far as can be told."""
    try:
        value = getattr(module, key)
    except Exception:  # noqa: BLE001 - a lazy attribute may fail in any way
        return None
    if not _is_documented_kind(value):
        return None
    home = str(getattr(value, "__module__", None) or module.__name__)
    if "__all__" not in vars(module) and home != module.__name__:
        return None
    if home.partition(".")[0] != module.__name__.partition(".")[0] and "__all__" not in vars(
        module
    ):
        return None
    members = _members(value) if inspect.isclass(value) else []
    return {"name": key, "doc": _doc(value), "members": members}


def _is_documented_kind(value: object) -> bool:
    return (
        inspect.isclass(value) or inspect.isroutine(value) or type(value).__name__ == "ufunc"
    ) and not isinstance(value, ModuleType)


def _members(kind: type) -> list[Entry]:
    """Methods and properties defined in the class itself."""
    members = []
    for key, value in sorted(vars(kind).items()):
        if key.startswith("_") or inspect.isclass(value):
            continue
        described = inspect.isroutine(value) or isinstance(value, property | classmethod)
        if described and (doc := _doc(value)):
            members.append({"name": key, "doc": doc})
    return members


def _doc(value: object) -> str:
    doc = getattr(value, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""


def _submodules(module: ModuleType) -> list[str]:
    path = getattr(module, "__path__", None)
    names = (part.name for part in pkgutil.iter_modules(path)) if path else iter(())
    return sorted(
        f"{module.__name__}.{name}"
        for name in names
        if not name.startswith("_") and not any(word in name for word in LEFT_OUT)
    )


if __name__ == "__main__":
    main()
