"""Perplexity of any file and accuracy on cloze, against transformers and sums worked by hand."""

import gzip
import json
import shutil
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from judge import WINDOW, by_transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import GPT2LMHeadModel

from web2gpt.checkpoint.open import ModelFiles
from web2gpt.config.outputs import Evaluate
from web2gpt.errors import ConfigError, InputError
from web2gpt.evaluate import texts
from web2gpt.evaluate.stage import EvaluateFiles, evaluate_model
from web2gpt.evaluate.texts import TextFile
from web2gpt.evaluate.wikitext import undone

TEXT = """ = Robert <unk> =

 Robert @-@ Boulter ( born 1980 ) is an actor , of " 4 @,@ 000 " plays .
 the cat 's hat , and  the other cats ; mats !
"""


def run(model: Path, root: Path, **settings: Any) -> dict[str, Any]:
    output = root / "evaluation.json"
    files = EvaluateFiles(ModelFiles(model), None, output, root / "work")
    evaluate_model(files, Evaluate(device="cpu", **settings))
    return json.loads(output.read_text())


def test_a_text_is_scored_in_overlapping_windows_and_adjusted_to_words(
    model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "wiki.txt"
    path.write_text(TEXT)
    found = run(model, tmp_path, texts=(str(path),), stride=4)["texts"][str(path)]
    ids = Tokenizer.from_file(str(model / "tokenizer.json")).encode(TEXT.strip()).ids
    loss, count = by_transformers(model, ids, 4)
    words = len(TEXT.strip().split(" "))
    assert (found["tokens"], found["words"], found["stride"]) == (count, words, 4)
    assert found["loss"] == pytest.approx(loss / count, rel=1e-6)
    assert found["adjusted_perplexity"] == pytest.approx(exp(loss / (words - 1)), rel=1e-6)
    assert found["bytes"] == len(TEXT.strip().encode()) - 1


def test_wikitexts_tokenization_is_undone_but_words_are_the_originals(
    model: Path, tmp_path: Path
) -> None:
    assert undone(TEXT.strip()) == (
        "= Robert <unk> =\n\nRobert-Boulter (born 1980) is an actor, of \"4,000\" plays.\n"
        "the cat's hat, and  the other cats; mats!"
    )  # fmt: skip
    path = tmp_path / "wiki.txt"
    path.write_text(TEXT)
    settings = {"texts": (str(path),), "text_format": "wikitext", "stride": 16}
    found = run(model, tmp_path, **settings)["texts"][str(path)]
    bpe = Tokenizer.from_file(str(model / "tokenizer.json"))
    loss, count = by_transformers(model, bpe.encode(undone(TEXT.strip())).ids, 16)
    words = len(TEXT.strip().split(" "))
    assert (found["tokens"], found["words"]) == (count, words)
    assert found["adjusted_perplexity"] == pytest.approx(exp(loss / (words - 1)), rel=1e-6)


def test_documents_of_json_lines_end_with_end_of_text(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl.gz"
    documents = ["the cat sat on a mat", "ñandú 鳥", "hats"]
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"body": text}) + "\n" for text in documents)
    found = run(model, tmp_path, texts=(str(path),), text_key="body", stride=16)
    bpe = Tokenizer.from_file(str(model / "tokenizer.json"))
    stream = [token for text in documents for token in [*bpe.encode(text).ids, 0]]
    loss, count = by_transformers(model, stream)
    figures = found["texts"][str(path)]
    assert (figures["documents"], figures["words"], figures["tokens"]) == (3, 9, count)
    assert figures["loss"] == pytest.approx(loss / count, rel=1e-6)


@pytest.mark.parametrize(
    "passage", [TEXT + "the cat\nsat on\n\n\n the   mat \n \nñandú\n", " the cat's\tmat  is 1.5 ñ"]
)
def test_a_large_text_has_the_tokens_of_the_whole(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passage: str
) -> None:
    path = tmp_path / "large.txt"
    whole = passage * 20
    path.write_text("\ufeff" + whole)
    bpe = Tokenizer.from_file(str(model / "tokenizer.json"))
    monkeypatch.setattr(texts, "PIECE", 50)
    stream = TextFile(path, bpe, 0)
    pieces = list(stream)
    assert len(pieces) > 5
    assert np.concatenate(pieces).tolist() == bpe.encode(whole.strip()).ids
    assert stream.words == len(whole.strip().split(" "))


