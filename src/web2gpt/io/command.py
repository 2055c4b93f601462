"""``web2gpt statistics``: a stage's statistics from those of its shards."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.errors import InputError
from web2gpt.io.made import made_by
from web2gpt.io.statistics import Statistics, add_up, check_errors, check_something_left


def statistics(
    *,
    part: Annotated[list[Path], typer.Option(help="statistics of a shard; once for each shard")],
    output: Annotated[Path, typer.Option(help="statistics of the whole stage, JSON")],
    limit: Annotated[
        float, typer.Option(min=0, max=1, help="largest share of unreadable records")
    ] = 0.05,
    not_empty: Annotated[bool, typer.Option("--not-empty", help="fail if nothing is left")] = False,
) -> None:
    """Add up the statistics of a stage's shards; fail if too many records were unreadable.

    Example: web2gpt statistics --part a.json --part b.json --output all.json --limit 0.05
    """
    parts = [_load(path) for path in part]
    for path, one in zip(part, parts, strict=True):
        if one.stage != parts[0].stage:
            raise InputError(
                f"{path}: counts {one.unit} of {one.stage}, but {part[0]} counts {parts[0].unit} "
                f"of {parts[0].stage}; give the shards of one stage."
            )
    total = add_up(parts)
    check_errors(total, limit)
    if not_empty:
        check_something_left(total)
    total.write(output)
    print(total.summary())


def _load(path: Path) -> Statistics:
    with made_by("the shard's stage", path):
        return Statistics.load(path)
