"""Dropout's streams: what each is a function of, and on which ranks it is the same."""

from itertools import combinations, product

import torch
from torch import Tensor

from web2gpt.config.training import Parallel
from web2gpt.parallel.communication import TensorGroup
from web2gpt.parallel.dropout import Key, Streams
from web2gpt.parallel.grid import Grid

CPU = torch.device("cpu")
ALONE = Parallel()


def streams(
    layout: Parallel = ALONE, *, seed: int = 1, tensor: int = 0, stage: int = 0, replica: int = 0
) -> Streams:
    """Of the rank at that place of the layout."""
    group = TensorGroup(tensor, layout.tensor, None, layout.sequence)
    return Streams(seed, Grid(layout, 0, stage, replica, group, None, None, None), CPU)


def outside(of: Streams, key: Key = (5, 2), layer: int = 3) -> Tensor:
    """What a layer draws where the activation is not split."""
    of.seed(key, layer)
    return torch.rand(8)


def inside(of: Streams, key: Key = (5, 2), layer: int = 3) -> Tensor:
    """What attention draws, whose heads are split."""
    of.seed(key, layer)
    with of.split_region(layer):
        return torch.rand(8)


def all_differ(draws: list[Tensor]) -> bool:
    return not any(torch.equal(one, two) for one, two in combinations(draws, 2))


def all_equal(draws: list[Tensor]) -> bool:
    return all(torch.equal(draws[0], other) for other in draws)


def test_a_stream_follows_from_seed_step_micro_batch_and_layer_and_nothing_else() -> None:
    for draw in (outside, inside):
        one = draw(streams())
        assert torch.equal(draw(streams()), one), "drawn before or not"
        others = [
            draw(streams(seed=2)),
            draw(streams(), key=(6, 2)),
            draw(streams(), key=(5, 3)),
            draw(streams(), layer=4),
        ]
        assert all_differ([one, *others])


def test_tensor_ranks_share_a_stream_but_where_heads_are_split() -> None:
    ranks = [streams(Parallel(tensor=4), tensor=rank) for rank in range(4)]
    assert all_equal([outside(rank) for rank in ranks])
    assert all_differ([inside(rank) for rank in ranks])


def test_under_sequence_parallelism_every_stream_is_a_ranks_own() -> None:
    ranks = [streams(Parallel(tensor=4, sequence=True), tensor=rank) for rank in range(4)]
    assert all_differ([draw(rank) for rank in ranks for draw in (outside, inside)])


def test_stages_and_replicas_have_the_streams_of_one_process() -> None:
    layout = Parallel(pipeline=2, data=2)
    places = product(range(2), range(2))
    ranks = [streams(layout, stage=stage, replica=replica) for stage, replica in places]
    for draw in (outside, inside):
        assert all_equal([draw(rank) for rank in [streams(), *ranks]])


def test_micro_batches_are_numbered_over_the_global_batch() -> None:
    ranks = [streams(Parallel(data=3), replica=replica) for replica in range(3)]
    for step in (1, 2):  # counting begins anew
        keys = []
        for rank in ranks:
            rank.begin_step(step)
            for _ in range(4):
                rank.next_micro_batch()
                keys.append(rank.key)
        assert sorted(keys) == [(step, number) for number in range(12)]


def test_after_attention_the_layers_stream_goes_on_as_if_nothing_had_been_drawn() -> None:
    one = streams()
    undisturbed = outside(one)
    one.seed((5, 2), 3)
    with one.split_region(3):
        torch.rand(100)
    assert torch.equal(torch.rand(8), undisturbed)
