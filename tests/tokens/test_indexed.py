"""Megatron's .bin/.idx: the bytes, and reading beyond 32 bits."""

import io
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from web2gpt.errors import InputError
from web2gpt.tokens.indexed import IndexedDataset, write_idx
from web2gpt.tokens.verify import verify_dataset

MakePair = Callable[..., Path]


@pytest.mark.parametrize(("code", "dtype"), [(8, "<u2"), (4, "<i4")])
def test_the_idx_is_that_of_the_formats_description(
    make_pair: MakePair, code: int, dtype: str
) -> None:
    prefix = make_pair("hand", [[1, 2, 3], [4], [5, 6]], code)
    file = io.BytesIO()
    write_idx(file, np.array([3, 1, 2]), np.dtype(dtype))
    assert file.getvalue() == prefix.with_suffix(".idx").read_bytes()


def test_documents_and_ranges_are_read(make_pair: MakePair) -> None:
    for code in (8, 4, 5):
        data = IndexedDataset(make_pair(f"code{code}", [[1, 2, 3], [4], [5, 6]], code))
        assert [data.get(number).tolist() for number in range(3)] == [[1, 2, 3], [4], [5, 6]]
        assert data.get(0, 1, 1).tolist() == [2]
        assert data.get(0, 1, 100).tolist() == [2, 3]  # never into the next document
        assert data.get(2, 1).tolist() == [6]


def test_more_than_four_gibibytes_and_two_to_the_31_tokens(tmp_path: Path) -> None:
    lengths = np.array([2**30, 2**30, 2**30, 5], np.int64)
    with (tmp_path / "big.idx").open("wb") as file:
        write_idx(file, lengths, np.dtype("<i4"))
    with (tmp_path / "big.bin").open("wb") as file:  # sparse: takes no room on disk
        file.truncate(4 * 3 * 2**30)
        file.seek(0, 2)
        file.write(struct.pack("<5i", 11, 12, 13, 14, 15))
    data = verify_dataset(tmp_path / "big")
    assert data.pointers.tolist() == [0, 2**32, 2**33, 3 * 2**32]
    assert data.get(3).tolist() == [11, 12, 13, 14, 15]
    assert data.get(2, 2**30 - 1).tolist() == [0]


def test_a_wrong_name_lists_what_may_have_been_meant(make_pair: MakePair) -> None:
    prefix = make_pair("corpus_text_document", [[1]])
    with pytest.raises(InputError, match="prefixes corpus_text_document"):
        IndexedDataset(prefix.with_name("corpus"))
