"""Cut documents into train, validation and test.

Rule of megatron-core: shares are normalized and added up, boundaries are rounded to whole
documents (halves to even), the parts are contiguous and in the order of the dataset.
"""

import re
from itertools import accumulate

SPLITS = ("train", "valid", "test")


def split_shares(split: str) -> tuple[float, ...]:
    """Shares of train, valid and test from a string such as "949,50,1"; missing ones are 0."""
    numbers = [float(part) for part in re.split("[,/]", split)]
    numbers += [0.0] * (len(SPLITS) - len(numbers))
    total = sum(numbers)
    return tuple(number / total for number in numbers)


def split_bounds(split: str, documents: int) -> list[tuple[int, int]]:
    """First document and end of each part; a part without documents has both equal."""
    ends = [round(end * float(documents)) for end in accumulate(split_shares(split))]
    return list(zip([0, *ends[:-1]], ends, strict=True))
