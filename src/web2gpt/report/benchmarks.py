"""Time and memory of the rules, from the files that Snakemake's ``benchmark`` directive writes.

They are tables with a header (``s``: seconds, ``max_rss``: MiB, ``-`` or ``NA`` where a job was too
short to be measured), tab-separated, or JSON lines with the same names.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from web2gpt.errors import InputError
from web2gpt.io.shards import BadLine, read_jsonl

RULES = ("demo", "urls", "fetch", "extract", "dedup_signatures", "dedup_buckets", "dedup_pairs",
         "dedup_clusters", "dedup_remove", "clean", "decontaminate_count", "decontaminate_add",
         "decontaminate", "decontaminate_report", "merge", "tokenizer", "tokenize", "index",
         "train", "merge_checkpoint", "sample", "evaluate", "report")  # fmt: skip
"""The rules whose jobs take time, in the order of the chain."""


@dataclass(frozen=True)
class RuleCost:
    """What the jobs of one rule took together, and the most memory that one of them held."""

    rule: str
    jobs: int
    seconds: float
    memory: float  # MiB; 0 if never measured


def rule_costs(folders: Iterable[Path]) -> tuple[RuleCost, ...]:
    """The cost of each rule under ``folders``, in the order of the chain; its name is that of its
    first folder or file."""
    jobs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for folder in folders:
        for path in sorted((*folder.rglob("*.tsv"), *folder.rglob("*.jsonl"))):
            rule = path.relative_to(folder).parts[0].partition(".")[0]
            jobs[rule] += [(_figure(row, "s"), _figure(row, "max_rss")) for row in _rows(path)]
    return tuple(
        RuleCost(
            rule,
            len(costs),
            sum(seconds for seconds, _ in costs),
            max(memory for _, memory in costs),
        )
        for rule, costs in sorted(jobs.items(), key=lambda one: _place(one[0]))
        if costs
    )


def _place(rule: str) -> tuple[int, str]:
    return (RULES.index(rule) if rule in RULES else len(RULES), rule)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        if path.suffix == ".tsv":
            with path.open(newline="", errors="replace") as file:
                yield from csv.DictReader(file, delimiter="\t")
        else:
            for row in read_jsonl(path):
                if not isinstance(row, BadLine):
                    yield row
    except (OSError, InputError, csv.Error):
        return


def _figure(row: dict[str, Any], name: str) -> float:
    try:
        return float(row.get(name) or 0)
    except (TypeError, ValueError):
        return 0.0
