"""The parameters that a file's stated sizes call for, worked out before anything so large is made.

Sizes are a few digits in a JSON file; a model of them can be any number of terabytes. Invariant:
no more blocks are thought of than there are tensors, and nothing is allocated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from web2gpt.config.training import Model
from web2gpt.errors import InputError
from web2gpt.model.gpt2 import parameter_shapes

LARGEST = 1 << 40  # of any one size, far beyond what fits into memory


def stated_model(fields: Mapping[str, Any], where: Path) -> Model:
    """The model of these settings. Raises ``InputError`` that names the first one at fault."""
    try:
        return Model.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{first['loc'][0]} = {first['input']!r:.60}: " if first["loc"] else ""
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError(
            f"{where}: no usable sizes of GPT-2: {name}{reason}; mend them."
        ) from error


def stated_shapes(
    model: Model, vocab_size: object, tensors: int, where: Path
) -> dict[str, tuple[int, ...]]:
    """Name and shape of each parameter of a model that ``tensors`` tensors are there for.

    Raises ``InputError`` for sizes that no model can have, or that call for far more tensors.
    """
    if not isinstance(vocab_size, int) or not 1 <= vocab_size <= LARGEST:
        raise InputError(
            f"{where}: vocab_size = {vocab_size!r} is no size of a vocabulary; take another one."
        )
    if max(model.n_embd, model.n_positions) > LARGEST:
        raise InputError(f"{where}: no model is as large as n_embd, n_positions say; take another.")
    if model.n_layer > tensors:
        raise InputError(
            f"{where}: n_layer = {model.n_layer:,}, but there are only {tensors:,} tensors; "
            "take another one."
        )
    try:
        return parameter_shapes(model, vocab_size)
    except RuntimeError as error:  # torch counts bytes in 64 bits
        raise InputError(
            f"{where}: no model is as large as its sizes say; take another."
        ) from error
