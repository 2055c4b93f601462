"""The estimate, against real models, and against what others measured."""

import orjson
import pytest
from tiny import settings

from web2gpt.config.load import parse_settings
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import Model, Parallel, Train
from web2gpt.errors import ConfigError
from web2gpt.model.gpt2 import parameter_shapes
from web2gpt.train.counts import flops_per_token, parameter_count, rank_parameters
from web2gpt.train.estimate import Estimate, Situation
from web2gpt.train.estimate_options import Given, show_estimate
from web2gpt.train.estimate_table import table_rows
from web2gpt.train.fitting import proposals, require_fit
from web2gpt.train.memory import Case, Method, rank_memory, state_bytes, worst_memory

SIZES = {
    "gpt2": (12, 768, 12, 124_439_808),
    "gpt2-medium": (24, 1024, 16, 354_823_168),
    "gpt2-large": (36, 1280, 20, 774_030_080),
    "gpt2-xl": (48, 1600, 25, 1_557_611_200),
}
MEDIUM = Model(
    n_layer=24, n_embd=1024, n_head=16, n_positions=1024, attn_pdrop=0.1, resid_pdrop=0.1
)
OLD_MEGATRON = Method(attention="eager", logit_bytes=12)


def of_size(name: str) -> Model:
    layers, width, heads, _ = SIZES[name]
    return Model(n_layer=layers, n_embd=width, n_head=heads, n_positions=1024)


@pytest.mark.parametrize("name", SIZES)
def test_parameters_are_those_of_the_released_models(name: str) -> None:
    assert parameter_count(of_size(name), 50257) == SIZES[name][3]


def test_parameters_are_those_of_our_own_model() -> None:
    model = Model(n_layer=3, n_embd=24, n_head=2, n_positions=10)
    sizes = (shape for shape in parameter_shapes(model, 77).values())
    assert parameter_count(model, 77) == sum(_product(shape) for shape in sizes)


