"""What a pair was made with stands beside it, and is held to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tokens.small import documents
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.errors import InputError
from web2gpt.io.checksums import checksum_of
from web2gpt.tokens import tokenize as stage
from web2gpt.tokens.indexed import IndexedDataset
from web2gpt.tokens.merge import merge_datasets
from web2gpt.tokens.provenance import manifest_path
from web2gpt.tokens.vocabulary import Vocabulary

MakePair = Callable[..., Path]


def test_the_manifest_beside_the_tokens_names_the_tokenizer(
    make_corpus: Callable[..., Path],
    texts: list[str],
    train: Callable[..., Path],
    encode: Callable[..., Any],
) -> None:
    folder = make_corpus(texts)
    tokenizer, files = train(folder), encode(folder)
    data = IndexedDataset(files.bin.with_suffix(""))
    assert json.loads((files.bin.parent / "text.manifest.json").read_bytes()) == {
        "format": 1,
        "tokenizer": {
            "vocab_size": 300,
            "end_of_document": {"token": "<|endoftext|>", "id": 0},
            "special_tokens": {"<|endoftext|>": 0},
            "dtype": "uint16",
            "blake2b": checksum_of(tokenizer.read_bytes()),
        },
        "key": "text",
        "append_eod": True,
        "documents": len(data),
        "tokens": len(data.tokens),
    }


def test_the_idx_comes_last(
    make_corpus: Callable[..., Path],
    texts: list[str],
    train: Callable[..., Path],
    encode: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = make_corpus(texts)
    train(folder)
    seen: list[bool] = []
    publish = stage.WorkFolder.publish

    def watch(self: Any, files: dict[Path, Path]) -> None:
        assert [path.suffix for path in files.values()][-1] == ".idx"
        seen.append((folder / "tokens" / "text.idx").exists())
        publish(self, files)

    monkeypatch.setattr(stage.WorkFolder, "publish", watch)
    files = encode(folder)
    encode(folder, append_eod=False)  # made again: the old .idx is gone before the new .bin comes
    assert seen == [False, False]
    assert files.idx.exists()


def beside(prefix: Path, tokenizer: Path, digest: str | None = None) -> None:
    known = Vocabulary.load(tokenizer).as_json()
    content = {"format": 1, "tokenizer": known | ({"blake2b": digest} if digest else {})}
    manifest_path(prefix).write_text(json.dumps(content))


def test_tokens_of_another_tokenizer_are_refused(
    make_pair: MakePair, build: Callable[..., Path], tokenizer: Path
) -> None:
    prefix = make_pair("data", documents(0, 30))
    beside(prefix, tokenizer)
    build([("corpus", prefix)], "same")
    beside(prefix, tokenizer, "00")
    with pytest.raises(InputError, match="made with another tokenizer"):
        build([("corpus", prefix)], "other")
    manifest_path(prefix).write_text("{}")
    with pytest.raises(InputError, match="not the manifest of an indexed dataset"):
        build([("corpus", prefix)], "foreign")


def test_pairs_of_different_tokenizers_are_not_merged(
    make_pair: MakePair, tokenizer: Path, tmp_path: Path
) -> None:
    prefixes = [make_pair(name, documents(0, 3)) for name in ("a", "b")]
    beside(prefixes[0], tokenizer)
    merge_datasets(prefixes, tmp_path / "m")  # of b nothing is known
    assert not manifest_path(tmp_path / "m").exists()
    beside(prefixes[1], tokenizer)
    merge_datasets(prefixes, tmp_path / "m")
    assert json.loads(manifest_path(tmp_path / "m").read_bytes())["merged"] == 2
    beside(prefixes[1], tokenizer, "00")
    with pytest.raises(InputError, match="another tokenizer"):
        merge_datasets(prefixes, tmp_path / "m")


def test_each_key_of_a_document_becomes_a_pair(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_corpus(texts)
    train(folder)
    found = {}
    for key in ("text", "url"):
        prefix = tmp_path / f"corpus_{key}_document"
        arguments = [
            "tokenize", "--corpus", folder / "corpus.jsonl.zst", "--frames",
            folder / "corpus.frames.parquet", "--tokenizer", folder / "tokenizer.json", "--bin",
            f"{prefix}.bin", "--idx", f"{prefix}.idx", "--documents", tmp_path / f"{key}.parquet",
            "--rejected", tmp_path / f"{key}.zst", "--stats", tmp_path / f"{key}.json", "--work",
            tmp_path / f"work-{key}", "--key", key,
        ]  # fmt: skip
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        found[key] = IndexedDataset(prefix)
        assert json.loads(manifest_path(prefix).read_bytes())["key"] == key
    assert len(found["url"]) == len(texts) == len(found["text"]) + 1  # one text is empty
