"""Small corpora, tokenizers and indexed datasets for the tests of tokens."""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from web2gpt.config.tokens import IndexRun, Tokenize, Tokenizer
from web2gpt.io.frames import FrameWriter
from web2gpt.tokens.index import IndexInputs, build_index
from web2gpt.tokens.tokenize import TokenizeFiles, tokenize
from web2gpt.tokens.tokenizer import make_tokenizer

WORDS = "the quick brown fox jumps over lazy dogs while naïve Ünïcödé 東京 cafés 123 sleep".split()

SETTINGS: dict[str, Any] = {"split": "8,1,1", "sequence_length": 4, "train_samples": 30, "seed": 7}

MakePair = Callable[..., Path]
MakeCorpus = Callable[..., Path]


def make_text(number: int) -> str:
    """Some words that depend on the number alone, a different amount each time."""
    return " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 8 + number % 40))


@pytest.fixture
def make_pair(tmp_path: Path) -> MakePair:
    """Writes a .bin/.idx by the format's description, with struct alone; returns the prefix."""

    def make(name: str, documents: Sequence[Sequence[int]], code: int = 8) -> Path:
        dtype = {8: "H", 4: "i", 5: "q"}[code]
        size = struct.calcsize(f"<{dtype}")
        idx = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, code, len(documents), len(documents) + 1)
        idx += b"".join(struct.pack("<i", len(document)) for document in documents)
        at = 0
        for document in documents:
            idx += struct.pack("<q", at)
            at += len(document) * size
        idx += b"".join(struct.pack("<q", number) for number in range(len(documents) + 1))
        ids = [token for document in documents for token in document]
        (tmp_path / f"{name}.idx").write_bytes(idx)
        (tmp_path / f"{name}.bin").write_bytes(struct.pack(f"<{len(ids)}{dtype}", *ids))
        return tmp_path / name

    return make


@pytest.fixture
def make_corpus(tmp_path: Path) -> MakeCorpus:
    """Writes corpus.jsonl.zst and its frames; returns the folder."""

    def make(texts: Sequence[str], frame_bytes: int = 2000, sources: int = 2) -> Path:
        paths = tmp_path / "corpus.jsonl.zst", tmp_path / "corpus.frames.parquet"
        with FrameWriter(*paths, frame_bytes) as writer:
            for number, text in enumerate(texts):
                source = "web" if number % sources == 0 else "books"
                url = f"https://example.org/{number}"
                record: dict[str, object] = {"id": f"{number:032x}", "url": url, "text": text}
                record |= {"source": source} | ({"held_out": True} if number % 10 == 3 else {})
                writer.write(record)
        return tmp_path

    return make


@pytest.fixture
def texts() -> list[str]:
    """Texts in several scripts, one of them empty, two that write special tokens out."""
    made = [make_text(number) for number in range(60)]
    made[0] = ""
    made[7] = "before <|endoftext|> after<|endoftext|>"
    made[8] = "<|endoftext|>"
    return made


@pytest.fixture
def train() -> Callable[..., Path]:
    """Trains tokenizer.json on the corpus of a folder."""

    def run(folder: Path, vocab_size: int = 300, **settings: Any) -> Path:
        make_tokenizer(
            folder / "corpus.jsonl.zst",
            folder / "corpus.frames.parquet",
            output=folder / "tokenizer.json",
            manifest=folder / "manifest.json",
            work_folder=folder / "work-tokenizer",
            settings=Tokenizer(vocab_size=vocab_size, **settings),
        )
        return folder / "tokenizer.json"

    return run


@pytest.fixture
def encode() -> Callable[..., TokenizeFiles]:
    """Runs tokenize on the corpus of a folder; ``name`` keeps several runs apart."""

    def run(folder: Path, name: str = "tokens", threads: int = 2, **settings: Any) -> TokenizeFiles:
        files = TokenizeFiles(
            folder / "corpus.jsonl.zst",
            folder / "corpus.frames.parquet",
            folder / "tokenizer.json",
            folder / name / "text.bin",
            folder / name / "text.idx",
            folder / name / "documents.parquet",
            folder / name / "rejected.jsonl.zst",
            folder / name / "stats.json",
            folder / name / "work",
        )
        tokenize(files, Tokenize(**settings), key="text", threads=threads, rejected_text=False)
        return files

    return run


@pytest.fixture
def tokenizer(make_corpus: MakeCorpus, texts: list[str], train: Callable[..., Path]) -> Path:
    """tokenizer.json of 300 tokens."""
    return train(make_corpus(texts))


@pytest.fixture
def build(tokenizer: Path, tmp_path: Path) -> Callable[..., Path]:
    """Builds an index; returns its manifest's path."""

    def run(
        prefixes: Sequence[tuple[str, Path]],
        name: str = "index",
        sources: Path | None = None,
        weights: dict[str, float] | None = None,
        **settings: Any,
    ) -> Path:
        named = {prefixes[0][0]: sources} if sources else {}
        inputs = IndexInputs(prefixes, named, weights or {}, tokenizer)
        run = IndexRun(**SETTINGS | settings)
        build_index(inputs, tmp_path / name, tmp_path / f"work-{name}", run)
        return tmp_path / name / "manifest.json"

    return run
