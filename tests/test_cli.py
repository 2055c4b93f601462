"""The command line: help, examples, exit codes, completion, and what is said where."""

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import COMMANDS, command_named
from tests.report.conftest import make_run
from typer.testing import CliRunner

from web2gpt import __version__
from web2gpt.cli import app

each_command = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
WIDE = {"COLUMNS": "300", "TERMINAL_WIDTH": "300"}


def web2gpt(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "web2gpt.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def options_of(words: tuple[str, ...]) -> set[str]:
    """Every spelling of an option that a command takes."""
    parameters = command_named(words).params
    return {text for one in parameters for text in (*one.opts, *one.secondary_opts)
            if text.startswith("-")}  # fmt: skip


@each_command
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"], env=WIDE)
    assert result.exit_code == 0
    assert "Usage" in result.output
    assert "\x1b" not in result.output  # no terminal, no colours
    for option in options_of(words):
        assert option in result.output


@each_command
def test_every_help_has_an_example_that_the_command_understands(words: tuple[str, ...]) -> None:
    _, _, example = command_named(words).help.partition("Example: ")
    assert example, "no example"
    arguments = shlex.split(example.split("\n\n")[0])
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    assert arguments[: len(words) + 1] == ["web2gpt", *words]
    given = {text.split("=")[0] for text in arguments if text.startswith("--")}
    assert given <= options_of(words)
    required = {one.opts[0] for one in command_named(words).params
                if one.required and one.param_type_name == "option"}  # fmt: skip
    assert required <= given, "an example that does not run"


@each_command
def test_every_option_says_what_it_is_and_its_default(words: tuple[str, ...]) -> None:
    for parameter in command_named(words).params:
        name = f"{' '.join(words)} {parameter.name}"
        assert parameter.help, name
        is_flag = getattr(parameter, "is_flag", False)
        if parameter.required or parameter.default in (None, [], ()) or is_flag:
            continue
        assert parameter.show_default or "(default: " in parameter.help, name


@each_command
def test_an_unknown_option_is_a_wrong_argument(words: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, [*words, "--no-such-option"]).exit_code == 2


def test_settings_state_their_defaults() -> None:
    result = CliRunner().invoke(app, ["clean", "--help"], env=WIDE)
    assert re.search(r"--min-tokens\b.*shortest document kept, in tokens \(default: 128\)",
                     result.output)  # fmt: skip


def test_without_a_command_the_help_is_shown_with_the_exit_codes() -> None:
    result = CliRunner().invoke(app, [], env=WIDE)
    for told in ("Usage", "0 done", "1 a fault", "2 wrong arguments", "75 stopped", "130"):
        assert told in result.output


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


def test_an_output_that_nobody_reads_on_is_no_fault() -> None:
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m web2gpt.cli config schema | head -n 1",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"COMP_WORDS": "web2gpt ev", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "web2gpt ev",
             "_TYPER_COMPLETE_FISH_ACTION": "get-args"}  # fmt: skip
    variables = {**words, "_WEB2GPT_COMPLETE": f"complete_{shell}"}
    result = CliRunner().invoke(app, [], prog_name="web2gpt", env=variables)
    assert "evaluate" in result.output
    assert "tokenize" not in result.output


COLOUR = re.compile(rb"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38)[;m]")


@pytest.mark.parametrize("no_color", ["1", ""])
def test_no_color_is_respected_on_a_terminal(tmp_path: Path, no_color: str) -> None:
    made = make_run(tmp_path)
    done = made.data / "work" / "urls"
    done.mkdir(parents=True)
    (done / "job").write_text("x")
    (done / "published.json").write_text("[]")
    folders = ["--data", str(made.data), "--run", str(made.run), "--once"]
    commands = (["watch", "--help"], ["watch", *folders], ["compare", str(made.run), str(made.run)])
    for command in commands:
        shown = on_a_terminal(*command, NO_COLOR=no_color)
        assert b"sage" in shown or b"loss" in shown, command
        if no_color:
            assert not COLOUR.search(shown), command
        elif command[0] == "watch":
            assert COLOUR.search(shown), "a terminal has colours"


def on_a_terminal(*arguments: str, **variables: str) -> bytes:
    """All that a command shows on a terminal of many colours."""
    terminal, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    environment.pop("FORCE_COLOR", None)
    if not variables.get("NO_COLOR"):
        environment.pop("NO_COLOR", None)
    process = subprocess.Popen([sys.executable, "-m", "web2gpt.cli", *arguments],
                               stdout=inner, stderr=inner, env=environment)  # fmt: skip
    os.close(inner)
    shown = b""
    while chunk := read_terminal(terminal):
        shown += chunk
    os.close(terminal)
    assert process.wait() == 0, shown
    return shown


def read_terminal(terminal: int) -> bytes:
    """What a terminal shows next; nothing once its other side is closed."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_the_version_is_told() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.output == f"web2gpt {__version__}\n"


def test_facts_can_be_had_as_json() -> None:
    config = Path(__file__).parents[1] / "config.yaml"
    result = CliRunner().invoke(app, ["config", "show", str(config), "--json"])
    assert '"n_layer": 4' in result.output


def test_a_terminal_that_cannot_show_a_letter_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    source = "input: [{name: a, kind: jsonl, paths: [a.jsonl]}]"
    file.write_text(f'{source}\nsample: {{prompts: ["caf\u00e9"]}}\n', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "web2gpt.cli", "config", "show", str(file)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert rb"caf\xe9" in done.stdout
