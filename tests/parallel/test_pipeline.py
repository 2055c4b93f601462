"""Stages by cost, against all ways to deal blocks out."""

from itertools import product

import pytest

from web2gpt.config.training import Model
from web2gpt.parallel.pipeline import blocks_of_stages, head_cost, pipeline_name, stage_bounds

GPT2_345M = Model(n_layer=24, n_embd=1024, n_head=16, n_positions=1024)


def test_the_head_costs_as_much_as_a_few_blocks() -> None:
    assert 3 < head_cost(GPT2_345M, 50304) < 4


@pytest.mark.parametrize("head", [0.0, 1.1, 3.5, 9.0])
@pytest.mark.parametrize(("layers", "stages"), [(4, 2), (7, 3), (8, 4), (4, 4)])
def test_no_way_of_dealing_blocks_out_is_faster(layers: int, stages: int, head: float) -> None:
    def slowest(blocks: tuple[int, ...]) -> float:
        return max(*blocks[:-1], blocks[-1] + head)

    ways = [w for w in product(range(1, layers + 1), repeat=stages) if sum(w) == layers]
    found = tuple(blocks_of_stages(layers, stages, head))
    assert found in ways
    assert slowest(found) == min(map(slowest, ways))


def test_bounds_and_names_agree_on_the_row_of_layers() -> None:
    bounds = stage_bounds(GPT2_345M, 2, 50304)
    assert bounds[0] == 0 and bounds[-1] == 24 + 4
    assert 24 - 14 <= 26 - bounds[1] <= 24 - 12, "the last stage has fewer blocks"
    assert pipeline_name("tied_modules.wte.weight", 24) == "wte.weight"
    assert pipeline_name("1.wpe.weight", 24) == "wpe.weight"
    assert pipeline_name("2.attn.c_attn.bias", 24) == "h.0.attn.c_attn.bias"
    assert pipeline_name("25.ln_1.bias", 24) == "h.23.ln_1.bias"
    assert pipeline_name("26.weight", 24) == "ln_f.weight"
