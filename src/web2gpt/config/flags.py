"""A stage's settings as command-line flags, made from their schema, so that nothing is said twice.

The workflow hands a stage its section as JSON (``--settings``); by hand the same settings are
flags, which win over the JSON. Nested sections have dotted names: ``--model.n-layer 12``.
"""

import functools
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from web2gpt.config.base import Settings
from web2gpt.config.load import parse_settings
from web2gpt.errors import ConfigError

Command = Callable[..., None]


def with_settings(kind: type[Settings]) -> Callable[[Command], Command]:
    """Replace a command's parameter ``settings: kind`` by one flag for each setting."""

    def decorate(function: Command) -> Command:
        fields = {"__".join(path): (path, field) for path, field in _leaves(kind)}

        @functools.wraps(function)
        def command(**values: Any) -> None:
            given = parse_object(values.pop("settings"))
            for parameter, (path, _) in fields.items():
                value = values.pop(parameter)
                if value is not None:
                    _set(given, path, value)
            function(settings=parse_settings(kind, json.dumps(given)), **values)

        own = inspect.signature(function, eval_str=True).parameters.values()
        parameters = [parameter for parameter in own if parameter.name != "settings"]
        parameters.append(
            _parameter("settings", str, "the settings as one JSON object", "--settings")
        )
        for parameter, (path, field) in fields.items():
            flag = "--" + ".".join(path).replace("_", "-")
            parameters.append(_parameter(parameter, _type(field), _help(field), flag))
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as documented
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return decorate


def _leaves(
    kind: type[Settings], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, field in kind.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Settings):
            yield from _leaves(annotation, (*path, name))
        elif _type(field) is not None:
            yield (*path, name), field


def _type(field: FieldInfo) -> Any:
    """The flag's type: as in the schema, tuples as repeated flags; None if it cannot be a flag."""
    annotation = _without_none(field.annotation)
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        texts = all(isinstance(argument, str) for argument in arguments)
        return annotation if texts else type(arguments[0])
    if get_origin(annotation) is tuple:
        return list[str] if arguments[0] is str else None
    if get_origin(annotation) is Annotated:  # an optional Real
        return arguments[0]
    return annotation


def _without_none(annotation: Any) -> Any:
    """The type of an optional setting where it is given."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    is_optional = len(kinds) < len(get_args(annotation))
    return kinds[0] if is_optional else annotation


def _help(field: FieldInfo) -> str:
    default = field.default
    if default is PydanticUndefined:
        return f"{field.description} (required)"
    shown = (
        "none" if default is None else " ".join(default) if isinstance(default, tuple) else default
    )
    return f"{field.description} (default: {shown})"


def _parameter(name: str, kind: Any, text: str, flag: str) -> inspect.Parameter:
    declarations = [flag, f"--no-{flag[2:]}"] if kind is bool else [flag]
    option = typer.Option("/".join(declarations), help=text, show_default=False)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )


def parse_object(text: str | None) -> dict[str, Any]:
    """The settings in ``--settings``. Raises ``ConfigError`` if that is no JSON object."""
    try:
        given = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise ConfigError(f"--settings: not JSON ({error}); give one JSON object") from error
    if not isinstance(given, dict):
        raise ConfigError("--settings: not a JSON object; give one such as '{\"threads\": 2}'")
    given.pop("version", None)  # for Snakemake's eyes only
    return given


def _set(given: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        given = given.setdefault(part, {})
        if not isinstance(given, dict):
            raise ConfigError(
                f"--settings: {part}: {given!r} is not a section of settings; give an object"
            )
    given[path[-1]] = value
