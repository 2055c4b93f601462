"""GPT-2 for a single device, and nothing else.

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners": pre-norm
blocks, learned positions, the head tied to the token embedding. The model is cut into the pieces
that a pipeline hands to its stages (``Embedding``, ``Block``, ``Head``), each a map from one tensor
to the next. Parallel layers replace linear layers, embeddings and norms from outside; to allow for
it, attention takes its number of heads from the width that ``c_attn`` puts out.

Shapes: B sequences, T positions, C = n_embd, nh heads here, hs = C / n_head, V = vocabulary.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from web2gpt.config.training import Model

GELU_LINEAR = 2 * math.sqrt(2 / math.pi)  # of 2u = GELU_LINEAR x + GELU_CUBIC x^3
GELU_CUBIC = GELU_LINEAR * 0.044715


class Embedding(nn.Module):
    """Token plus position: the first piece."""

    def __init__(self, model: Model, vocab_size: int):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, model.n_embd)
        self.wpe = nn.Embedding(model.n_positions, model.n_embd)
        self.drop = nn.Dropout(model.embd_pdrop)

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) -> (B, T, C)
        positions = torch.arange(tokens.size(-1), device=tokens.device)  # (T,)
        return self.drop(self.wte(tokens) + self.wpe(positions))


class CoreAttention(nn.Module):
    """Causal softmax attention of each head by itself; it holds no parameters."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # each (B, nh, T, hs)
        dropout = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)


class Attention(nn.Module):
    """Multi-head causal self-attention."""

    def __init__(self, model: Model):
        super().__init__()
        self.head_size = model.n_embd // model.n_head
        self.c_attn = nn.Linear(model.n_embd, 3 * model.n_embd)  # q, k, v, each (n_head, hs)
        self.core = CoreAttention(model.attn_pdrop)
        self.c_proj = nn.Linear(model.n_embd, model.n_embd)
        self.resid_drop = nn.Dropout(model.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        return self.join(self.core(*self.split(x)))

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the heads that are here, each (B, nh, T, hs)."""
        qkv = self.c_attn(x).unflatten(-1, (3, -1, self.head_size))  # (B, T, 3, nh, hs)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return q, k, v

    def join(self, y: Tensor) -> Tensor:
        """Side by side again, and through the output projection: (B, nh, T, hs) -> (B, T, C)."""
        return self.resid_drop(self.c_proj(y.transpose(1, 2).flatten(2)))


def gelu_new(x: Tensor) -> Tensor:
    """GELU by its formula with tanh (Hendrycks and Gimpel 2016), as GPT-2 has it.

    Where the compiler makes one pass of it, tanh is what that pass would wait for: (1 + tanh u) / 2
    is the sigmoid of 2u, which costs half of it.
    """
    if not torch.compiler.is_compiling():
        return F.gelu(x, approximate="tanh")
    z = x.float()
    return (z * torch.sigmoid(z * (GELU_LINEAR + GELU_CUBIC * z * z))).type_as(x)


class MLP(nn.Module):
    """Two linear layers with GELU between them, four times as wide inside."""

    def __init__(self, model: Model):
        super().__init__()
        self.c_fc = nn.Linear(model.n_embd, 4 * model.n_embd)
        self.activation = gelu_new if model.activation_function == "gelu_new" else F.gelu
        self.c_proj = nn.Linear(4 * model.n_embd, model.n_embd)
        self.resid_drop = nn.Dropout(model.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        return self.resid_drop(self.c_proj(self.activation(self.c_fc(x))))


class Block(nn.Module):
    """Attention, then MLP, each normalized before and added after."""

    def __init__(self, model: Model):
        super().__init__()
        self.ln_1 = nn.LayerNorm(model.n_embd, eps=model.layer_norm_epsilon)
        self.attn = Attention(model)
        self.ln_2 = nn.LayerNorm(model.n_embd, eps=model.layer_norm_epsilon)
        self.mlp = MLP(model)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, C)
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Head(nn.Module):
    """Final norm, and logits by the token embedding: the last piece.

    ``wte`` is the one of ``Embedding`` where both are on one device, its copy where they are not.
    """

    def __init__(self, model: Model, wte: nn.Embedding):
        super().__init__()
        self.ln_f = nn.LayerNorm(model.n_embd, eps=model.layer_norm_epsilon)
        self.wte = wte

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, V)
        return F.linear(self.ln_f(x), self.wte.weight)


class GPT2(nn.Module):
    """All pieces in a row."""

    def __init__(self, model: Model, vocab_size: int):
        super().__init__()
        self.embedding = Embedding(model, vocab_size)
        self.h = nn.ModuleList(Block(model) for _ in range(model.n_layer))
        self.head = Head(model, self.embedding.wte)

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) -> (B, T, V)
        return self.head(self.hidden(tokens))

    def hidden(self, tokens: Tensor) -> Tensor:
        """What the head gets: (B, T) -> (B, T, C)."""
        x = self.embedding(tokens)
        for block in self.h:
            x = block(x)
        return x

    def tensors(self) -> dict[str, nn.Parameter]:
        """The parameters under their global names; the tied embedding stands there once."""
        return {global_name(name): parameter for name, parameter in self.named_parameters()}


def model_of_weights(
    model: Model, vocab_size: int, weight: Callable[[str], Tensor], device: torch.device | str
) -> GPT2:
    """A model in float32 and evaluation mode, each parameter from ``weight`` by its global name."""
    with torch.device("meta"):
        gpt2 = GPT2(model, vocab_size)
    gpt2 = gpt2.to_empty(device=device)
    with torch.no_grad():
        for name, parameter in gpt2.tensors().items():
            parameter.copy_(weight(name))
    return gpt2.eval()


def global_name(name: str) -> str:
    """A parameter's name in any layout, from its place in ``GPT2``: ``head.ln_f.bias`` is
    ``ln_f.bias``, ``embedding.wte.weight`` is ``wte.weight``; blocks are ``h.<i>.…`` as they stand.
    """
    return name.removeprefix("embedding.").removeprefix("head.")


def parameter_shapes(model: Model, vocab_size: int) -> dict[str, tuple[int, ...]]:
    """Global name and shape of every parameter, without allocating any."""
    with torch.device("meta"):
        tensors = GPT2(model, vocab_size).tensors()
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
