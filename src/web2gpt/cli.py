"""The command line: one command a stage, each defined beside its stage.

Exit codes: 0 done, 1 a fault that the message explains, 2 wrong arguments, 75 stopped on request
and ready to be carried on, 130 interrupted from the keyboard.
"""

import sys
from pathlib import Path
from typing import NoReturn

import typer

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
    help="From a list of URLs to a trained GPT-2. Each command is one stage of the workflow.",
    epilog="Exit codes: 0 done; 1 a fault, which the message explains; 2 wrong arguments; "
    "75 stopped on request, to be carried on; 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(config.app, name="config")
app.add_typer(dedup.app)
app.command()(demo)
app.command()(urls)
app.command()(merge)
app.command()(statistics)
app.add_typer(tokens.app, name="tokens")
app.command()(tokens.tokenizer)
app.command()(tokens.tokenize)
app.command()(tokens.index)
app.command()(report)
app.command()(watch)
app.command()(compare)
app.command()(extract)
app.command()(clean)
app.add_typer(decontaminate, name="decontaminate")
app.command("fetch")(fetch_command(serve_folder))
app.command()(manifest)
app.command()(merge_checkpoint)
app.add_typer(checkpoint, name="checkpoint")
app.command()(sample)
app.command()(evaluate)
app.command()(train)
app.command()(estimate)


def main() -> None:
    """Run a command; a fault that the user can mend is one message, without a traceback."""
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
