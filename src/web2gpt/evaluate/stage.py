"""The stage evaluate: a model's loss on held-out parts of the index and on any texts, and its
accuracy on cloze passages, into evaluation.json."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, inf
from pathlib import Path
from typing import Any

from web2gpt.checkpoint.open import ModelFiles, Opened
from web2gpt.config.outputs import Evaluate
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError, InputError
from web2gpt.evaluate.byte_lengths import token_bytes
from web2gpt.evaluate.cloze import last_token, last_word, measure_cloze
from web2gpt.evaluate.corpus import SplitDocuments
from web2gpt.evaluate.measure import Measured, measure
from web2gpt.evaluate.texts import TextFile, records
from web2gpt.evaluate.windows import Array
from web2gpt.io.atomic import read_json, write_json
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.model.device import prepare_device
from web2gpt.tokens.vocabulary import END_OF_TEXT, parse_tokenizer

SPLITS = ("valid", "test")
NOTHING = (
    "evaluate: nothing to measure: index.split holds nothing out, and neither evaluate.texts nor "
    "evaluate.cloze names a file"
)


@dataclass(frozen=True)
class EvaluateFiles:
    """Where the stage reads and writes. ``index`` is None if only files are evaluated on."""

    model: ModelFiles
    index: Path | None
    output: Path
    work: Path


def evaluate_model(files: EvaluateFiles, settings: Evaluate) -> None:
    """Measure the model on all that the settings ask for, and write evaluation.json.

    Raises ``ConfigError`` if they ask for nothing, ``InputError`` for what cannot be read.
    """
    if files.index is None and not settings.texts and not settings.cloze:
        raise ConfigError("evaluate: nothing to evaluate on; give --index, --texts or --cloze.")
    inputs = [*files.model.inputs(), *map(Path, (*settings.texts, *settings.cloze))]
    inputs += [] if files.index is None else [files.index]
    job = {
        "stage": "evaluate",
        "version": VERSIONS["evaluate"],
        "settings": settings.model_dump(mode="json"),
        "inputs": file_states(inputs),
    }
    with WorkFolder(files.work, job) as work:
        if not work.is_published([files.output]):
            draft = work.path / files.output.name
            opened = files.model.open(prepare_device(settings.device, settings.threads))
            write_json(draft, Evaluation(opened, settings).all(files.index))
            work.publish({draft: files.output})
        for line in list(_summaries(read_json(files.output))) or [NOTHING]:
            print(line, flush=True)


class Evaluation:
    """One model measured on several things; every figure in nats unless said."""

    def __init__(self, opened: Opened, settings: Evaluate):
        self.opened, self.settings = opened, settings
        path = opened.tokenizer
        if not path.is_file():
            raise InputError(f"{path}: no such file; put the model's tokenizer there.")
        self.tokenizer = parse_tokenizer(path.read_bytes(), path)
        self.lengths = token_bytes(self.tokenizer, opened.vocab_size)

    def all(self, index: Path | None) -> dict[str, Any]:
        """The content of evaluation.json."""
        result: dict[str, Any] = {"window": self.opened.model.n_positions}
        if index is not None:
            result |= self.splits(index)
        if self.settings.texts:
            result["texts"] = {path: self.text(Path(path)) for path in self.settings.texts}
        if self.settings.cloze:
            result["cloze"] = {path: self.cloze(Path(path)) for path in self.settings.cloze}
        return result

    def splits(self, index: Path) -> dict[str, Any]:
        """Parts of the index by name. ``both``: what is too short to be measured is left out, even
        all, for a run may hold nothing out; a part that is asked for by name must be there."""
        both = self.settings.split == "both"
        wanted = SPLITS if both else (self.settings.split,)
        parts = {name: SplitDocuments.open(index, name) for name in wanted}
        found = {
            name: self.split(index, name, part)
            for name, part in parts.items()
            if part and (part.tokens > 1 or not both)
        }
        if not found and not both:
            raise InputError(
                f"{index}: its {wanted[0]} part holds no document; give it a larger share in "
                "index.split, or evaluate another part."
            )
        return found

    def split(self, index: Path, name: str, documents: SplitDocuments) -> dict[str, Any]:
        measured = self._measure(f"{index}, {name}", documents, None, documents.tokens)
        return {"documents": len(documents.numbers), **self._figures(measured)}

    def text(self, path: Path) -> dict[str, Any]:
        """A file's figures. The adjusted perplexity is one by word, comparable between
        tokenizers: exp(loss x (tokens - 1) / (words - 1))."""
        vocabulary = self.tokenizer.get_vocab(with_added_tokens=True)
        end = self.opened.end_of_text
        end = vocabulary[END_OF_TEXT] if end is None else end
        wikitext = self.settings.text_format == "wikitext"
        stream = TextFile(path, self.tokenizer, end, self.settings.text_key, wikitext)
        stride = min(self.settings.stride, self.opened.model.n_positions)
        figures = self._figures(self._measure(str(path), stream, stride))
        adjusted = {}
        if stream.words > 1:
            exponent = figures["loss"] * figures["tokens"] / (stream.words - 1)
            adjusted["adjusted_perplexity"] = exp(exponent) if exponent < 700 else None
        return {
            "documents": stream.documents,
            "words": stream.words,
            "stride": stride,
            **figures,
            **adjusted,
        }

    def cloze(self, path: Path) -> dict[str, Any]:
        """Accuracy on a file's last words, and on its last tokens."""
        words = self._cloze(path, last_word)
        tokens = self._cloze(path, last_token)
        return {
            "passages": words.passages,
            "accuracy": words.accuracy,
            "last_token_accuracy": tokens.accuracy,
        }

    def _cloze(self, path: Path, cut: Any) -> Any:
        def passages() -> Iterator[Any]:
            for number, text in enumerate(records(path, self.settings.text_key), start=1):
                try:
                    yield cut(text, self.tokenizer)
                except ValueError as error:
                    raise InputError(f"{path}, record {number}: {error}.") from error

        length = self.opened.model.n_positions
        size = self.settings.batch_size
        try:
            return measure_cloze(self.opened.gpt2, passages(), length=length, batch_size=size)
        except ValueError as error:
            raise InputError(f"{path}: {error}.") from error

    def _measure(
        self, what: str, pieces: Any, stride: int | None, total: int | None = None
    ) -> Measured:
        try:
            return measure(
                self.opened.gpt2,
                pieces,
                length=self.opened.model.n_positions,
                batch_size=self.settings.batch_size,
                stride=stride,
                total=total,
            )
        except ValueError as error:
            raise InputError(
                f"{what}: {error} ({self.opened.vocab_size:,} ids). Evaluate on something else, "
                "or a model that was trained with these tokens' tokenizer."
            ) from error

    def _figures(self, measured: Measured) -> dict[str, Any]:
        """Bits per byte only where ids are known to be bytes."""
        entropy = measured.unigram_entropy
        figures: dict[str, Any] = {
            "tokens": measured.predicted,
            "loss": measured.mean_loss,
            "perplexity": measured.perplexity,
            "unigram_entropy": entropy,
            "below_unigram_entropy": entropy - measured.mean_loss,
        }
        lengths: Array | None = self.lengths
        if lengths is not None and measured.text_bytes(lengths) > 0:
            figures["bytes"] = measured.text_bytes(lengths)
            figures["bits_per_byte"] = measured.bits_per_byte(lengths)
        return figures


def _summaries(result: dict[str, Any]) -> Iterator[str]:
    parts = {name: part for name, part in result.items() if name.startswith(SPLITS)}
    for name, part in (parts | result.get("texts", {})).items():
        bits = f", {part['bits_per_byte']:.3f} bits a byte" if "bits_per_byte" in part else ""
        perplexity = inf if part["perplexity"] is None else part["perplexity"]
        adjusted = part.get("adjusted_perplexity")
        words = f", {adjusted:.2f} by word" if adjusted is not None else ""
        yield (
            f"evaluate: {name}, {part['tokens']:,} tokens: loss {part['loss']:.4f} nats "
            f"(perplexity {perplexity:.2f}{words}{bits}); "
            f"{part['below_unigram_entropy']:.2f} below the unigram entropy of "
            f"{part['unigram_entropy']:.4f}"
        )
    for name, part in result.get("cloze", {}).items():
        yield (
            f"evaluate: {name}, {part['passages']:,} passages: last word {part['accuracy']:.2%}, "
            f"last token {part['last_token_accuracy']:.2%}"
        )
