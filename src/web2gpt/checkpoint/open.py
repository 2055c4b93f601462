"""Open a model to run it alone: from a Hugging Face folder, or straight from a training checkpoint
of any layout."""

from dataclasses import dataclass
from pathlib import Path

import torch

from web2gpt.checkpoint.format import INDEX, step_of
from web2gpt.checkpoint.huggingface import load_model
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.config.training import Model
from web2gpt.errors import ConfigError, InputError
from web2gpt.model.gpt2 import GPT2
from web2gpt.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Opened:
    """A model in float32 and evaluation mode, its sizes, and the tokenizer that belongs to it.

    ``end_of_text`` is None if nothing but the tokenizer can say it.
    """

    gpt2: GPT2
    model: Model
    vocab_size: int
    end_of_text: int | None
    tokenizer: Path


@dataclass(frozen=True)
class ModelFiles:
    """``folder``: a Hugging Face folder, a checkpoint (``…/step_00001000``), or a run's folder of
    checkpoints, of which the newest counts. ``tokenizer`` is needed for checkpoints, which hold
    none.
    """

    folder: Path
    tokenizer: Path | None = None

    @property
    def resolved(self) -> Path:
        """The folder that is read. Raises ``InputError`` if it holds no model."""
        folder = self.folder
        if (folder / "config.json").is_file() or (folder / INDEX).is_file():
            return folder
        steps = [path for path in folder.glob("step_*") if step_of(path) is not None]
        if not steps:
            raise InputError(
                f"{folder}: neither a Hugging Face folder (config.json) nor a checkpoint "
                f"({INDEX}); give one of them."
            )
        return max(steps, key=lambda path: step_of(path) or 0)

    def inputs(self) -> list[Path]:
        """The files that decide what the model is."""
        folder = self.resolved
        own = [] if self.tokenizer is None else [self.tokenizer]
        if (folder / "config.json").is_file():
            return [*(path for path in sorted(folder.iterdir()) if path.is_file()), *own]
        return [folder / INDEX, *own]

    def open(self, device: torch.device | str = "cpu") -> Opened:
        """Raises ``InputError`` for what is not computed here or is damaged, ``ConfigError`` for a
        checkpoint without ``tokenizer``."""
        folder = self.resolved
        if (folder / "config.json").is_file():
            gpt2, stated = load_model(folder, device)
            tokenizer = self.tokenizer or folder / "tokenizer.json"
            return Opened(gpt2, stated.model, stated.vocab_size, stated.end_of_text, tokenizer)
        if self.tokenizer is None:
            raise ConfigError(
                f"{folder}: a checkpoint holds no tokenizer; give --tokenizer, such as "
                "results/data/<name>/tokenizer/tokenizer.json."
            )
        end = Vocabulary.load(self.tokenizer).eod_id
        with JoinedCheckpoint(folder) as checkpoint:
            checkpoint.index.check_files(folder)
            gpt2 = checkpoint.as_model(device)
            return Opened(gpt2, checkpoint.model, checkpoint.vocab_size, end, self.tokenizer)
