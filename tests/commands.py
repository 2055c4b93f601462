"""Every command of the command line, by its words, for tests that go through them all."""

from collections.abc import Iterator
from typing import Any, Protocol

import typer.main

from web2gpt.cli import app


class Parameter(Protocol):
    """An option or argument, as the command line's library has it."""

    name: str
    required: bool
    opts: list[str]
    param_type_name: str
    help: str | None
    default: Any


ROOT: Any = typer.main.get_command(app)
"""The whole command line, put together once: ``app()`` does so at each call."""


def _walk() -> Iterator[tuple[tuple[str, ...], Any]]:
    waiting: list[tuple[tuple[str, ...], Any]] = [((), ROOT)]
    while waiting:
        words, command = waiting.pop(0)
        inner = getattr(command, "commands", None)
        if inner is None:
            yield words, command
        else:
            waiting += [((*words, name), one) for name, one in inner.items()]


_BY_WORDS = dict(_walk())
COMMANDS = list(_BY_WORDS)


def command_named(words: tuple[str, ...]) -> Any:
    """The command, with its ``params`` and ``help``."""
    return _BY_WORDS[words]
