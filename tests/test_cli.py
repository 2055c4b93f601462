"""The command line: help, exit codes, and errors as one message without a traceback."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
import typer.main
from typer.testing import CliRunner

from web2gpt.cli import app


def commands() -> Iterator[tuple[str, ...]]:
    """The words of each command, those of groups of commands too."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop(0)
        inner = getattr(command, "commands", None)
        if inner is None:
            yield words
        else:
            waiting += [((*words, name), one) for name, one in inner.items()]


COMMANDS = list(commands())
each_command = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


def web2gpt(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "web2gpt.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@each_command
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


@each_command
def test_an_unknown_option_is_a_wrong_argument(words: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, [*words, "--no-such-option"]).exit_code == 2


def test_every_option_has_a_help_text() -> None:
    for words in COMMANDS:
        command: click.Command | click.Group = typer.main.get_command(app)
        for word in words:
            command = command.commands[word]  # type: ignore[union-attr]
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{' '.join(words)} {parameter.name}"


def test_without_a_command_the_help_is_shown() -> None:
    done = web2gpt()
    assert "Usage" in done.stdout + done.stderr


def test_a_fault_is_one_message_without_a_traceback() -> None:
    done = web2gpt("config", "check", "no-such-file.yaml")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "web2gpt: no-such-file.yaml: no such file; the configuration is one YAML file.\n"
    )


def test_wrong_arguments_end_with_2() -> None:
    done = web2gpt("statistics", "--limit", "much")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
