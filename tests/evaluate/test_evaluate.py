"""Evaluation against transformers' loss, and sums worked by hand."""

import json
from collections import Counter
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge import WINDOW, by_transformers
from tokenizers import Tokenizer, models
from typer.testing import CliRunner

from web2gpt.checkpoint.huggingface import load_model
from web2gpt.checkpoint.open import ModelFiles
from web2gpt.cli import app
from web2gpt.config.outputs import Evaluate
from web2gpt.config.tokens import IndexRun
from web2gpt.errors import InputError
from web2gpt.evaluate.byte_lengths import token_bytes
from web2gpt.evaluate.measure import measure
from web2gpt.evaluate.stage import EvaluateFiles, evaluate_model
from web2gpt.evaluate.windows import batches, windows
from web2gpt.tokens.index import IndexInputs, build_index
from web2gpt.tokens.indexed import write_idx

VOCAB = 270
TEXTS = ["the cat sat on the mat", "ñandú 鳥 and other birds", "", "a hat", "mats and hats, cats"]


@pytest.fixture(scope="module")
def documents(model: Path) -> list[list[int]]:
    """40 documents with end-of-text after each."""
    bpe = Tokenizer.from_file(str(model / "tokenizer.json"))
    return [[*bpe.encode(f"{number} {TEXTS[number % 5]}").ids, 0] for number in range(40)]


