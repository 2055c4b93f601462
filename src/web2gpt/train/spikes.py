"""Steps that stand out: loss spikes, and losses or gradients that are no numbers.

A spike is a loss more than so many standard deviations above the mean of recent ones (the detector
of llm.c, by z-score). It is only reported, with the documents of its batch, in a line and in full
in spikes.jsonl beside the run's checkpoints.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from web2gpt.errors import InputError
from web2gpt.io.atomic import write_bytes
from web2gpt.tokens.documents import DocumentNames, NamesByDataset
from web2gpt.tokens.samples import Samples
from web2gpt.train.batches import Rows
from web2gpt.train.metrics import read_rows

WINDOW = 100  # losses that a new one is compared with
FEWEST = 20  # losses before there is a judgement
LEAST = 1e-3  # smallest deviation counted as one, relative to the mean
SHOWN = 3  # documents named in a line
FILE = "spikes.jsonl"


class SpikeDetector:
    """``score(loss)``: standard deviations above recent losses; None while too few are known."""

    def __init__(self, known: Iterable[float] = ()) -> None:
        self._losses: deque[float] = deque(known, maxlen=WINDOW)

    def score(self, loss: float) -> float | None:
        if not math.isfinite(loss):
            return math.inf
        known = list(self._losses)
        self._losses.append(loss)
        if len(known) < FEWEST:
            return None
        mean = math.fsum(known) / len(known)
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
        return (loss - mean) / max(spread, LEAST * abs(mean))


class BatchDocuments:
    """Names the documents that a global batch is made of."""

    def __init__(self, samples: Samples, files: Mapping[str, str]):
        self._samples = samples
        paths = {name: Path(path) for name, path in files.items()}
        self._names = NamesByDataset({name: path for name, path in paths.items() if path.is_file()})

    def of(self, rows: Rows) -> list[str]:
        """A line for each document, in the order of the batch, none twice."""
        size = rows.plan.global_batch_size
        return list(dict.fromkeys(self._lines(range(rows.first, rows.first + size))))

    def _lines(self, samples: range) -> Iterator[str]:
        for number in samples:
            for piece in self._samples.pieces(number):
                place, row = self._samples.locate(piece.document)
                dataset = self._samples.manifest["datasets"][place]["name"]
                known = self._names.of(dataset, place)
                yield f"{dataset} {row:,}" + (f" ({_described(known, row)})" if known else "")


def _described(names: DocumentNames, row: int) -> str:
    try:
        return names.describe(row)
    except InputError:  # a spike's report must not end the run
        return "unknown"


def forget_spikes(folder: Path, *, after: int) -> None:
    """Drop the reports of steps after a checkpoint that the run carries on from."""
    path = folder / FILE
    if not path.exists():
        return
    kept = [row for row in read_rows(path) if row["step"] <= after]
    write_bytes(path, b"".join(map(_line, kept)))


def report_spike(folder: Path, row: Mapping[str, Any], documents: list[str]) -> str:
    """Append to spikes.jsonl; gives the documents in a few words."""
    with (folder / FILE).open("ab") as file:
        file.write(_line({**row, "documents": documents}))
    more = f" and {len(documents) - SHOWN:,} more, in {FILE}" if len(documents) > SHOWN else ""
    return "; ".join(documents[:SHOWN]) + more


def _line(row: Mapping[str, Any]) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
