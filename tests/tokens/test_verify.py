"""Faults of indexed datasets, made with the format's description in hand."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from web2gpt.errors import InputError
from web2gpt.tokens.show import contents
from web2gpt.tokens.verify import verify_dataset
from web2gpt.tokens.vocabulary import Vocabulary

DOCUMENTS = [[1, 2, 3], [4], [5, 6]]
LENGTHS, POINTERS, INDEX = 34, 34 + 3 * 4, 34 + 3 * 12


def patch(path: Path, offset: int, content: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[offset : offset + len(content)] = content
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("offset", "content", "fault"),
    [
        (0, b"TNTIDX\0\0\0", "old format"),
        (0, b"PK", "does not begin with MMIDIDX"),
        (9, struct.pack("<Q", 2), "version 2"),
        (17, b"\x07", "dtype code 7"),
        (18, struct.pack("<Q", 4), "its header asks for"),
        (LENGTHS + 4, struct.pack("<i", -1), "sequence 1 has a negative length"),
        (LENGTHS, struct.pack("<i", 2), "sequence 1 is said to begin at byte 6"),
        (POINTERS + 8, struct.pack("<q", 6 - 2**32), "counted bytes in 32 bits"),
        (POINTERS + 16, struct.pack("<q", 10), "do not lie back to back"),
        (INDEX, struct.pack("<q", 1), "document index goes from 1"),
        (INDEX + 24, struct.pack("<q", 2), "document index goes from 0 to 2 instead"),
        (INDEX + 8, struct.pack("<q", 3), "document 1 ends before it begins"),
    ],
)
def test_the_first_fault_of_an_idx_is_named(
    make_pair: Callable[..., Path], offset: int, content: bytes, fault: str
) -> None:
    prefix = make_pair("data", DOCUMENTS)
    verify_dataset(prefix)
    patch(prefix.with_suffix(".idx"), offset, content)
    with pytest.raises(InputError, match=fault):
        verify_dataset(prefix)


def test_a_bin_that_does_not_fit_is_named(make_pair: Callable[..., Path]) -> None:
    prefix = make_pair("data", DOCUMENTS)
    tokens = prefix.with_suffix(".bin")
    whole = tokens.read_bytes()
    for content, fault in (
        (whole[:-2], "cut short"),
        (whole[:-1], "1 bytes more than whole uint16 ids"),
        (whole + b"\0\0", "not of one run"),
    ):
        tokens.write_bytes(content)
        with pytest.raises(InputError, match=fault):
            verify_dataset(prefix)
    tokens.unlink()
    with pytest.raises(InputError, match=r"data\.bin: no such file"):
        verify_dataset(prefix)


def test_ids_beyond_the_vocabulary_are_named(make_pair: Callable[..., Path]) -> None:
    prefix = make_pair("data", DOCUMENTS)
    verify_dataset(prefix, Vocabulary(7, "", 0, {}, ""))
    with pytest.raises(InputError, match="token 5 has the id 6"):
        verify_dataset(prefix, Vocabulary(6, "", 0, {}, ""))


def test_sequence_modes_at_the_end_of_an_idx_are_passed_over(
    make_pair: Callable[..., Path],
) -> None:
    idx = make_pair("data", DOCUMENTS).with_suffix(".idx")
    idx.write_bytes(idx.read_bytes() + b"\0\0\0")
    assert len(verify_dataset(idx)) == 3


@pytest.mark.parametrize(
    ("offset", "content"),
    [
        (18, struct.pack("<Q", 2**64 - 1)),
        (26, struct.pack("<Q", 2**62)),
        (LENGTHS, struct.pack("<i", 2**31 - 1)),
        (POINTERS + 8, struct.pack("<q", -6)),
    ],
)
def test_a_damaged_pair_is_not_shown(
    make_pair: Callable[..., Path], offset: int, content: bytes
) -> None:
    prefix = make_pair("data", DOCUMENTS)
    patch(prefix.with_suffix(".idx"), offset, content)
    with pytest.raises(InputError):
        contents(prefix, tokenizer=None, documents=None, chosen=[0], offset=0, length=9)


@pytest.mark.parametrize("token", [-1, 2**40])
def test_ids_that_no_tokenizer_has_are_told(
    make_pair: Callable[..., Path], tokenizer: Path, token: int
) -> None:
    prefix = make_pair("odd", [[1, token]], 5)
    with pytest.raises(InputError, match="cannot decode"):
        contents(prefix, tokenizer=tokenizer, documents=None, chosen=[0], offset=0, length=9)
