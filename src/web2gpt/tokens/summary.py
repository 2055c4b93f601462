"""What a run will be trained on, in one table before it starts.

On standard output, where a workflow shows it: standard error goes to the stage's log.
"""

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from web2gpt.tokens.split import PRECEDENCE


def print_summary(manifest: Mapping[str, Any]) -> None:
    """Print the table, warnings and the summary line."""
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    table = Table(title="what will be trained on")
    for name in ("split", "documents", "tokens", "sequences", "used", "epochs"):
        table.add_column(name, justify="left" if name == "split" else "right")
    for name, split in manifest["splits"].items():
        counts = (split[key] for key in ("documents", "tokens", "samples", "samples_used"))
        table.add_row(name, *(f"{count:,}" for count in counts), f"{split['epochs']:.2f}")
    console.print(table)
    console.print(_claims(manifest["splits"]["valid"]), soft_wrap=True, markup=False)
    if len(manifest["sources"]) > 1:
        console.print(_sources(manifest["sources"]))
    for line in warnings(manifest):
        console.print(f"index: {line}", soft_wrap=True, markup=False)
    train = manifest["splits"]["train"]
    print(
        f"index: {train['documents']:,} documents and {train['tokens']:,} tokens to train on, "
        f"{train['samples_used']:,} sequences of {manifest['settings']['sequence_length']:,} "
        f"= {train['epochs']:.2f} epochs",
        flush=True,
    )


def warnings(manifest: Mapping[str, Any]) -> list[str]:
    """What the user may not expect of this index."""
    lines = []
    for name, split in manifest["splits"].items():
        if split.get("share", 0) > 0 and not split["samples"]:
            lines.append(
                f"warning: the {name} part is empty: {split['share']:.2%} of so few documents "
                "rounds to none; give it a larger share in index.split."
            )
    lines += [
        f"warning: source {name!r} has a weight, but no documents to train on; the others share "
        "its part."
        for name in manifest["unused"]
    ]
    epochs = manifest["splits"]["train"]["epochs"]
    if epochs > 1:
        lines.append(f"the run is longer than the data: it goes over it {epochs:.2f} times.")
    return lines


def _claims(valid: Mapping[str, Any]) -> str:
    """What is validated on, and the rule by which documents came there."""
    claimed = valid["claimed"]
    return (
        f"index: a document belongs to the first that claims it: {PRECEDENCE}. valid: "
        f"{claimed['named']:,} documents of named sets, {claimed['held_out']:,} held out, "
        f"{claimed['split']:,} of the split"
    )


def _sources(sources: list[Mapping[str, Any]]) -> Table:
    table = Table(title="sources of the training samples")
    for name in ("source", "documents", "tokens", "weight", "requested", "achieved"):
        table.add_column(name, justify="left" if name == "source" else "right")
    for source in sources:
        share = source["share"]
        table.add_row(
            source["name"],
            f"{source['documents']:,}",
            f"{source['tokens']:,}",
            "by size" if source["weight"] is None else f"{source['weight']:g}",
            f"{share['requested']:.3%}",
            f"{share['achieved']:.3%}",
        )
    return table
