"""From the options of the command estimate to its result."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from web2gpt.config.load import parse_settings, read_config
from web2gpt.config.train_stage import TrainStage
from web2gpt.io.atomic import read_json
from web2gpt.io.made import made_by
from web2gpt.train.estimate import Estimate, Situation
from web2gpt.train.estimate_table import table_lines
from web2gpt.train.fitting import require_fit
from web2gpt.train.gpus import smallest_gpu_bytes
from web2gpt.train.memory import Case

GPT2_VOCABULARY = 50257


@dataclass(frozen=True)
class Given:
    """The command's options; see there."""

    config: Path | None
    index: Path | None
    vocab_size: int | None
    corpus_tokens: int | None
    gpu_memory: float | None
    tflops: float | None


def show_estimate(given: Given, settings: TrainStage, *, as_json: bool = False) -> None:
    """Print the estimate. Raises ``ConfigError`` if the layout is wrong, or does not fit the GPU:
    then after it was printed.
    """
    stage, vocab_size = _stage(given, settings)
    corpus_tokens = given.corpus_tokens
    if given.index:
        manifest = _manifest(given.index)
        vocab_size = manifest["tokenizer"]["vocab_size"]
        corpus_tokens = corpus_tokens or training_tokens(manifest)
    vocab_size = given.vocab_size or vocab_size
    gpu = given.gpu_memory * 1e9 if given.gpu_memory else smallest_gpu_bytes()
    estimate = Estimate.of(stage, Situation(vocab_size, corpus_tokens, gpu, given.tflops))
    if as_json:
        print(orjson.dumps(estimate.as_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        print("\n".join(table_lines(estimate)))
    if gpu and stage.train.device != "cpu":
        require_fit(Case(stage.model, stage.parallel, stage.train, vocab_size), gpu)


def training_tokens(manifest: Any) -> int | None:
    """Tokens of the part that is trained on."""
    tokens: int | None = manifest["splits"]["train"].get("tokens")
    return tokens


def _stage(given: Given, settings: TrainStage) -> tuple[TrainStage, int]:
    """Settings and vocabulary size: from the configuration, where there is one; flags win."""
    if given.config is None:
        return settings, GPT2_VOCABULARY
    config = read_config(given.config)
    sections = TrainStage.model_fields
    values = {name: getattr(config, name).model_dump(mode="json") for name in sections}
    for name, section in settings.model_dump(mode="json", exclude_unset=True).items():
        values[name] |= section
    stage = parse_settings(TrainStage, json.dumps(values))
    return stage, config.tokenizer.vocab_size


def _manifest(path: Path) -> Any:
    with made_by("index", path):
        manifest = read_json(path)
        return {"tokenizer": manifest["tokenizer"], "splits": manifest["splits"]}
