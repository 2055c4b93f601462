"""GPT-2 against transformers' own, with the same weights."""

import pytest
import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2, global_name, parameter_shapes

SIZES = {"n_layer": 2, "n_embd": 48, "n_head": 4, "n_positions": 24}
VOCAB = 101
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def twins(activation: str) -> tuple[GPT2, GPT2LMHeadModel]:
    """Our model and transformers', holding the same random values."""
    torch.manual_seed(0)
    theirs = GPT2LMHeadModel(
        GPT2Config(**SIZES, vocab_size=VOCAB, activation_function=activation, initializer_range=0.2)
    ).eval()
    ours = GPT2(Model(**SIZES, activation_function=activation), VOCAB).eval()
    values = theirs.transformer.state_dict()
    with torch.no_grad():
        for name, parameter in ours.tensors().items():
            value = values[name]
            parameter.copy_(value.t() if name.endswith(TRANSPOSED) else value)
    return ours, theirs


def token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy: (B, T, V), (B, T) -> ()."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


@pytest.mark.parametrize("activation", ["gelu_new", "gelu"])
def test_logits_and_loss_are_those_of_transformers(activation: str) -> None:
    ours, theirs = twins(activation)
    tokens = torch.randint(VOCAB, (3, 24))
    with torch.no_grad():
        wanted = theirs(input_ids=tokens, labels=tokens)
        logits = ours(tokens)
    torch.testing.assert_close(logits, wanted.logits, atol=1e-5, rtol=0)
    assert token_loss(logits[:, :-1], tokens[:, 1:]).item() == pytest.approx(
        wanted.loss.item(), rel=1e-6
    )


def test_gradients_are_those_of_transformers() -> None:
    ours, theirs = twins("gelu_new")
    tokens = torch.randint(VOCAB, (3, 24))
    theirs(input_ids=tokens, labels=tokens).loss.backward()
    token_loss(ours(tokens)[:, :-1], tokens[:, 1:]).backward()
    wanted = dict(theirs.transformer.named_parameters())
    for name, parameter in ours.tensors().items():
        grad = wanted[name].grad
        assert parameter.grad is not None and grad is not None
        grad = grad.t() if name.endswith(TRANSPOSED) else grad
        torch.testing.assert_close(parameter.grad, grad, atol=1e-6, rtol=1e-4)


def test_a_later_token_changes_no_earlier_logit() -> None:
    ours, _ = twins("gelu_new")
    tokens = torch.randint(VOCAB, (1, 24))
    changed = tokens.clone()
    changed[0, 10] = (changed[0, 10] + 1) % VOCAB
    with torch.no_grad():
        before, after = ours(tokens), ours(changed)
    assert torch.equal(before[:, :10], after[:, :10])
    assert not torch.equal(before[:, 10:], after[:, 10:])


def test_attention_works_with_a_share_of_the_heads() -> None:
    ours, _ = twins("gelu_new")
    attention = ours.h[0].attn
    x = torch.randn(2, 7, SIZES["n_embd"])
    head = attention.head_size
    whole = attention.core(*attention.split(x))  # (B, nh, T, hs)
    rows = torch.arange(3 * SIZES["n_embd"]).view(3, SIZES["n_head"], head)
    for rank in range(2):
        mine = rows[:, 2 * rank : 2 * rank + 2].flatten()
        part = torch.nn.Linear(SIZES["n_embd"], len(mine))
        part.weight.data = attention.c_attn.weight.data[mine]
        part.bias.data = attention.c_attn.bias.data[mine]
        full, attention.c_attn = attention.c_attn, part
        shared = attention.core(*attention.split(x))
        attention.c_attn = full
        torch.testing.assert_close(shared, whole[:, 2 * rank : 2 * rank + 2])


def test_dropout_acts_in_training_only() -> None:
    model = Model(**SIZES, embd_pdrop=0.1, attn_pdrop=0.1, resid_pdrop=0.1)
    gpt2 = GPT2(model, VOCAB)
    tokens = torch.randint(VOCAB, (2, 24))
    assert not torch.equal(gpt2(tokens), gpt2(tokens))
    gpt2.eval()
    assert torch.equal(gpt2(tokens), gpt2(tokens))


def test_pieces_in_a_row_are_the_model() -> None:
    ours, _ = twins("gelu_new")
    tokens = torch.randint(VOCAB, (2, 9))
    x = ours.embedding(tokens)
    for block in ours.h:
        x = block(x)
    assert torch.equal(ours.head(x), ours(tokens))


def test_names_and_shapes_are_known_without_allocating() -> None:
    ours, theirs = twins("gelu_new")
    shapes = parameter_shapes(Model(**SIZES), VOCAB)
    assert set(shapes) == {
        name.removeprefix("transformer.") for name, _ in theirs.named_parameters()
    }
    assert shapes == {name: tuple(p.shape) for name, p in ours.tensors().items()}
    assert sum(p.numel() for p in ours.parameters()) == theirs.num_parameters()
    assert global_name("head.ln_f.bias") == "ln_f.bias"
    assert global_name("h.0.attn.c_attn.bias") == "h.0.attn.c_attn.bias"
