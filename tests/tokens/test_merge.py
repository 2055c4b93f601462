"""Several indexed datasets become one."""

import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.tokens.small import documents, write_sources
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.errors import ConfigError, InputError
from web2gpt.tokens.indexed import IndexedDataset
from web2gpt.tokens.merge import merge_datasets

MakePair = Callable[..., Path]


def sentences(prefix: Path, lengths: list[int], starts: list[int]) -> Path:
    """A pair in which a document has several sequences, as tools that split sentences write it."""
    count = len(lengths)
    idx = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, count, len(starts))
    offsets = [2 * sum(lengths[:number]) for number in range(count)]
    idx += struct.pack(f"<{count}i{count}q{len(starts)}q", *lengths, *offsets, *starts)
    prefix.with_suffix(".idx").write_bytes(idx)
    prefix.with_suffix(".bin").write_bytes(bytes(2 * sum(lengths)))
    return prefix


@pytest.mark.parametrize("code", [8, 4])
def test_the_merged_pair_is_that_of_all_documents(
    make_pair: MakePair, tmp_path: Path, code: int
) -> None:
    parts = [documents(0, 9), documents(20, 1), documents(40, 13)]
    prefixes = [make_pair(f"part{n}", part, code) for n, part in enumerate(parts)]
    whole = make_pair("whole", [document for part in parts for document in part], code)
    merge_datasets(prefixes, tmp_path / "out" / "merged")
    for ending in (".bin", ".idx"):
        merged = (tmp_path / "out" / f"merged{ending}").read_bytes()
        assert merged == whole.with_suffix(ending).read_bytes()


def test_documents_of_several_sequences_stay_whole(tmp_path: Path) -> None:
    first = sentences(tmp_path / "a", [3, 4, 5], [0, 2, 3])
    second = sentences(tmp_path / "b", [1, 1], [0, 2])
    merge_datasets([first, second], tmp_path / "merged")
    data = IndexedDataset(tmp_path / "merged")
    assert data.lengths.tolist() == [3, 4, 5, 1, 1]
    assert data.document_index.tolist() == [0, 2, 3, 5]


def test_names_of_documents_are_joined_too(make_pair: MakePair, tmp_path: Path) -> None:
    one, two = make_pair("one", documents(0, 3)), make_pair("two", documents(9, 2))
    names = [
        write_sources(tmp_path / "one.parquet", ["a", "b", "a"], held_out=[1]),
        write_sources(tmp_path / "two.parquet", ["c", "c"]),
    ]
    old = pyarrow.parquet.read_table(names[1]).drop_columns(["held_out"])
    pyarrow.parquet.write_table(old, names[1])  # as a version before had it
    arguments = [str(one), str(two), "--output", str(tmp_path / "merged")]
    arguments += ["--documents", str(names[0]), "--documents", str(names[1])]
    arguments += ["--documents-output", str(tmp_path / "merged.parquet")]
    result = CliRunner().invoke(app, ["tokens", "merge", *arguments])
    assert result.exit_code == 0, result.output
    assert "2 datasets, 5 sequences" in result.output
    rows = pyarrow.parquet.read_table(tmp_path / "merged.parquet").to_pylist()
    assert [row["source"] for row in rows] == ["a", "b", "a", "c", "c"]
    assert [row["held_out"] for row in rows] == [False, True, False, None, None]


def test_what_does_not_go_together_is_refused(make_pair: MakePair, tmp_path: Path) -> None:
    one, wide = make_pair("one", documents(0, 3)), make_pair("wide", documents(0, 3), 4)
    with pytest.raises(InputError, match=r"wide\.idx: int32, but .*one\.idx is uint16"):
        merge_datasets([one, wide], tmp_path / "merged")
    with pytest.raises(ConfigError, match="is one of the datasets"):
        merge_datasets([one, one], one.with_suffix(".bin"))
    with pytest.raises(ConfigError, match="stands 1 times for 2 datasets"):
        merge_datasets([one, one], tmp_path / "m", documents=[tmp_path], documents_output=tmp_path)
    names = write_sources(tmp_path / "names.parquet", ["a"] * 4)
    with pytest.raises(InputError, match="4 rows, but"):
        merge_datasets([one], tmp_path / "m", documents=[names], documents_output=tmp_path / "n")
    modes = make_pair("modes", documents(0, 3))
    with modes.with_suffix(".idx").open("ab") as file:
        file.write(bytes(3))
    with pytest.raises(InputError, match="multimodal"):
        merge_datasets([modes], tmp_path / "merged")
    one.with_suffix(".bin").write_bytes(b"\1\0")
    with pytest.raises(InputError, match="cut short"):
        merge_datasets([one], tmp_path / "merged")
    assert not (tmp_path / "merged.idx").exists()
