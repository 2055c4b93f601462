"""How the tensors of GPT-2 are cut over the tensor-parallel ranks, and put together again.

The one place that knows it: layers, initial weights, checkpoints and merging all ask here. The
method is Megatron's (Shoeybi et al. 2019): the first matrix of a pair is cut by its rows (outputs),
the second by its columns (inputs), so that one sum after the second makes the pair whole.

- ``c_attn`` stacks queries, keys and values, each [n_head, head size, ...]: a rank holds the same
  whole heads of all three, so its slice is three ranges of rows.
- ``wte`` is cut by rows of the padded vocabulary. Padding exists inside a rank only: shapes here
  called global, and all files, have the true vocabulary.
- Everything else (layer norms, positions, biases added after the sum) is the same on every rank.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

Rule = Literal["vocabulary", "heads", "rows", "columns", "replicated"]

_RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    (re.compile(r"wte\.weight"), "vocabulary"),
    (re.compile(r"h\.\d+\.attn\.c_attn\.(weight|bias)"), "heads"),
    (re.compile(r"h\.\d+\.mlp\.c_fc\.(weight|bias)"), "rows"),
    (re.compile(r"h\.\d+\.(attn|mlp)\.c_proj\.weight"), "columns"),
    (re.compile(r"h\.\d+\.(attn|mlp)\.c_proj\.bias"), "replicated"),
    (re.compile(r"(h\.\d+\.ln_[12]|ln_f)\.(weight|bias)|wpe\.weight"), "replicated"),
)


@dataclass(frozen=True)
class Range:
    """``length`` rows or columns: at ``local_start`` of a slice, ``global_start`` of the whole."""

    local_start: int
    global_start: int
    length: int


@dataclass(frozen=True)
class Slice:
    """What one tensor-parallel rank holds of a tensor.

    ``dim`` is the dimension that is cut, None if the whole tensor is held; ``ranges`` are in local
    order and without gaps; ``shape`` is the local shape, padding (which comes last) included.
    """

    dim: int | None
    ranges: tuple[Range, ...]
    shape: tuple[int, ...]

    @property
    def length(self) -> int:
        """Size along ``dim`` without padding."""
        return sum(part.length for part in self.ranges)


def rule_of(name: str) -> Rule:
    """How the parameter ``name`` is cut. Raises ``KeyError`` for one that GPT-2 does not have."""
    for pattern, rule in _RULES:
        if pattern.fullmatch(name):
            return rule
    raise KeyError(f"{name}: not a parameter of GPT-2 under our names")


def is_split(name: str) -> bool:
    """Whether tensor-parallel ranks hold different parts of the parameter ``name``."""
    return rule_of(name) != "replicated"


def slice_of(
    name: str, shape: Sequence[int], *, tensor: int, rank: int, padded_vocab: int | None = None
) -> Slice:
    """The slice of the parameter ``name``, of global ``shape``, that ``rank`` of ``tensor`` holds.

    ``padded_vocab``: rows of ``wte`` over all ranks, padding included; by default the true ones.
    Raises ``ValueError`` if the ranks cannot have equal shares.
    """
    rule = rule_of(name)
    if rule == "replicated":
        return Slice(None, (), tuple(shape))
    dim = 1 if rule == "columns" else 0
    size = shape[dim]
    ranges: tuple[Range, ...]
    if rule == "vocabulary":
        share = _share(name, size if padded_vocab is None else padded_vocab, tensor)
        start = min(rank * share, size)
        ranges = (Range(0, start, min(share, size - start)),)
    else:
        groups = 3 if rule == "heads" else 1
        part = _share(name, size, tensor * groups)
        share = part * groups
        ranges = tuple(
            Range(group * part, (group * tensor + rank) * part, part) for group in range(groups)
        )
    return Slice(dim, ranges, (*shape[:dim], share, *shape[dim + 1 :]))


def cut(whole: Tensor, part: Slice) -> Tensor:
    """A rank's slice of the tensor ``whole``, in memory of its own; padding rows are zero."""
    if part.dim is None:
        return whole.clone()
    local = whole.new_zeros(part.shape)
    for span in part.ranges:
        source = whole.narrow(part.dim, span.global_start, span.length)
        local.narrow(part.dim, span.local_start, span.length).copy_(source)
    return local


def paste(local: Tensor, part: Slice, whole: Tensor) -> None:
    """Write a rank's slice, with or without padding, to its place in ``whole``: cut's inverse."""
    if part.dim is None:
        whole.copy_(local)
        return
    for span in part.ranges:
        source = local.narrow(part.dim, span.local_start, span.length)
        whole.narrow(part.dim, span.global_start, span.length).copy_(source)


def without_padding(local: Tensor, part: Slice) -> Tensor:
    """The view of a rank's slice that leaves out padding rows: what files hold."""
    return local if part.dim is None else local.narrow(part.dim, 0, part.length)


def _share(name: str, size: int, parts: int) -> int:
    if size % parts:
        raise ValueError(f"{name}: {size} does not divide into {parts} equal parts")
    return size // parts
