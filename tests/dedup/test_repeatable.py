"""The same documents are kept whatever the shards, their order, the hash seed, and kills."""

import os
import random
import subprocess
import sys
from itertools import pairwise

import pyarrow.parquet
import pytest
from tests.dedup.corpora import (
    Outcome,
    deduplicate,
    document,
    edited,
    find_all,
    texts,
    write_shards,
)
from typer.testing import CliRunner

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.buckets import find_buckets
from web2gpt.dedup.clusters import find_clusters
from web2gpt.dedup.command import app
from web2gpt.dedup.corpus import Shards
from web2gpt.dedup.pairs import find_pairs
from web2gpt.dedup.signatures import compute_signatures
from web2gpt.errors import InputError
from web2gpt.io.shards import Document


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Families of a few copies, exact and edited, chains of edits, and short texts."""
    draw = random.Random(11)
    found: list[str] = []
    for original in texts(60, 120):
        family = [original]
        for _ in range(draw.randrange(5)):
            family.append(edited(draw.choice(family), draw.randrange(4), draw))
        found += family
    found += ["short text", "Short  text", ""] * 2
    return [document(text, number) for number, text in enumerate(found)]


@pytest.fixture(scope="module")
def outcomes(documents, tmp_path_factory) -> dict[int, Outcome]:
    shuffled = random.Random(4).sample(documents, len(documents))
    return {
        shards: deduplicate(
            tmp_path_factory.mktemp("shards"),
            documents if shards < 7 else shuffled,
            shards,
            jobs=jobs,
        )
        for shards, jobs in ((1, 1), (7, 3), (32, 20))
    }


def test_the_kept_set_does_not_depend_on_the_shards_or_their_order(outcomes):
    assert len(outcomes[1].removed) > 60
    for one, other in pairwise(outcomes.values()):
        assert set(one.kept) == set(other.kept)
        assert one.verdicts == other.verdicts
        assert one.clusters == other.clusters


def test_verdicts_stand_removed_first_then_kept_each_by_id(outcomes):
    rows = list(outcomes[7].verdicts.values())
    keys = [(row["similarity"] is None, row["id"]) for row in rows]
    assert keys == sorted(keys)
    assert all((row["similarity"] is None) == (row["id"] == row["kept"]) for row in rows)


RUN = """
import sys
from pathlib import Path
from tests.dedup.corpora import deduplicate, document, texts
documents = [document(text, n % 90) for n, text in enumerate(texts(60, 80) * 2)]
deduplicate(Path(sys.argv[1]), documents, 2)
"""


def test_hash_seed_and_threads_change_no_byte(tmp_path):
    files: list[dict[str, bytes]] = []
    for seed, threads in (("1", "1"), ("2", "2"), ("1", "8")):
        folder = tmp_path / threads
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment |= dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), threads)
        command = [sys.executable, "-c", RUN, str(folder)]
        subprocess.run(command, check=True, env=environment, capture_output=True)
        found = [path for kind in ("parquet", "zst") for path in sorted(folder.rglob(f"*.{kind}"))]
        files.append({str(path.relative_to(folder)): path.read_bytes() for path in found})
    assert len(files[0]) == 11
    assert files[0] == files[1] == files[2]


def test_the_commands_do_the_same_as_the_functions(tmp_path, documents, outcomes):
    paths = write_shards(tmp_path, documents, 1)
    signatures, clusters = tmp_path / "s.parquet", tmp_path / "clusters.parquet"
    names = ("output", "rejected", "stats", "work")
    outputs = [part for name in names for part in (f"--{name}", str(tmp_path / name))]
    documents_flag = ["--documents", str(paths[0])]
    given = ["--signatures", str(signatures)]
    lines = [
        ["signatures", "--output", str(signatures), "--work", str(tmp_path / "a")],
        ["buckets", *given, "--jobs", "2", "--output", str(tmp_path / "0"), "--work",
         str(tmp_path / "b")],
        ["buckets", *given, "--jobs", "2", "--output", str(tmp_path / "1"), "--work",
         str(tmp_path / "c"), "--part", "1"],
        ["pairs", *given, "--buckets", str(tmp_path / "0"), "--buckets", str(tmp_path / "1"),
         "--output", str(tmp_path / "pairs"), "--work", str(tmp_path / "d")],
        ["clusters", *given, "--pairs", str(tmp_path / "pairs"), "--output", str(clusters),
         "--work", str(tmp_path / "e"), "--threshold", "0.8", "--settings",
         '{"version": 1, "threshold": 0.9}'],
        ["remove", "--clusters", str(clusters), *outputs],
    ]  # fmt: skip
    for line in lines:
        arguments = line if line[0] == "buckets" else [*line, *documents_flag]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    assert clusters.read_bytes() == outcomes[1].clusters
    assert (tmp_path / "output").exists()


def test_signatures_of_other_settings_or_documents_are_refused(tmp_path, documents):
    paths = write_shards(tmp_path, documents[:40], 2)
    signatures = [tmp_path / f"{number}.parquet" for number in range(2)]
    for path, output in zip(paths, signatures, strict=True):
        compute_signatures(path, output, tmp_path / "work" / output.stem, Dedup())
    with pytest.raises(InputError, match=r"other settings .*ngram"):
        find_all(tmp_path, signatures, paths, Dedup(ngram=3))
    with pytest.raises(InputError, match="not the documents that"):
        find_all(tmp_path, signatures, paths[::-1], Dedup())
    with pytest.raises(InputError, match="one --documents for each"):
        find_all(tmp_path, signatures, paths[:1], Dedup())
    with pytest.raises(InputError, match="run dedup signatures first"):
        find_all(tmp_path, [tmp_path / "none", signatures[1]], paths, Dedup())


def test_steps_refuse_files_of_other_signatures_and_missing_parts(tmp_path, documents):
    paths = write_shards(tmp_path, documents[:40], 2)
    signatures = [tmp_path / f"{number}.parquet" for number in range(2)]
    for path, output in zip(paths, signatures, strict=True):
        compute_signatures(path, output, tmp_path / "work" / output.stem, Dedup())
    settings = Dedup(jobs=2)
    find_all(tmp_path, signatures, paths, settings)
    shards, fewer = Shards.of(signatures, paths), Shards.of(signatures[:1], paths[:1])
    parts = [tmp_path / f"buckets-{part}.parquet" for part in range(2)]
    pairs, output, work = (
        tmp_path / "pairs.parquet",
        tmp_path / "x.parquet",
        tmp_path / "work" / "x",
    )
    with pytest.raises(InputError, match="7 bands, but there are 14"):
        find_pairs(shards, parts[:1], output, work, settings)
    with pytest.raises(InputError, match="buckets of other signatures"):
        find_pairs(fewer, parts, output, work, settings)
    with pytest.raises(InputError, match="buckets of other signatures or settings"):
        find_pairs(shards, parts, output, work, Dedup(jobs=2, threshold=0.9))
    with pytest.raises(InputError, match="run dedup buckets first"):
        find_pairs(shards, [tmp_path / "none"], output, work, settings)
    with pytest.raises(InputError, match="not a file of buckets"):
        find_pairs(shards, [paths[0]], output, work, settings)
    with pytest.raises(InputError, match="pairs of other signatures"):
        find_clusters(fewer, pairs, output, work, settings)
    with pytest.raises(InputError, match="run dedup pairs first"):
        find_clusters(shards, tmp_path / "none", output, work, settings)
    with pytest.raises(InputError, match="give 0 to"):
        find_buckets(signatures, output, work, settings, 2)


def test_signature_files_are_plain_parquet_with_the_documented_columns(tmp_path, documents):
    (path,) = write_shards(tmp_path, documents[:10], 1)
    compute_signatures(path, tmp_path / "s.parquet", tmp_path / "work", Dedup(permutations=64))
    table = pyarrow.parquet.read_table(tmp_path / "s.parquet")
    assert table.column_names == [
        "id", "url", "characters", "date", "priority", "damaged", "digest", "shingles", "signature",
    ]  # fmt: skip
    assert table.schema.field("signature").type.byte_width == 256
    assert [i.hex() for i in table["id"].to_pylist()] == [d["id"] for d in documents[:10]]
