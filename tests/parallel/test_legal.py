"""Every combination is either right (shown in tests/distributed) or refused with a way out."""

from dataclasses import replace

import pytest

from web2gpt.config.training import Parallel, Train
from web2gpt.errors import ConfigError
from web2gpt.parallel.legal import Combination, all_combinations, check_combination, refusal


def test_every_row_of_the_table() -> None:
    allowed = {str(row) for row in all_combinations() if refusal(row) is None}
    expected = {
        str(Combination(precision, zero, pipeline, offload))  # type: ignore[arg-type]
        for precision, zeros, pipeline, offload in [
            ("fp32", (0, 1, 2, 3), False, False),
            ("fp32", (1, 2, 3), False, True),
            ("fp32", (0, 1), True, False),
            ("fp32", (1,), True, True),
            ("bf16", (1, 2, 3), False, False),
            ("bf16", (1, 2, 3), False, True),
            ("bf16", (1,), True, False),
            ("fp16", (1, 2, 3), False, False),
            ("fp16", (1, 2, 3), False, True),
            ("fp16", (1,), True, False),
        ]
        for zero in zeros
    }
    assert allowed == expected


def test_what_is_refused_names_a_combination_that_is_not() -> None:
    changes = {
        "parallel.zero: 1": {"zero": 1},
        "parallel.offload: false": {"offload": False},
    }
    for row in all_combinations():
        mended = row
        for _ in range(2):  # some take two steps
            if found := refusal(mended):
                mended = replace(mended, **changes[found.nearest])
        assert refusal(mended) is None


def test_the_message_says_what_why_and_what_works() -> None:
    with pytest.raises(ConfigError) as caught:
        check_combination(Train(precision="bf16"), Parallel(pipeline=2, zero=2))
    assert "parallel.zero 2, parallel.pipeline above 1" in str(caught.value)
    assert str(caught.value).endswith("parallel.zero: 1 works")
