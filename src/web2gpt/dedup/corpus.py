"""What is compared: the documents of this run, and those of earlier runs that it must not repeat.

``dedup.against`` names folders of signatures of earlier runs. Their documents count as kept, but
for those which the earlier run removed itself (its clusters.parquet stands beside the folder):
a document of this run goes if it is a copy of one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars
import pyarrow
import pyarrow.parquet

from web2gpt.config.dedup import Dedup
from web2gpt.config.versions import VERSIONS
from web2gpt.dedup.signature_files import SignatureFiles
from web2gpt.errors import InputError
from web2gpt.io.work import file_states


@dataclass(frozen=True)
class Shards:
    """This run's shards: their signatures, and the documents that these were made from."""

    signatures: tuple[Path, ...]
    documents: tuple[Path, ...]

    @classmethod
    def of(cls, signatures: Sequence[Path], documents: Sequence[Path]) -> Self:
        """Both in one order. Raises ``InputError`` if they are not as many."""
        if len(signatures) != len(documents):
            raise InputError(
                f"{len(signatures)} signature files but {len(documents)} shards of documents; "
                "give one --documents for each --signatures, in the same order."
            )
        return cls(tuple(signatures), tuple(documents))


@dataclass(frozen=True)
class Corpus:
    """Signature files, those of this run first, and the documents that each was made from."""

    files: SignatureFiles
    documents: tuple[Path | None, ...]  # None: an earlier run's, not given
    settings: Dedup

    @classmethod
    def open(cls, shards: Shards, settings: Dedup) -> Self:
        """Raises ``InputError`` for signatures that are missing or were made in another way."""
        files = SignatureFiles.open(shards.signatures, settings, earlier_signatures(settings))
        return cls(files, (*shards.documents, *_earlier_documents(settings)), settings)

    def job(self, step: str, further: Sequence[Path] = ()) -> dict[str, Any]:
        """What decides the result of a step: for its work folder."""
        documents = [path for path in self.documents if path]
        paths = (*self.files.paths, *documents, *further, *_earlier_clusters(self.settings))
        return {
            "step": step,
            "version": VERSIONS["dedup"],
            "settings": self.settings.model_dump(mode="json"),
            "inputs": [file_states([path]) for path in paths],
        }

    def removed_before(self) -> polars.DataFrame:
        """The ids, as upper and lower halves, of what the earlier runs removed themselves."""
        parts = [_removed(path) for path in _earlier_clusters(self.settings)]
        return polars.concat([_halves([]), *parts])


def earlier_signatures(settings: Dedup) -> list[Path]:
    """The signature files in the folders of ``dedup.against``, by name."""
    found: list[Path] = []
    for folder in settings.against:
        files = sorted(Path(folder).glob("*.parquet"))
        if not files:
            raise InputError(
                f"dedup.against: {folder}: no signature files (*.parquet); name the folder "
                "dedup/signatures of an earlier run."
            )
        found += files
    return found


def _earlier_documents(settings: Dedup) -> list[Path | None]:
    folders = settings.against_documents or (None,) * len(settings.against)
    found: list[Path | None] = []
    for signatures, folder in zip(settings.against, folders, strict=True):
        for file in sorted(Path(signatures).glob("*.parquet")):
            found.append(Path(folder) / f"{file.stem}.jsonl.zst" if folder else None)
    return found


def _earlier_clusters(settings: Dedup) -> list[Path]:
    """Where the verdicts of earlier runs stand, if they are kept."""
    return [Path(folder).parent / "clusters.parquet" for folder in settings.against]


def _removed(clusters: Path) -> polars.DataFrame:
    if not clusters.exists():
        return _halves([])
    rows = pyarrow.parquet.read_table(clusters, columns=["id", "similarity"])
    return _halves(rows.filter(rows["similarity"].is_valid())["id"].to_pylist())


def _halves(identifiers: list[str]) -> polars.DataFrame:
    data = np.frombuffer(bytes.fromhex("".join(identifiers)), dtype=">u8")
    halves = data.astype(np.uint64).reshape(-1, 2)
    return polars.DataFrame({"upper": halves[:, 0].copy(), "lower": halves[:, 1].copy()})
