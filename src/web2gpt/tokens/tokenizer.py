"""The stage tokenizer: tokenizer.json and its manifest, trained or taken."""

from pathlib import Path
from time import monotonic
from typing import Any

from web2gpt.config.tokens import Tokenizer
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError
from web2gpt.io.atomic import write_bytes, write_json
from web2gpt.io.frames import read_frames
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.tokens.bpe import take_tokenizer, train_tokenizer
from web2gpt.tokens.vocabulary import Vocabulary


def make_tokenizer(
    corpus: Path | None,
    frames: Path | None,
    *,
    output: Path,
    manifest: Path,
    work_folder: Path,
    settings: Tokenizer,
) -> None:
    """Run the stage. ``corpus`` and ``frames`` may be missing where ``settings.path`` is given."""
    given = [Path(settings.path)] if settings.path else []
    job = {
        "stage": "tokenizer",
        "version": VERSIONS["tokenizer"],
        "settings": settings.model_dump(mode="json"),
        "inputs": file_states(given or [path for path in (corpus, frames) if path]),
    }
    start = monotonic()
    with WorkFolder(work_folder, job) as work:
        if work.is_published([output, manifest]):
            return
        if settings.path:
            content, vocabulary, facts = _take(Path(settings.path), settings.eod)
        else:
            content, vocabulary, facts = _train(corpus, frames, settings)
        drafts = {work.path / "tokenizer.json": output, work.path / "manifest.json": manifest}
        write_bytes(work.path / "tokenizer.json", content)
        write_json(work.path / "manifest.json", {"format": 1} | vocabulary.as_json() | facts)
        work.publish(drafts)
    made = _summary(vocabulary, facts)
    print(f"tokenizer: {made}, {monotonic() - start:.1f} s", flush=True)


def _take(path: Path, eod: str | None) -> tuple[bytes, Vocabulary, dict[str, Any]]:
    content, named = take_tokenizer(path)
    vocabulary = Vocabulary.of(content, eod, fallback=named, path=path)
    return content, vocabulary, {"origin": "given", "path": str(path)}


def _train(
    corpus: Path | None, frames: Path | None, settings: Tokenizer
) -> tuple[bytes, Vocabulary, dict[str, Any]]:
    if corpus is None or frames is None:
        raise ConfigError(
            "tokenizer.path: none is given, and there is no corpus to train on; name a tokenizer, "
            "or give --corpus and --frames."
        )
    content, sample = train_tokenizer(corpus, read_frames(frames, corpus), settings)
    vocabulary = Vocabulary.of(content, path=corpus)
    return content, vocabulary, {
        "origin": "trained",
        "asked_vocab_size": settings.vocab_size,
        "sample": {"documents": sample.documents, "bytes": sample.bytes},
    }  # fmt: skip


def _summary(vocabulary: Vocabulary, facts: dict[str, Any]) -> str:
    if facts["origin"] == "given":
        return f"{vocabulary.size:,} tokens, taken from {facts['path']}"
    sample, asked = facts["sample"], facts["asked_vocab_size"]
    less = "" if vocabulary.size >= asked else f" ({asked:,} asked; the text has no more pairs)"
    return (
        f"{vocabulary.size:,} tokens{less}, trained on {sample['documents']:,} documents, "
        f"{sample['bytes']:,} bytes"
    )
