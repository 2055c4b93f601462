"""``web2gpt report``: one page about a run, from the files that its stages left."""

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
) -> None:
    """Write down the versions of Python and packages, and the size and hash of each file.

    Example: web2gpt manifest --output manifest.json results/runs/demo/model
    """
    from web2gpt.io.atomic import write_json
    from web2gpt.report.manifest import make_manifest

    made = make_manifest(files)
    if not made["files"]:
        raise InputError(f"{', '.join(map(str, files))}: no file in it; name what is to be hashed.")
    write_json(output, made)
    print(f"manifest: {len(made['files'])} files")
