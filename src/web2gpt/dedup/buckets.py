"""Step 2, a job for some of the bands: which documents share a bucket.

A bucket is the documents whose signatures are equal in one band. The file, parquet, has one row
for each member of a bucket of two or more, sorted; a row group is a band:

    band        uint16    number of the band
    key         uint64    hash of the band's values: the bucket's name
    document    uint32    number of the document: its row over all signature files, in their order

The signatures are read once; the keys of the job's bands lie in a file (8 bytes a document and
band), and one band at a time is in memory. A bucket of n members costs n rows, whatever n is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.config.versions import VERSIONS
from web2gpt.dedup.bands import Bands
from web2gpt.dedup.census import Numbers
from web2gpt.dedup.corpus import earlier_signatures
from web2gpt.dedup.signature_files import SignatureFiles
from web2gpt.errors import InputError
from web2gpt.io.atomic import temporary_name
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder, file_states

Keys = NDArray[np.uint64]
COLUMNS = [
    ("band", pyarrow.uint16()),
    ("key", pyarrow.uint64()),
    ("document", pyarrow.uint32()),
]


def find_buckets(
    signatures: Sequence[Path], output: Path, work: Path, settings: Dedup, part: int = 0
) -> None:
    """Write the buckets of every ``settings.jobs``-th band, from band ``part`` on."""
    parts = settings.jobs
    if not 0 <= part < parts:
        raise InputError(f"--part {part}: there are {parts} jobs; give 0 to {parts - 1}.")
    files = SignatureFiles.open(signatures, settings, earlier_signatures(settings))
    bands = Bands.of(settings)
    mine = range(bands.count)[part::parts]
    job = {
        "step": "buckets",
        "version": VERSIONS["dedup"],
        "bands": [bands.count, bands.rows, list(mine)],
        "inputs": [file_states([path]) for path in files.paths],
    }
    with WorkFolder(work, job) as folder:
        if folder.is_published([output]):
            return
        draft = folder.path / "buckets.parquet"
        members = _write(files, bands, mine, folder.path / "keys.npy", draft)
        folder.publish({draft: output})
    if part == 0:
        print(f"dedup: {bands.describe()}", flush=True)
    print(f"dedup: {members:,} members of buckets in {output.name}", flush=True)


def _write(
    files: SignatureFiles, bands: Bands, mine: Sequence[int], keys: Path, draft: Path
) -> int:
    origin = {**_origin(files, bands), "bands": list(mine)}
    schema = pyarrow.schema(COLUMNS, metadata={"buckets": orjson.dumps(origin)})
    members, shingled = 0, files.shingled()
    with (
        pyarrow.parquet.ParquetWriter(draft, schema, compression="zstd") as writer,
        ProgressLine("dedup buckets", unit="bands", total=len(mine)) as progress,
    ):
        for band, row in zip(mine, _keys(files, shingled, bands, mine, keys), strict=True):
            key, place = _shared(row)
            documents = shingled[place]
            number = np.full(len(key), band, dtype=np.uint16)
            table = pyarrow.table([number, key, documents.astype(np.uint32)], schema=schema)
            writer.write_table(table, row_group_size=max(len(key), 1))
            members += len(key)
            progress.advance(note=f"{members:,} members")
    return members


def _origin(files: SignatureFiles, bands: Bands) -> dict[str, Any]:
    """What keys and document numbers refer to."""
    return {"count": bands.count, "rows": bands.rows, "starts": files.starts}


def _keys(
    files: SignatureFiles, shingled: Numbers, bands: Bands, mine: Sequence[int], path: Path
) -> Keys:
    """Band keys [bands, documents that have shingles], made in ``path`` if they are not there."""
    if not path.exists() and mine and len(shingled):
        draft = temporary_name(path)
        shape = (len(mine), len(shingled))
        keys = np.lib.format.open_memmap(draft, mode="w+", dtype=np.uint64, shape=shape)
        done = 0
        with ProgressLine("dedup keys", unit="documents", total=files.count) as progress:
            for number, signatures in files.signatures():
                end = int(np.searchsorted(shingled, number + len(signatures)))
                rows = shingled[done:end] - number
                keys[:, done:end] = bands.keys(signatures[rows], mine)
                done = end
                progress.advance(len(signatures))
        keys.flush()
        draft.rename(path)
    if not path.exists():
        return np.empty((len(mine), 0), dtype=np.uint64)
    written: Keys = np.load(path, mmap_mode="r")
    return written


def _shared(row: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Keys that several documents have, and those documents' places, sorted by both."""
    keys = np.array(row)
    order = np.argsort(keys)
    keys = keys[order]
    equal = keys[1:] == keys[:-1]
    member = np.zeros(len(keys), dtype=bool)
    member[1:] |= equal
    member[:-1] |= equal
    keys, order = keys[member], order[member]
    by_place = np.lexsort((order, keys))
    return keys[by_place], order[by_place]


@dataclass(frozen=True)
class BucketFiles:
    """All buckets of a corpus, from the files of all parts."""

    paths: tuple[Path, ...]

    @classmethod
    def open(cls, paths: Sequence[Path], files: SignatureFiles, settings: Dedup) -> Self:
        """Raises ``InputError`` for a file that is missing or of other signatures, and if bands
        are missing."""
        bands = Bands.of(settings)
        expected = orjson.loads(orjson.dumps(_origin(files, bands)))
        found: list[int] = []
        for path in paths:
            origin = _metadata(path)
            found += origin.pop("bands", [])
            if origin != expected:
                raise InputError(
                    f"{path}: buckets of other signatures or settings; run dedup buckets again."
                )
        if sorted(found) != list(range(bands.count)):
            raise InputError(
                f"--buckets: {len(found)} bands, but there are {bands.count}; give the files of "
                "all parts, each once."
            )
        return cls(tuple(paths))

    def bands(self) -> Iterator[tuple[Keys, Numbers]]:
        """Keys and documents [members] of the buckets, sorted by both, a band at a time."""
        for path in self.paths:
            file = pyarrow.parquet.ParquetFile(path)
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=["key", "document"], use_threads=False)
                yield table["key"].to_numpy(), table["document"].to_numpy()


def _metadata(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise InputError(f"{path}: no such file; run dedup buckets first.")
    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a file of buckets ({error}); make it again.") from error
    origin: dict[str, Any] = orjson.loads(metadata.get(b"buckets", b"{}"))
    return origin