def test_cloze_counts_last_words_and_last_tokens_as_transformers_finds_them(
    model: Path, tmp_path: Path
) -> None:
    bpe = Tokenizer.from_file(str(model / "tokenizer.json"))
    theirs = GPT2LMHeadModel.from_pretrained(model).eval()

    def likeliest(ids: list[int], count: int) -> list[int]:
        context = torch.tensor([ids[-WINDOW - 1 : -1]])
        with torch.no_grad():
            return theirs(context).logits[0, -count:].argmax(-1).tolist()

    def goes_on(text: str) -> str:
        """A passage whose last word is what the model itself says, if it says a word."""
        ids = bpe.encode(text).ids
        return text + bpe.decode(likeliest([*ids, 0], 1))

    passages = [
        f"{a} {b} hat" for a in ("the", "a", "mats and cats") for b in ("cat", "sat on the")
    ]
    passages += [
        goes_on(f"{a} {b}") for a in ("the", "on", "cats") for b in ("mat", "birds", "hats")
    ]
    passages.append("the other cats sat " * 8 + "mat")
    words = tokens = 0
    for text in passages:
        before, word = text.rsplit(maxsplit=1)
        answer = bpe.encode(f" {word}").ids
        words += likeliest(bpe.encode(before).ids + answer, len(answer)) == answer
        ids = bpe.encode(text.strip()).ids
        tokens += likeliest(ids, 1) == ids[-1:]
    assert 0 < tokens < len(passages)
    path = tmp_path / "lambada.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in passages))
    for size in (1, 5):
        found = run(model, tmp_path / str(size), cloze=(str(path),), batch_size=size)
        assert found["cloze"][str(path)] == {
            "passages": len(passages),
            "accuracy": words / len(passages),
            "last_token_accuracy": tokens / len(passages),
        }


def test_what_cannot_be_evaluated_is_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to evaluate on"):
        run(model, tmp_path)
    path = tmp_path / "cloze.jsonl"
    for short in ("one", " ", ""):
        path.write_text(f'{{"text": "two words"}}\n{{"text": "{short}"}}\n')
        with pytest.raises(InputError, match="record 2: fewer than two words"):
            run(model, tmp_path, cloze=(str(path),))
    path.write_text('{"text": "two words"}\n{"passage": "one"}\n')
    with pytest.raises(InputError, match="record 2: no text under 'text'"):
        run(model, tmp_path, texts=(str(path),))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 " * 20)
    with pytest.raises(InputError, match="not UTF-8"):
        run(model, tmp_path, texts=(str(tmp_path / "latin.txt"),))


def test_a_model_without_a_finite_loss_is_said(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    tensors = load_file(broken / "model.safetensors")
    tensors["transformer.ln_f.bias"].fill_(torch.nan)
    save_file(tensors, broken / "model.safetensors")
    path = tmp_path / "some.txt"
    path.write_text("the cat sat on the mat")
    with pytest.raises(InputError, match="the loss is not finite"):
        run(broken, tmp_path, texts=(str(path),))


def test_a_perplexity_beyond_all_numbers_is_none(model: Path, tmp_path: Path) -> None:
    wild = tmp_path / "wild"
    shutil.copytree(model, wild)
    tensors = load_file(wild / "model.safetensors")
    tensors["transformer.ln_f.bias"].fill_(1e6)
    save_file(tensors, wild / "model.safetensors")
    path = tmp_path / "some.txt"
    path.write_text("the cat sat on the mat")
    figures = run(wild, tmp_path, texts=(str(path),))["texts"][str(path)]
    assert figures["loss"] > 700 and figures["perplexity"] is None
