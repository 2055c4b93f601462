"""The statistics of a corpus's stages, as far as they are there."""

from pathlib import Path

from web2gpt.io.statistics import Statistics
from web2gpt.report.files import UNREADABLE, Missing

COUNTED = ("urls", "fetch", "extract", "dedup", "clean", "decontaminate", "merge", "tokenize")
"""The stages with statistics, in the order of the chain."""


def read_stages(folder: Path, missing: Missing) -> tuple[Statistics, ...]:
    """The statistics of each stage, in the order of the chain."""
    found = {path.stem: path for path in sorted(folder.glob("*.json"))}
    order = [name for name in COUNTED if name in found]
    order += [name for name in found if name not in COUNTED]
    stages = []
    for name in order:
        try:
            stages.append(Statistics.load(found[name]))
        except UNREADABLE:
            missing.names.append(f"stats/{name}.json (unreadable)")
    if not found:
        missing.names.append("stats/")
    return tuple(stages)
