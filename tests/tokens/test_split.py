"""Splits: megatron-core's rounding, by hand."""

import pytest

from web2gpt.config.tokens import Index
from web2gpt.tokens.split import split_bounds, split_shares


@pytest.mark.parametrize(
    ("documents", "sizes"),
    [
        (10, (9, 1, 0)),  # boundaries at 9.49 and 9.99
        (11, (10, 1, 0)),
        (100, (95, 5, 0)),
        (500, (474, 26, 0)),  # 474.5 rounds to the even number, and so does 499.5
        (501, (475, 25, 1)),
        (1000, (949, 50, 1)),
    ],
)
def test_rounding(documents: int, sizes: tuple[int, ...]) -> None:
    assert tuple(end - begin for begin, end in split_bounds("949,50,1", documents)) == sizes


def test_shares() -> None:
    assert split_shares("99/1") == (0.99, 0.01, 0.0)
    assert split_shares(" 1 , 0, 1") == (0.5, 0.0, 0.5)


@pytest.mark.parametrize("split", ["", "a,b", "1,2,3,4", "0,0", "-1,2", "1,,2", "9" * 400])
def test_what_is_no_split_is_refused(split: str) -> None:
    with pytest.raises(ValueError, match="949,50,1"):
        Index(split=split)