@pytest.fixture(scope="module")
def index(
    model: Path, documents: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return indexed(model, documents, tmp_path_factory.mktemp("run"), split="80,20,0")


def indexed(model: Path, documents: list[list[int]], root: Path, *, split: str) -> Path:
    """An index of the documents; its manifest."""
    np.concatenate(documents).astype("<u2").tofile(root / "corpus.bin")
    with (root / "corpus.idx").open("wb") as file:
        write_idx(file, np.array([len(ids) for ids in documents]), np.dtype("<u2"))
    inputs = IndexInputs([("demo", root / "corpus")], {}, {}, model / "tokenizer.json")
    settings = IndexRun(split=split, sequence_length=WINDOW, train_samples=10)
    build_index(inputs, root / "index", root / "work", settings)
    return root / "index" / "manifest.json"


def run(model: Path, index: Path | None, root: Path, **settings: Any) -> dict[str, Any]:
    output = root / "evaluation.json"
    files = EvaluateFiles(ModelFiles(model), index, output, root / "work")
    evaluate_model(files, Evaluate(device="cpu", **settings))
    return json.loads(output.read_text())


def on_split(model: Path, index: Path, root: Path, **settings: Any) -> dict[str, Any]:
    """The figures of the validation part."""
    return run(model, index, root, split="valid", **settings)["valid"]


def test_all_tokens_of_the_split_are_measured_as_transformers_measures_them(
    model: Path, index: Path, documents: list[list[int]], tmp_path: Path
) -> None:
    result = on_split(model, index, tmp_path)
    stream = [token for ids in documents[32:] for token in ids]
    loss, count = by_transformers(model, stream)
    assert result["documents"] == 8
    assert result["tokens"] == count == len(stream) - 1
    assert result["loss"] == pytest.approx(loss / count, rel=1e-6)
    assert result["perplexity"] == pytest.approx(exp(loss / count), rel=1e-6)
    frequencies = Counter(stream)
    entropy = -sum(n / len(stream) * log(n / len(stream)) for n in frequencies.values())
    assert result["unigram_entropy"] == pytest.approx(entropy, rel=1e-12)
    assert result["below_unigram_entropy"] == pytest.approx(entropy - loss / count, rel=1e-6)


def test_bits_per_byte_counts_the_bytes_of_the_text(
    model: Path, index: Path, documents: list[list[int]], tmp_path: Path
) -> None:
    result = on_split(model, index, tmp_path)
    bpe = Tokenizer.from_file(str(model / "tokenizer.json"))
    stream = [token for ids in documents[32:] for token in ids]
    size = len("".join(bpe.decode(ids) for ids in documents[32:]).encode())
    size -= len(bpe.decode(stream[:1]).encode())
    assert result["bytes"] == size
    nats = result["loss"] * result["tokens"]
    assert result["bits_per_byte"] == pytest.approx(nats / log(2) / size)


def test_the_batch_size_does_not_show(model: Path, index: Path, tmp_path: Path) -> None:
    one = on_split(model, index, tmp_path / "1", batch_size=1)
    many = on_split(model, index, tmp_path / "7", batch_size=7)
    assert one == pytest.approx(many, rel=1e-6)


def test_overlapping_windows_are_scored_as_transformers_scores_them(
    model: Path, documents: list[list[int]]
) -> None:
    ours, _ = load_model(model)
    stream = [token for ids in documents for token in ids]
    for stride in (1, 4, 15, 16):
        measured = measure(
            ours, [np.array(ids) for ids in documents], length=WINDOW, batch_size=5, stride=stride
        )
        loss, count = by_transformers(model, stream, stride)
        assert measured.predicted == count == len(stream) - 1
        assert measured.loss == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("stride", [1, 3, 8])
@pytest.mark.parametrize("tokens", [0, 1, 2, 8, 9, 10, 17, 25, 40])
def test_each_token_but_the_first_is_scored_once(tokens: int, stride: int) -> None:
    stream = np.arange(tokens)
    pieces = np.split(stream, [tokens // 3, tokens // 2])
    scored = [
        token for window in windows(pieces, 8, stride) for token in window.tokens[1:][window.skip :]
    ]
    assert scored == list(range(1, tokens))


def test_a_batch_holds_windows_of_one_length() -> None:
    cut = list(batches(windows([np.arange(50)], 8), 4))
    assert [len(batch) for batch in cut] == [4, 2, 1]
    assert [len(window.tokens) for batch in cut for window in batch] == [9] * 6 + [2]


def test_byte_lengths_are_those_of_the_decoded_tokens(model: Path) -> None:
    bpe = Tokenizer.from_file(str(model / "tokenizer.json"))
    lengths = token_bytes(bpe, VOCAB + 5)
    assert lengths is not None
    assert lengths[0] == 0 and not lengths[VOCAB:].any()
    ids = bpe.encode("ñandú 鳥 and other birds").ids
    assert lengths[ids].sum() == len("ñandú 鳥 and other birds".encode())
    words = Tokenizer(models.WordLevel({"the": 0, "naïve": 1, "日本": 2}, unk_token="the"))
    assert token_bytes(words, 3) is None


def test_an_empty_part_is_refused_with_the_way_out(
    model: Path, index: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"test part holds no document; .* index\.split"):
        run(model, index, tmp_path, split="test")


def test_a_run_that_holds_nothing_out_is_still_measured_on_texts(
    model: Path, documents: list[list[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = indexed(model, documents, tmp_path, split="100,0,0")
    assert run(model, whole, tmp_path / "alone") == {"window": WINDOW}
    assert "nothing to measure" in capsys.readouterr().out
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat")
    found = run(model, whole, tmp_path / "texts", texts=(str(text),))
    assert set(found) == {"window", "texts"}


def test_ids_that_the_model_does_not_have_are_refused(model: Path) -> None:
    ours, _ = load_model(model)
    with pytest.raises(ValueError, match="id 270 is beyond"):
        measure(ours, [np.array([1, 2, 270])], length=WINDOW, batch_size=2)
    with pytest.raises(ValueError, match="fewer than two tokens"):
        measure(ours, [np.array([1])], length=WINDOW, batch_size=2)


def test_other_data_than_the_index_was_made_of_is_refused(
    model: Path, index: Path, tmp_path: Path
) -> None:
    manifest = json.loads(index.read_text())
    folder = tmp_path / "index"
    folder.mkdir()
    for path in index.parent.glob("*.npy"):
        (folder / path.name).write_bytes(path.read_bytes())
    manifest["datasets"][0]["bin"]["bytes"] += 2
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"not the file that .* was made with"):
        run(model, folder / "manifest.json", tmp_path)


def test_the_command_writes_and_says_the_result(model: Path, index: Path, tmp_path: Path) -> None:
    output = tmp_path / "evaluation.json"
    places = ["--model", model, "--index", index, "--output", output, "--work", tmp_path / "work"]
    arguments = ["evaluate", *places, "--settings", '{"version": 1}', "--device", "cpu"]
    for _ in range(2):  # a second copy finds the work done
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        found = json.loads(output.read_text())["valid"]["loss"]
        assert f"loss {found:.4f} nats" in result.output


def test_both_parts_are_measured_and_an_empty_one_is_left_out(
    model: Path, index: Path, documents: list[list[int]], tmp_path: Path
) -> None:
    assert list(run(model, index, tmp_path)) == ["window", "valid"]
    corpus = Path(json.loads(index.read_text())["datasets"][0]["prefix"])
    inputs = IndexInputs([("demo", corpus)], {}, {}, model / "tokenizer.json")
    settings = IndexRun(split="60,20,20", sequence_length=WINDOW, train_samples=10)
    build_index(inputs, tmp_path / "index", tmp_path / "index-work", settings)
    result = run(model, tmp_path / "index" / "manifest.json", tmp_path / "both")
    assert list(result) == ["window", "valid", "test"]
    for name, part in (("valid", documents[24:32]), ("test", documents[32:])):
        loss, count = by_transformers(model, [token for ids in part for token in ids])
        assert result[name]["tokens"] == count
        assert result[name]["loss"] == pytest.approx(loss / count, rel=1e-6)


def test_a_named_validation_set_is_measured_by_itself(
    model: Path, index: Path, documents: list[list[int]], tmp_path: Path
) -> None:
    corpus = Path(json.loads(index.read_text())["datasets"][0]["prefix"])
    inputs = IndexInputs([("a", corpus), ("b", corpus)], {}, {}, model / "tokenizer.json")
    settings = IndexRun(split="1", sequence_length=WINDOW, train_samples=10, validation=("b",))
    build_index(inputs, tmp_path / "index", tmp_path / "index-work", settings)
    manifest = tmp_path / "index" / "manifest.json"
    result = run(model, manifest, tmp_path / "named", split="valid-b")
    loss, count = by_transformers(model, [token for ids in documents for token in ids])
    assert list(result) == ["window", "valid-b"]
    assert result["valid-b"]["loss"] == pytest.approx(loss / count, rel=1e-6)
    with pytest.raises(InputError, match="no part 'valid-c'; take one of train, valid, test"):
        run(model, manifest, tmp_path / "other", split="valid-c")
