"""The configuration's reference for the guide, made from its classes: a table a section."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from web2gpt.config.base import Settings
from web2gpt.config.root import Config
from web2gpt.config.sources import Source

HEAD = """# Configuration, setting by setting
<!-- made by `web2gpt config reference > docs/configuration.md`; not to be edited -->

One YAML file, by default `config.yaml`, describes one run. What is left out has the default that
stands here; `web2gpt config show FILE` prints a file with all of them, `web2gpt config check FILE`
says what is wrong with one. The same settings are flags of the stages' commands
(`clean.min_tokens` is `web2gpt clean --min-tokens`). Rules that join several settings stand with
the pages of the stages.

There are two seeds, each with a default of its own: `merge.seed` for the corpus, which several runs
may share, and `run.seed` for one run: its weights, the order of its data, its samples.
"""


def reference_text() -> str:
    """The page, Markdown; the same for every run."""
    parts = [HEAD, *_section("input", Source, "A list; each source is")]
    whole = []
    for name, field in Config.model_fields.items():
        if name == "input":
            continue
        if _is_section(field.annotation):
            parts += _section(name, field.annotation)
        else:
            whole.append(_row(name, field, _limits(Config, name)))
    parts += ["\n## of the whole run\n\n", *_table(whole)]
    return "".join(parts)


def _section(name: str, kind: Any, beside: str = "") -> Iterator[str]:
    doc = " ".join((kind.__doc__ or "").split())
    yield f"\n## {name}\n\n{doc}{f' {beside}:' if beside else ''}\n\n"
    yield from _table(list(_rows(name, kind)))


def _rows(path: str, kind: type[BaseModel]) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        if _is_section(field.annotation):
            yield from _rows(f"{path}.{name}", field.annotation)  # type: ignore[arg-type]  # a section
        else:
            yield _row(f"{path}.{name}", field, _limits(kind, name))


def _table(rows: list[str]) -> list[str]:
    return ["| setting | default | allowed | meaning |\n|---|---|---|---|\n", *rows]


def _row(name: str, field: FieldInfo, limits: str) -> str:
    meaning = (field.description or "").replace("|", "\\|")
    return f"| `{name}` | {_default(field)} | {limits} | {meaning} |\n"


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return "none"
    return f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")


def _limits(kind: type[BaseModel], name: str) -> str:
    """What the schema allows, in words."""
    schema = kind.model_json_schema()["properties"][name]
    choices = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    return " or ".join(filter(None, (_allowed(one) for one in choices))).replace("|", "\\|")


def _allowed(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kinds = {"integer": "whole number", "number": "number", "string": "text", "array": "list",
             "boolean": "true, false"}  # fmt: skip
    parts = [kinds.get(schema.get("type", ""), "")]
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    parts += [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    return " ".join(filter(None, parts))