def _product(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def test_a_rank_holds_what_the_posts_ranks_held() -> None:
    assert rank_parameters(MEDIUM, Parallel(), 50304, 0) == 354_871_296
    assert rank_parameters(MEDIUM, Parallel(tensor=2), 50432, 0) == 178_100_224


def test_stages_hold_the_model_and_a_second_copy_of_the_embedding() -> None:
    layout = Parallel(pipeline=4)
    held = sum(rank_parameters(MEDIUM, layout, 50304, stage) for stage in range(4))
    assert held == parameter_count(MEDIUM, 50304) + 50304 * 1024


def test_operations_a_token_are_those_of_the_literature() -> None:
    assert flops_per_token(MEDIUM, 50304) == pytest.approx(2.423e9, rel=1e-3)


@pytest.mark.parametrize(("tensor", "measured_gb"), [(1, 11.9), (2, 6.2)])
def test_memory_is_within_15_percent_of_the_peaks_that_the_post_measured(
    tensor: int, measured_gb: float
) -> None:
    train = Train(micro_batch_size=8, global_batch_size=8, precision="fp16", recompute="full")
    case = Case(MEDIUM, Parallel(tensor=tensor, zero=0), train, 50257, OLD_MEGATRON)
    estimate = rank_memory(case, 0).allocated
    assert estimate == pytest.approx(measured_gb * 1e9, rel=0.15)
    assert estimate == pytest.approx(measured_gb * 2**30, rel=0.15), "whichever GB they meant"


def test_proposals_are_found_for_any_size_that_can_be_given() -> None:
    layout = Parallel(tensor=1, pipeline=1, data=10_080)
    train = Train(micro_batch_size=9_240, global_batch_size=10_080 * 9_240)
    found = proposals(Case(of_size("gpt2-xl"), layout, train, 50257), 24e9)
    assert len(found) == 3 and all(proposal.memory.total <= 24e9 for proposal in found)


def test_activations_are_those_of_the_literature() -> None:
    """Korthikanti et al., table 2: s b h L (34 + 5 a s / h) with nothing recomputed."""
    train = Train(micro_batch_size=8, global_batch_size=8, precision="fp16")
    row = 1024 * 8 * 1024
    for method, each in ((OLD_MEGATRON, 34 + 80), (Method(), 34)):
        memory = rank_memory(Case(MEDIUM, Parallel(), train, 50257, method), 0)
        assert memory.activations == pytest.approx(24 * row * each + 2 * row)


def test_zero_divides_the_states() -> None:
    assert state_bytes("fp32", Parallel(zero=0)) == (4, 4, 8)
    assert sum(state_bytes("bf16", Parallel(zero=1, data=4))) == 2 + 4 + 3
    assert sum(state_bytes("fp16", Parallel(zero=3, data=8))) == (2 + 2 + 16) / 8


def test_zero_3_keeps_half_a_billion_weights_whole_beside_its_parts() -> None:
    train = Train(micro_batch_size=8, global_batch_size=64, precision="bf16")

    def weights(name: str, data: int) -> float:
        layout = Parallel(data=data, zero=3)
        return rank_memory(Case(of_size(name), layout, train, 50257), 0).weights

    medium = rank_parameters(of_size("gpt2-medium"), Parallel(), 50304, 0)
    largest = rank_parameters(of_size("gpt2-xl"), Parallel(), 50304, 0)
    assert weights("gpt2-medium", 4) == 2 * medium / 4 + 2 * medium
    assert weights("gpt2-xl", 4) == 2 * largest / 4 + 1e9
    assert weights("gpt2-xl", 1) == 2 * largest, "a single part is whole"


def test_what_cannot_fit_is_refused_and_what_fits_is_proposed() -> None:
    train = Train(micro_batch_size=8, global_batch_size=64, precision="bf16")
    case = Case(of_size("gpt2-xl"), Parallel(data=4), train, 50257)
    with pytest.raises(ConfigError, match=r"needs .* GB a GPU, which has 24.0 GB. What fits: "):
        require_fit(case, 24e9)
    found = proposals(case, 24e9)
    assert found and all(proposal.memory.total <= 24e9 for proposal in found)
    require_fit(case, worst_memory(case).total)
    tiny = Case(of_size("gpt2-xl"), Parallel(), train, 50257)
    with pytest.raises(ConfigError, match="a smaller model, or more GPUs"):
        require_fit(tiny, 8e9)


def test_the_table_has_every_kind() -> None:
    stage = parse_settings(TrainStage, orjson.dumps(settings()).decode())
    situation = Situation(257, corpus_tokens=3200, gpu_bytes=1e9)
    rows = dict(table_rows(Estimate.of(stage, situation)))
    for name in ("parameters", "tokens", "epochs", "operations", "time", "checkpoint", "model"):
        assert name in rows
    for kind in ("weights", "gradients", "optimizer", "activations", "logits"):
        assert f"  {kind}" in rows
    assert rows["parameters"] == "34,720"


def test_the_command_prints_the_table_and_refuses_what_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    section = {"micro_batch_size": 16, "global_batch_size": 64, "precision": "bf16"}
    chosen = TrainStage(model=of_size("gpt2-xl"), parallel=Parallel(data=2), train=Train(**section))
    with pytest.raises(ConfigError, match="What fits: "):
        show_estimate(Given(None, None, None, None, 40.0, 300.0), chosen)
    shown = capsys.readouterr().out
    assert "1,557,611,200" in shown and "at 300 TFLOP/s" in shown and "40.00 GB" in shown
    show_estimate(Given(None, None, None, None, 400.0, None), chosen)


def test_the_command_gives_the_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    train = Train(micro_batch_size=8, global_batch_size=16, precision="bf16", steps=10)
    chosen = TrainStage(model=of_size("gpt2-xl"), parallel=Parallel(data=2), train=train)
    with pytest.raises(ConfigError, match="What fits: "):
        show_estimate(Given(None, None, 50257, 1 << 20, 24.0, 300.0), chosen, as_json=True)
    figures = orjson.loads(capsys.readouterr().out)
    assert figures["parameters"] == 1_557_611_200
    assert (figures["tokens"], figures["epochs"]) == (163_840, 0.15625)
    (memory,) = figures["memory"]
    worst = worst_memory(Case(chosen.model, chosen.parallel, train, 50257))
    assert memory["needed"] == worst.total > figures["gpu"] == 24e9
    kinds = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
    assert sum(memory[kind] for kind in kinds) == pytest.approx(memory["needed"])
    assert figures["fits"] is False
