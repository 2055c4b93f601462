"""Settings given as flags and as JSON agree, for every section."""

import contextlib
import functools
import io
import json
from typing import Annotated, Any

import click
import pytest
import typer
import typer.main

from web2gpt.config.base import Settings
from web2gpt.config.flags import _leaves, with_settings
from web2gpt.config.root import Clean, Config
from web2gpt.config.tokens import Tokenizer
from web2gpt.config.training import Optimizer, Parallel
from web2gpt.errors import ConfigError

SECTIONS: dict[str, type[Settings]] = {
    name: field.annotation
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Settings)
}
each_section = pytest.mark.parametrize("kind", SECTIONS.values(), ids=SECTIONS)


class Nested(Settings):
    """Sections in a section, as a stage that needs several would take them."""

    clean: Clean = Clean()
    parallel: Parallel = Parallel()
    seed: int = 0


CALLS: list[tuple[str, Any]] = []


@functools.cache
def command(kind: type[Settings]) -> click.Command:
    """A command that has ``kind`` for settings and notes what it is called with."""
    app = typer.Typer(pretty_exceptions_enable=False)

    def function(*, output: Annotated[str, typer.Option()] = "x", settings: Any) -> None:
        CALLS.append((output, settings))

    function.__annotations__["settings"] = kind
    app.command()(with_settings(kind)(function))
    return typer.main.get_command(app)


def run(kind: type[Settings], *arguments: str) -> str:
    """What the command prints; errors are raised."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        command(kind).main(list(arguments), standalone_mode=False)
    return printed.getvalue()


def settings(kind: type[Settings], *arguments: str) -> Any:
    CALLS.clear()
    run(kind, *arguments)
    ((_, found),) = CALLS
    return found


def flags_of(path: tuple[str, ...], value: Any) -> list[str]:
    name = ".".join(path).replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    values = value if isinstance(value, list) else [value]
    return [text for one in values for text in (f"--{name}", str(one))]


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    found: dict[str, Any] = value
    return found


def outcome(kind: type[Settings], *arguments: str) -> Any:
    try:
        return settings(kind, *arguments)
    except ConfigError as error:
        return str(error)


@each_section
def test_without_flags_all_is_as_in_the_schema(kind: type[Settings]) -> None:
    assert settings(kind) == kind()


@each_section
def test_every_setting_is_a_flag_or_a_section(kind: type[Settings]) -> None:
    paths = [path for path, _ in _leaves(kind)]
    shown = run(kind, "--help")
    assert len(set(paths)) == len(paths)
    assert {path[0] for path in paths} == set(kind.model_fields)
    assert "--settings" in shown


@each_section
def test_flag_and_json_agree_for_every_setting(kind: type[Settings]) -> None:
    for path, field in _leaves(kind):
        default = field.get_default(call_default_factory=True)
        tried: list[Any] = [list(default) if isinstance(default, tuple) else default]
        if isinstance(default, bool):
            tried = [True, False]
        elif isinstance(default, int | float):
            tried += [default + 1, default * 2, type(default)(-1)]
        elif isinstance(default, tuple):
            tried += [["a"], ["a b", "c,d", ""]]
        elif default is None:
            is_number = any(word in str(field.annotation) for word in ("int", "float"))
            tried = [1, 7] if is_number else ["x", "a/b c", "ä"]
            if "tuple" in str(field.annotation):
                tried = [["a"], ["a b", "c,d", ""]]
        for value in tried:
            if value == []:
                continue  # no flag says "none at all"; --settings does
            by_json = outcome(kind, "--settings", json.dumps(nested(path, value)))
            assert outcome(kind, *flags_of(path, value)) == by_json


def test_flags_win_over_json_and_leave_the_rest_alone() -> None:
    given = '{"languages": ["de"], "min_tokens": 5, "fix_text": false, "version": 3}'
    found = settings(Clean, "--settings", given, "--min-tokens", "7", "--fix-text")
    assert found == Clean(languages=("de",), min_tokens=7, fix_text=True)


def test_lists_are_repeated_flags_and_replace_the_list() -> None:
    given = '{"languages": ["de", "it"]}'
    found = settings(Clean, "--settings", given, "--languages", "fr", "--languages", "es")
    assert found.languages == ("fr", "es")


def test_sections_in_sections_have_dotted_flags() -> None:
    given = '{"clean": {"min_tokens": 5, "fix_text": false}, "seed": 1}'
    found = settings(
        Nested, "--settings", given, "--clean.fix-text", "--parallel.tensor", "4", "--seed", "2"
    )
    assert found == Nested(
        clean=Clean(min_tokens=5, fix_text=True), parallel=Parallel(tensor=4), seed=2
    )


def test_numbers_may_be_written_with_an_exponent() -> None:
    assert settings(Optimizer, "--lr", "1e-3").lr == 1e-3


def test_a_literal_of_numbers_is_a_number() -> None:
    assert settings(Parallel, "--zero", "2").zero == 2
    assert "0, 1, 2 or 3" in outcome(Parallel, "--zero", "5")


def test_the_commands_own_options_stay() -> None:
    CALLS.clear()
    run(Tokenizer, "--output", "here")
    assert [("here", Tokenizer())] == CALLS


def test_the_default_stands_in_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(run(Tokenizer, "--help").split())
    assert f"(default: {Tokenizer().vocab_size})" in shown
    assert "(default: none)" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "--settings: not JSON"),
        ("[1]", "--settings: not a JSON object"),
        ('{"vocab_size": "many"}', "vocab_size: 'many' is not allowed"),
        ('{"vocab_sise": 1}', "vocab_sise: no such setting; did you mean vocab_size?"),
    ],
)
def test_wrong_settings_are_explained(text: str, message: str) -> None:
    assert message in outcome(Tokenizer, "--settings", text)


def test_a_value_where_a_section_belongs_is_explained() -> None:
    message = outcome(Nested, "--settings", '{"clean": 3}', "--clean.min-tokens", "4")
    assert message == "--settings: clean: 3 is not a section of settings; give an object"


def test_a_wrong_flag_is_a_usage_error() -> None:
    for wrong in (("--vocab-size", "many"), ("--no-such", "1")):
        with pytest.raises(SystemExit) as end:
            command(Tokenizer).main(list(wrong))
        assert end.value.code == 2
