"""The stage evaluate: a model's loss on a held-out part of the index, into evaluation.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from web2gpt.checkpoint.huggingface import load_model
from web2gpt.config.outputs import Evaluate
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import InputError
from web2gpt.evaluate.byte_lengths import token_bytes
from web2gpt.evaluate.corpus import SplitDocuments
from web2gpt.evaluate.measure import Measured, measure
from web2gpt.io.atomic import read_json, write_json
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.model.device import prepare_device
from web2gpt.tokens.vocabulary import parse_tokenizer

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class EvaluateFiles:
    """Where the stage reads and writes."""

    model: Path
    index: Path
    output: Path
    work: Path


def evaluate_model(files: EvaluateFiles, settings: Evaluate) -> None:
    """Measure the model on all tokens of ``settings.split`` and write evaluation.json."""
    inputs = [path for path in files.model.glob("*") if path.is_file()]
    job = {
        "stage": "evaluate",
        "version": VERSIONS["evaluate"],
        "settings": settings.model_dump(mode="json"),
        "inputs": file_states([*inputs, files.index]),
    }
    with WorkFolder(files.work, job) as work:
        if not work.is_published([files.output]):
            draft = work.path / files.output.name
            write_json(draft, _evaluate(files, settings))
            work.publish({draft: files.output})
        print(_summary(read_json(files.output)), flush=True)


def _evaluate(files: EvaluateFiles, settings: Evaluate) -> dict[str, Any]:
    documents = SplitDocuments.open(files.index, settings.split)
    device = prepare_device(settings.device, settings.threads)
    model, stated = load_model(files.model, device)
    length = stated.model.n_positions
    try:
        measured = measure(
            model, documents, length=length, batch_size=settings.batch_size, total=documents.tokens
        )
    except ValueError as error:
        raise InputError(
            f"{files.index}, {settings.split}: {error} ({stated.vocab_size:,} ids). Evaluate "
            "another part, or a model that was trained with these tokens' tokenizer."
        ) from error
    tokenizer = files.model / "tokenizer.json"
    lengths = token_bytes(parse_tokenizer(tokenizer.read_bytes(), tokenizer), stated.vocab_size)
    return {
        "split": settings.split,
        "documents": len(documents.numbers),
        "window": length,
        **_figures(measured, lengths),
    }


def _figures(measured: Measured, lengths: Array | None) -> dict[str, Any]:
    """The results; nats unless said. Bits per byte only where ids are known to be bytes."""
    entropy = measured.unigram_entropy
    figures: dict[str, Any] = {
        "tokens": measured.predicted,
        "loss": measured.mean_loss,
        "perplexity": measured.perplexity,
        "unigram_entropy": entropy,
        "below_unigram_entropy": entropy - measured.mean_loss,
    }
    if lengths is not None and measured.text_bytes(lengths) > 0:
        figures["bytes"] = measured.text_bytes(lengths)
        figures["bits_per_byte"] = measured.bits_per_byte(lengths)
    return figures


def _summary(result: dict[str, Any]) -> str:
    bits = f", {result['bits_per_byte']:.3f} bits a byte" if "bits_per_byte" in result else ""
    return (
        f"evaluate: {result['split']}, {result['tokens']:,} tokens: loss {result['loss']:.4f} nats "
        f"(perplexity {result['perplexity']:.2f}{bits}); {result['below_unigram_entropy']:.2f} "
        f"below the unigram entropy of {result['unigram_entropy']:.4f}"
    )
