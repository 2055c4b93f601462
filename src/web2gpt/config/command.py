"""``web2gpt config``: check a configuration, show it with its defaults, print its schema."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.files import missing_files
from web2gpt.config.flags import parse_object
from web2gpt.config.load import dump_config, load_config, read_config
from web2gpt.config.reference import reference_text
from web2gpt.config.schema import schema_text
from web2gpt.errors import ConfigError
from web2gpt.io.atomic import write_text

app = typer.Typer(help="Check and show a configuration.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="the configuration, YAML", metavar="FILE")]


@app.command()
def check(file: File) -> None:
    """Say that a configuration is valid, or all that is wrong with it, a line each.

    Example: web2gpt config check config.yaml
    """
    config = read_config(file)
    if missing := missing_files(config):
        raise ConfigError("\n".join(missing))
    print(f"{file}: valid")


@app.command()
def show(
    file: File,
    json: Annotated[bool, typer.Option("--json", help="as JSON instead")] = False,
) -> None:
    """Print a configuration with every default written out, as YAML.

    Example: web2gpt config show config.yaml
    """
    config = read_config(file)
    print(config.model_dump_json(indent=2) + "\n" if json else dump_config(config), end="")


@app.command()
def schema() -> None:
    """Print the configuration's JSON Schema.

    Example: web2gpt config schema > workflow/schemas/config.schema.json
    """
    print(schema_text(), end="")


@app.command()
def reference() -> None:
    """Print the guide's page on all settings.

    Example: web2gpt config reference > docs/configuration.md
    """
    print(reference_text(), end="")


@app.command()
def resolve(
    *,
    settings: Annotated[str, typer.Option(help="the whole configuration, as one JSON object")],
    output: Annotated[Path, typer.Option(help="the resolved configuration, YAML")],
) -> None:
    """Write the configuration of a run with every default; the workflow's own form of ``show``.

    Example: web2gpt config resolve --settings '{"input": [...]}' --output config.yaml
    """
    write_text(output, dump_config(load_config(parse_object(settings))))
    print(f"config: {output}, every default written out")
