"""Get a byte-level BPE tokenizer: train one on the corpus, or take one that exists.

Method: Sennrich et al. 2016 over GPT-2's bytes and pre-tokenizer (Radford et al. 2019), trained by
the library ``tokenizers``. Invariant: the same corpus and settings give the same file, whatever
the number of threads: the sample is chosen by document numbers alone, and ties between merges are
decided by ids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from web2gpt.config.tokens import Tokenizer as Settings
from web2gpt.errors import InputError
from web2gpt.io.frames import Frame, read_frame
from web2gpt.io.progress import ProgressLine
from web2gpt.tokens.vocabulary import END_OF_TEXT

FRAMES_PER_BYTE = 8  # a sample's documents are taken out of frames with this many times its bytes


@dataclass
class SampleCount:
    """What the tokenizer was trained on."""

    documents: int = 0
    bytes: int = 0


def train_tokenizer(corpus: Path, frames: Sequence[Frame], settings: Settings) -> tuple[bytes, Any]:
    """``tokenizer.json`` trained on the corpus or an even sample of it, and the sample's counts.

    A small corpus may have too few pairs for the vocabulary asked for; then it has what there is.
    """
    count = SampleCount()
    tokenizer = _byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        min_frequency=settings.min_frequency,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_sample(corpus, frames, settings.sample_bytes, count), trainer)
    return _to_bytes(tokenizer), count


def take_tokenizer(path: Path) -> tuple[bytes, str | None]:
    """An existing tokenizer as ``tokenizer.json``'s bytes, and the eos token that it names.

    ``path``: tokenizer.json; or vocab.json with merges.txt beside it; or a folder with either.
    Raises ``InputError`` if there is neither.
    """
    folder = path if path.is_dir() else path.parent
    file = path / "tokenizer.json" if path.is_dir() else path
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    if file.is_file() and file.name not in ("vocab.json", "merges.txt"):
        return file.read_bytes(), _eos_token(folder)
    if vocab.is_file() and merges.is_file():
        return _from_vocab_and_merges(vocab, merges), _eos_token(folder)
    raise InputError(
        f"{path}: no tokenizer there; tokenizer.path is a tokenizer.json, a vocab.json with "
        "merges.txt beside it, or a folder with either."
    )


def _byte_level(model: Any) -> Any:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _to_bytes(tokenizer: Any) -> bytes:
    return (str(tokenizer.to_str(pretty=True)) + "\n").encode()


def _from_vocab_and_merges(vocab: Path, merges: Path) -> bytes:
    """GPT-2's two files as one; <|endoftext|> keeps its id, or gets the next one."""
    try:
        tokenizer = _byte_level(models.BPE.from_file(str(vocab), str(merges)))
    except Exception as error:  # the library raises no narrower one
        raise InputError(
            f"{vocab}, {merges}: not a byte-level BPE ({error}); name others."
        ) from error
    tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, special=True, normalized=False)])
    return _to_bytes(tokenizer)


def _eos_token(folder: Path) -> str | None:
    """The eos token that a Hugging Face folder names, if it does."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            token = orjson.loads(file.read_bytes()).get("eos_token")
        except (orjson.JSONDecodeError, AttributeError) as error:
            raise InputError(f"{file}: not a JSON object; mend or remove it.") from error
        content = token.get("content") if isinstance(token, dict) else token
        if isinstance(content, str):
            return content
    return None


def _sample(
    corpus: Path, frames: Sequence[Frame], sample_bytes: int, count: SampleCount
) -> Iterator[list[str]]:
    """Texts of an even sample, a list a frame: frames first, then documents of these."""
    total = sum(frame.text_bytes for frame in frames)
    chosen = list(frames)
    if total > FRAMES_PER_BYTE * sample_bytes:
        chosen = [
            frame
            for number, frame in enumerate(frames)
            if is_chosen(number, FRAMES_PER_BYTE * sample_bytes, total)
        ]
    available = sum(frame.text_bytes for frame in chosen)
    number = 0
    with ProgressLine("tokenizer", unit="frames", total=len(chosen)) as progress:
        for frame in chosen:
            texts = []
            for line in read_frame(corpus, frame):
                if is_chosen(number, sample_bytes, available):
                    texts += _text(line)
                number += 1
            count.documents += len(texts)
            count.bytes += sum(len(text.encode()) for text in texts)
            yield texts
            progress.advance()


def is_chosen(number: int, part: int, whole: int) -> bool:
    """Whether item ``number`` belongs to an even choice of ``part`` in ``whole``."""
    return part >= whole or (number + 1) * part // whole > number * part // whole


def _text(line: bytes) -> list[str]:
    """The line's text, as a list of one; of none if it has no text (tokenize will say so)."""
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return []
    text = document.get("text") if isinstance(document, dict) else None
    return [text] if isinstance(text, str) and text else []
