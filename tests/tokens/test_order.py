"""The order of documents and samples, against walks over the stream token by token."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from web2gpt.tokens.blend import blend_orders, blend_sequence
from web2gpt.tokens.order import Order, megatron_order, once_order, stable_order

LENGTHS = np.array([5, 1, 0, 17, 3, 3, 40, 2, 9, 1], np.int32)
DOCUMENTS = np.arange(len(LENGTHS))
TOKENS = int(LENGTHS.sum())


def walk(order: Order, length: int) -> list[list[tuple[int, int]]]:
    """(document, offset) of each token of each row, by going through the documents one by one."""
    stream = [(int(d), t) for d in order.document for t in range(LENGTHS[d])]
    starts = {}
    at = 0
    for position, document in enumerate(order.document):
        starts[position] = at
        at += int(LENGTHS[document])
    begins = [starts[int(position)] + int(offset) for position, offset in order.sample]
    return [stream[begin : begin + length + 1] for begin in begins[:-1]]


@pytest.mark.parametrize("length", [1, 2, 7, 40, 100])
@pytest.mark.parametrize("samples", [1, 10, 333])
def test_stable_samples_follow_each_other_without_a_gap(length: int, samples: int) -> None:
    order = stable_order(DOCUMENTS, LENGTHS, length=length, samples=samples, seed=3)
    rows = walk(order, length)
    assert len(order.shuffle) == len(rows) >= samples
    assert sorted(order.shuffle.tolist()) == list(range(len(rows)))
    assert all(len(row) == length + 1 for row in rows)
    for row, following in pairwise(rows):
        assert row[-1] == following[0]


def test_a_stable_epoch_holds_every_document_once() -> None:
    order = stable_order(DOCUMENTS, LENGTHS, length=4, samples=100, seed=3)
    epochs = order.document[: len(order.document) // 10 * 10].reshape(-1, 10)
    assert len(epochs) >= 4
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == len(epochs)


def test_a_stable_epochs_samples_come_before_the_nexts() -> None:
    length = 4
    order = stable_order(DOCUMENTS, LENGTHS, length=length, samples=100, seed=3)
    epoch_of = [int(row) * length // TOKENS for row in order.shuffle]
    assert epoch_of == sorted(epoch_of)
    assert order.shuffle[:20].tolist() != list(range(20))


@pytest.mark.parametrize("length", [3, 100])
def test_a_longer_stable_run_begins_with_the_shorter_ones_samples(length: int) -> None:
    longest = stable_order(DOCUMENTS, LENGTHS, length=length, samples=400, seed=9)
    whole = walk(longest, length)
    for samples in (1, 20, 23, 200):
        order = stable_order(DOCUMENTS, LENGTHS, length=length, samples=samples, seed=9)
        rows = walk(order, length)
        ours = [rows[row] for row in order.shuffle]
        assert ours == [whole[row] for row in longest.shuffle[: len(ours)]]


def test_seed_and_stream_change_the_stable_order() -> None:
    def drawn(seed: int, stream: int) -> list[int]:
        order = stable_order(DOCUMENTS, LENGTHS, length=4, samples=9, seed=seed, stream=stream)
        return order.document.tolist()

    assert drawn(1, 0) == drawn(1, 0)
    assert drawn(1, 0) != drawn(2, 0)
    assert drawn(1, 0) != drawn(1, 1)


@pytest.mark.parametrize("length", [1, 4, 16, 80, 500])
def test_one_pass_predicts_each_token_once(length: int) -> None:
    order = once_order(DOCUMENTS, LENGTHS, length=length)
    rows = [walk(order, length)[row] for row in order.shuffle]
    predicted = [token for row in rows for token in row[1:]][: TOKENS - 1]
    assert predicted == [(int(d), t) for d in DOCUMENTS for t in range(LENGTHS[d])][1:]
    assert len(rows) == max(1, -(-(TOKENS - 1) // length))


def reference_rows(lengths: np.ndarray, length: int, rows: int) -> list[list[int]]:
    """megatron-core's meaning, token by token: a sample ends on the token where the next begins."""
    result, position, offset = [[0, 0]], 0, 0
    while len(result) <= rows:
        steps = length
        while steps:
            offset += 1
            while offset >= lengths[position]:
                position, offset = position + 1, 0
            steps -= 1
        result.append([position, offset])
    return result


@pytest.mark.parametrize("samples", [None, 1, 15, 22, 45, 90])
def test_megatron_rows_are_those_of_a_walk(samples: int | None) -> None:
    order = megatron_order(DOCUMENTS, LENGTHS, length=4, samples=samples, seed=5)
    rows = len(order.sample) - 1
    if LENGTHS[order.document[0]]:
        expected = reference_rows(LENGTHS[order.document], 4, rows)
        assert order.sample.tolist() == expected
    assert sorted(order.shuffle.tolist()) == list(range(rows))
    assert rows >= (samples or 0)
    times = Counter(order.document.tolist())
    assert len(set(times.values())) == 1


@pytest.mark.parametrize("weights", [(1, 1), (0.7, 0.3), (5, 3, 1), (1, 1000)])
def test_every_prefix_of_a_blend_is_websters_apportionment(weights: tuple[float, ...]) -> None:
    streams, numbers = blend_sequence(weights, 200)
    counts = [0] * len(weights)
    for stream, number in zip(streams.tolist(), numbers.tolist(), strict=True):
        claims = [Fraction(2 * n + 1) / Fraction(w) for n, w in zip(counts, weights, strict=True)]
        assert float(claims[stream]) == pytest.approx(float(min(claims)))
        assert number == counts[stream]
        counts[stream] += 1
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count - 200 * weight / sum(weights)) <= 1
    shorter = blend_sequence(weights, 77)
    assert np.array_equal(shorter[0], streams[:77])


def test_a_blend_reads_each_streams_own_samples() -> None:
    length, parts = 4, (DOCUMENTS[:4], DOCUMENTS[4:])
    streams, numbers = blend_sequence((3, 1), 40)
    orders = [
        stable_order(part, LENGTHS[part], length=length, samples=40, seed=1, stream=i)
        for i, part in enumerate(parts)
    ]
    rows = [walk(order, length) for order in orders]
    blend = blend_orders(orders, streams, numbers)
    blended = {}
    for row, (begin, end) in enumerate(zip(blend.sample, blend.sample[1:], strict=False)):
        tokens = []
        position, offset = (int(value) for value in begin)
        while len(tokens) <= length and position < len(blend.document):
            document = int(blend.document[position])
            tokens += [(document, t) for t in range(offset, LENGTHS[document])]
            position, offset = position + 1, 0
        blended[row] = tokens[: length + 1]
        assert end is not None
    for place, (stream, number) in enumerate(zip(streams, numbers, strict=True)):
        expected = rows[stream][orders[stream].shuffle[number]]
        assert blended[int(blend.shuffle[place])] == expected


@pytest.mark.parametrize("order", ["stable", "megatron"])
def test_offsets_and_positions_hold_beyond_32_bits(order: str) -> None:
    documents, length = np.arange(5), 1 << 29
    lengths = np.array([2**31 - 1, 5, 2**31 - 1, 2**30, 2**31 - 1], np.int32)
    make = stable_order if order == "stable" else megatron_order
    made = make(documents, lengths, length=length, samples=40, seed=3)
    starts = np.cumsum([0, *lengths[made.document].tolist()], dtype=object)
    for row, (position, offset) in enumerate(made.sample.tolist()):
        assert starts[position] + offset == row * length
    assert made.sample[-1, 0] > 5  # into a further epoch
