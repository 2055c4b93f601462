"""``web2gpt report``, ``manifest``, ``watch`` and ``compare``: what a run did, and does."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.errors import InputError


def report(
    *,
    data: Annotated[Path, typer.Option(help="folder of the corpus, results/data/NAME")],
    run: Annotated[Path, typer.Option(help="folder of the run, results/runs/NAME")],
    output: Annotated[Path, typer.Option(help="the page, HTML")],
) -> None:
    """Write one self-contained page about a run: the funnel, training, samples, settings.

    What the run has not made yet is named on the page.

    Example: web2gpt report --data results/data/demo --run results/runs/demo --output report.html
    """
    from web2gpt.io.atomic import write_text
    from web2gpt.report.evidence import gather
    from web2gpt.report.page import render

    for folder in (data, run):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; name one that a run has written.")
    evidence = gather(data, run)
    if evidence.is_empty:
        raise InputError(
            f"{data}, {run}: neither holds anything that a stage writes; name results/data/NAME "
            "and results/runs/NAME of a run."
        )
    write_text(output, render(evidence))
    missing = f", without {', '.join(evidence.missing)}" if evidence.missing else ""
    steps = len(evidence.training.loss)
    print(f"report: {len(evidence.stages)} stages, {steps} logged steps{missing}")


def manifest(
    *,
    files: Annotated[list[Path], typer.Argument(help="inputs and artifacts to hash")],
    output: Annotated[Path, typer.Option(help="the manifest, JSON")],
    sources: Annotated[
        Path | None, typer.Option(help="config.yaml whose sources' files come before these")
    ] = None,
) -> None:
    """Write down the versions of Python and packages, and the size and hash of each file.

    Example: web2gpt manifest --output manifest.json results/runs/demo/model
    """
    from web2gpt.config.files import source_files
    from web2gpt.config.load import read_config
    from web2gpt.io.atomic import write_json
    from web2gpt.report.manifest import make_manifest

    given = read_config(sources).input if sources else ()
    made = make_manifest([*(file for source in given for file in source_files(source)), *files])
    if not made["files"]:
        raise InputError(f"{', '.join(map(str, files))}: no file in it; name what is to be hashed.")
    write_json(output, made)
    print(f"manifest: {len(made['files'])} files")


def watch(
    *,
    data: Annotated[
        Path | None, typer.Option(help="folder of the corpus; none: by --config")
    ] = None,
    run: Annotated[Path | None, typer.Option(help="folder of the run; none: by --config")] = None,
    config: Annotated[
        Path, typer.Option(help="configuration, or overlay, that names data and run")
    ] = Path("config.yaml"),
    interval: Annotated[float, typer.Option(min=0.1, help="seconds between two looks")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="look once and end")] = False,
    json: Annotated[bool, typer.Option("--json", help="look once, as JSON")] = False,
) -> None:
    """Show how far a run is: stages, jobs, rates, time left, the loss curve. Ctrl-C ends it.

    It reads files that the stages write anyway, and may be started at any time, from anywhere that
    sees them. Without a terminal it looks once.

    Example: web2gpt watch --data results/data/demo --run results/runs/demo
    """
    from web2gpt.report import watch as watching
    from web2gpt.report.progress import look
    from web2gpt.report.settings import folders_named

    if data is None or run is None:
        named_data, named_run = folders_named(config)
        data, run = data or named_data, run or named_run
    if not data.is_dir() and not run.is_dir():
        raise InputError(
            f"{data}, {run}: no such folders; start the run, or name those of one that has begun."
        )
    if json:
        print(watching.as_json(look(data, run)).decode())
    else:
        watching.watch(data, run, interval=interval, once=once)


def compare(
    one: Annotated[Path, typer.Argument(help="folder of a run, results/runs/NAME")],
    other: Annotated[Path, typer.Argument(help="folder of the run beside it")],
    json: Annotated[bool, typer.Option("--json", help="the same as JSON")] = False,
) -> None:
    """Set two runs side by side: settings that differ, funnels, losses.

    Example: web2gpt compare results/runs/gpt2-124m results/runs/gpt2-345m
    """
    from web2gpt.report.compare import Side, comparison_json, show_comparison

    sides = Side.read(one), Side.read(other)
    if json:
        print(comparison_json(*sides).decode())
    else:
        show_comparison(*sides)
