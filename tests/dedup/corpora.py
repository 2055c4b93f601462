"""Real text for the tests: documentation strings of the standard library, and edits of them."""

import importlib
import inspect
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.parquet

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.buckets import find_buckets
from web2gpt.dedup.clusters import find_clusters
from web2gpt.dedup.corpus import Shards
from web2gpt.dedup.pairs import find_pairs
from web2gpt.dedup.remove import remove_duplicates
from web2gpt.dedup.signatures import compute_signatures
from web2gpt.io.shards import BadLine, Document, JsonlWriter, read_jsonl
from web2gpt.io.stage import ShardFiles
from web2gpt.io.statistics import Statistics
from web2gpt.web.ids import document_id

MODULES = (
    "argparse asyncio collections configparser contextlib csv ctypes datetime decimal difflib dis "
    "email enum fractions functools heapq http imaplib inspect ipaddress itertools json logging "
    "mailbox math multiprocessing numbers optparse os pathlib pickle platform pprint random re "
    "sched secrets shlex shutil smtplib socket sqlite3 ssl statistics string subprocess tarfile "
    "tempfile textwrap threading tokenize trace traceback turtle unittest urllib.request "
    "uuid warnings weakref xml.dom.minidom zipfile"
).split()


@cache
def words() -> tuple[str, ...]:
    """The words of many documentation strings, in the order of the modules."""
    found: list[str] = []
    for name in MODULES:
        module = importlib.import_module(name)
        for _, member in sorted(vars(module).items()):
            if inspect.isclass(member) or inspect.isfunction(member):
                found += (inspect.getdoc(member) or "").split()
    return tuple(found)


def texts(count: int, length: int, seed: int = 0) -> list[str]:
    """Texts of ``length`` words that share only chance shingles: sentences drawn and mixed."""
    draw = random.Random(seed)
    source = words()
    result = []
    for _ in range(count):
        parts: list[str] = []
        while len(parts) < length:
            at = draw.randrange(len(source) - 12)
            parts += source[at : at + draw.randint(6, 12)]
        result.append(" ".join(parts[:length]))
    return result


def edited(text: str, edits: int, draw: random.Random) -> str:
    """The text with ``edits`` of its words replaced by new ones."""
    parts = text.split()
    for at in draw.sample(range(len(parts)), edits):
        parts[at] = f"{parts[at]}{draw.randrange(10**6)}"
    return " ".join(parts)


def shingle_set(text: str, ngram: int = 5) -> set[str]:
    """Word shingles, made the plain way."""
    parts = text.lower().split()
    return {" ".join(parts[at : at + ngram]) for at in range(len(parts) - ngram + 1)}


def jaccard(one: str, other: str) -> float:
    """Exact Jaccard similarity of two texts' word shingles, made the plain way."""
    a, b = shingle_set(one), shingle_set(other)
    return len(a & b) / len(a | b)


def document(text: str, number: int, **more: object) -> Document:
    url = f"http://example.org/{number:06d}"
    return {"id": document_id("test", url), "url": url, "text": text, "source": "test", **more}


def write_shards(folder: Path, documents: Sequence[Document], shards: int) -> list[Path]:
    """The documents dealt out to shards."""
    paths = [folder / "documents" / f"test-{number:04d}.jsonl.zst" for number in range(shards)]
    for number, path in enumerate(paths):
        with JsonlWriter(path) as writer:
            for record in documents[number::shards]:
                writer.write(record)
    return paths


@dataclass(frozen=True)
class Outcome:
    """What the three commands left behind."""

    verdicts: dict[str, dict[str, object]]  # rows of clusters.parquet by id
    clusters: bytes
    kept: list[str]  # ids of the documents written, shard by shard
    rejected: list[Document]
    statistics: list[Statistics]

    @property
    def removed(self) -> dict[str, str]:
        """Id of the kept one for each removed document."""
        rows = self.verdicts.items()
        return {name: str(row["kept"]) for name, row in rows if row["kept"] != name}


def deduplicate(
    folder: Path, documents: Sequence[Document], shards: int = 2, **settings: object
) -> Outcome:
    """Write the documents and run all steps on them."""
    chosen = Dedup.model_validate(settings)
    return deduplicate_shards(folder, write_shards(folder, documents, shards), chosen)


def deduplicate_shards(folder: Path, paths: Sequence[Path], chosen: Dedup) -> Outcome:
    """Run all steps in this process."""
    signatures = [folder / "signatures" / f"{path.name[:9]}.parquet" for path in paths]
    for path, output in zip(paths, signatures, strict=True):
        compute_signatures(path, output, folder / "work" / output.stem, chosen)
    clusters = find_all(folder, signatures, paths, chosen)
    files = [
        ShardFiles(
            (path,),
            folder / "deduped" / path.name,
            folder / "rejected" / path.name,
            folder / "stats" / f"{path.name[:9]}.json",
            folder / "work" / "remove" / path.name[:9],
        )
        for path in paths
    ]
    for shard in files:
        remove_duplicates(shard, clusters, rejected_text=False)
    rows = pyarrow.parquet.read_table(clusters).to_pylist()
    return Outcome(
        {row["id"]: row for row in rows},
        clusters.read_bytes(),
        [str(record["id"]) for shard in files for record in records(shard.documents)],
        [record for shard in files for record in records(shard.rejected)],
        [Statistics.load(shard.stats) for shard in files],
    )


def find_all(
    folder: Path, signatures: Sequence[Path], paths: Sequence[Path], settings: Dedup
) -> Path:
    """Run the steps over all shards; returns clusters.parquet."""
    work = folder / "work"
    buckets = [folder / f"buckets-{part}.parquet" for part in range(settings.jobs)]
    for part, output in enumerate(buckets):
        find_buckets(signatures, output, work / output.stem, settings, part)
    pairs, clusters = folder / "pairs.parquet", folder / "clusters.parquet"
    shards = Shards.of(signatures, paths)
    find_pairs(shards, buckets, pairs, work / "pairs", settings)
    find_clusters(shards, pairs, clusters, work / "clusters", settings)
    return clusters


def records(path: Path) -> list[Document]:
    """All records of a sound shard."""
    found = list(read_jsonl(path))
    return [record for record in found if not isinstance(record, BadLine)]
