"""The command line: one command a stage, each defined beside its stage.

Exit codes: 0 done, 1 a fault that the message explains, 2 wrong arguments, 75 stopped on request
and ready to be carried on, 130 interrupted from the keyboard.
"""

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from web2gpt import __version__
from web2gpt.checkpoint.command import checkpoint, merge_checkpoint
from web2gpt.clean.command import clean, decontaminate
from web2gpt.config import command as config
from web2gpt.dedup import command as dedup
from web2gpt.demo.command import demo
from web2gpt.errors import Web2gptError, of_the_system
from web2gpt.evaluate.command import evaluate
from web2gpt.extract.command import extract
from web2gpt.fetch.command import ServedFolder, fetch_command
from web2gpt.io.command import statistics
from web2gpt.merge.command import merge
from web2gpt.report.command import compare, manifest, report, watch
from web2gpt.sample.command import sample
from web2gpt.tokens import command as tokens
from web2gpt.train.command import train
from web2gpt.train.estimate_command import estimate
from web2gpt.urls.command import urls


def serve_folder(folder: Path) -> ServedFolder:
    """The demo's server, loaded only when a fetch wants it."""
    from web2gpt.demo import server

    return server.serve_folder(folder)


app = typer.Typer(
    name="web2gpt",
    epilog="Exit codes: 0 done; 1 a fault, which the message explains; 2 wrong arguments; "
    "75 stopped on request, to be carried on; 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"web2gpt {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="print the version"),
    ] = False,
) -> None:
    """From a list of URLs to a trained GPT-2. Each command is one stage of the workflow."""


DATA, TOKENS, TRAINING, RUNS = "Data", "Tokens", "Training and models", "Runs"

app.command(rich_help_panel=DATA)(demo)
app.command(rich_help_panel=DATA)(urls)
app.command("fetch", rich_help_panel=DATA)(fetch_command(serve_folder))
app.command(rich_help_panel=DATA)(extract)
app.add_typer(dedup.app, rich_help_panel=DATA)
app.command(rich_help_panel=DATA)(clean)
app.add_typer(decontaminate, name="decontaminate", rich_help_panel=DATA)
app.command(rich_help_panel=DATA)(merge)
app.command(rich_help_panel=DATA)(statistics)
app.command(rich_help_panel=TOKENS)(tokens.tokenizer)
app.command(rich_help_panel=TOKENS)(tokens.tokenize)
app.command(rich_help_panel=TOKENS)(tokens.index)
app.add_typer(tokens.app, name="tokens", rich_help_panel=TOKENS)
app.command(rich_help_panel=TRAINING)(estimate)
app.command(rich_help_panel=TRAINING)(train)
app.command(rich_help_panel=TRAINING)(merge_checkpoint)
app.add_typer(checkpoint, name="checkpoint", rich_help_panel=TRAINING)
app.command(rich_help_panel=TRAINING)(sample)
app.command(rich_help_panel=TRAINING)(evaluate)
app.add_typer(config.app, name="config", rich_help_panel=RUNS)
app.command(rich_help_panel=RUNS)(report)
app.command(rich_help_panel=RUNS)(watch)
app.command(rich_help_panel=RUNS)(compare)
app.command(rich_help_panel=RUNS)(manifest)


def main() -> None:
    """Run a command; a fault that the user can mend is one message, without a traceback."""
    if isinstance(sys.stdout, TextIOWrapper):  # a terminal that cannot show a letter is no fault
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except Web2gptError as error:
        _end(error)
    except OSError as error:
        explained = of_the_system(error)
        if explained is None:
            raise
        _end(explained)


def _end(error: Web2gptError) -> NoReturn:
    print(f"web2gpt: {error}", file=sys.stderr)
    sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
