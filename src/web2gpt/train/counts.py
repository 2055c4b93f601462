"""Parameters and floating-point operations of GPT-2, in closed form.

Sources: the parameter count follows from the shapes of Radford et al. 2019 (learned positions,
biases, tied head); operations a token are those of Narayanan et al. 2021, arXiv:2104.04473, section
5.1, with attention counted as dense, forward and backward, without recomputation.

h = n_embd, L = n_layer, S = n_positions, V = vocabulary, t = tensor, p = pipeline.
"""

from web2gpt.config.training import Model, Parallel


def parameter_count(model: Model, vocab_size: int) -> int:
    """V h + S h + L (12 h² + 13 h) + 2 h."""
    h = model.n_embd
    block = 12 * h * h + 13 * h
    return (vocab_size + model.n_positions) * h + model.n_layer * block + 2 * h


def rank_parameters(model: Model, layout: Parallel, padded_vocab: int, stage: int) -> int:
    """Parameters that a rank of ``stage`` holds, padding rows and the tied copy included.

    A block holds 12 h²/t + 7 h/t (biases of c_attn and c_fc) + 6 h (other biases, norms).
    """
    h, t = model.n_embd, layout.tensor
    block = 12 * h * h // t + 7 * h // t + 6 * h
    first, last = stage == 0, stage == layout.pipeline - 1
    count = stage_blocks(model, layout, padded_vocab)[stage] * block
    count += padded_vocab * h // t if first or last else 0
    return count + (model.n_positions * h if first else 0) + (2 * h if last else 0)


def stage_blocks(model: Model, layout: Parallel, padded_vocab: int) -> list[int]:
    """Blocks of each pipeline stage."""
    if layout.pipeline == 1:
        return [model.n_layer]
    from web2gpt.parallel.pipeline import blocks_of_stages, head_cost

    return blocks_of_stages(model.n_layer, layout.pipeline, head_cost(model, padded_vocab))


def flops_per_token(model: Model, vocab_size: int) -> float:
    """Forward and backward: 6 (12 L h² + V h) + 12 L h S."""
    h, layers = model.n_embd, model.n_layer
    return 6 * (12 * layers * h * h + vocab_size * h) + 12 * layers * h * model.n_positions


def recomputed_flops_per_token(model: Model, recompute: str) -> float:
    """What recomputation adds: a forward pass of the blocks, or of attention's core."""
    h, layers = model.n_embd, model.n_layer
    core = 4 * layers * h * model.n_positions
    return {"none": 0.0, "selective": core, "full": 24 * layers * h * h + core}[recompute]
