"""Tokenizers, trained and taken."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import tokenizers

from web2gpt.config.tokens import Tokenizer
from web2gpt.errors import ConfigError, InputError
from web2gpt.tokens.bpe import is_chosen
from web2gpt.tokens.tokenizer import make_tokenizer
from web2gpt.tokens.vocabulary import Vocabulary


def take(path: Path, output: Path, eod: str | None = None) -> Vocabulary:
    make_tokenizer(
        None,
        None,
        output=output / "tokenizer.json",
        manifest=output / "manifest.json",
        work_folder=output / "work",
        settings=Tokenizer(path=str(path), eod=eod),
    )
    return Vocabulary.load(output / "tokenizer.json")


def test_the_file_is_the_same_for_any_thread_count_and_hash_seed(
    make_corpus: Callable[..., Path], texts: list[str]
) -> None:
    folder = make_corpus(texts)
    script = (
        "import sys; from pathlib import Path; from web2gpt.config.tokens import Tokenizer;"
        "from web2gpt.tokens.tokenizer import make_tokenizer; name = sys.argv[1];"
        "make_tokenizer(Path('corpus.jsonl.zst'), Path('corpus.frames.parquet'),"
        "output=Path(name), manifest=Path(name + '.manifest'), work_folder=Path(name + '.work'),"
        "settings=Tokenizer(vocab_size=300))"
    )
    for threads, seed in (("1", "0"), ("4", "77")):
        variables = {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-c", script, f"{threads}.json"],
            cwd=folder,
            env=os.environ | variables,
            check=True,
        )
    assert (folder / "1.json").read_bytes() == (folder / "4.json").read_bytes()


def test_training_loses_no_text_and_has_gpt2s_form(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path]
) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(train(make_corpus(texts))))
    for text in [*texts, "\x00\x7f\u200b 🏳️‍🌈\r\n\t  tab", "\U0010ffff"]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert tokenizer.get_vocab_size() == 300
    assert tokenizer.encode("fox fox").tokens[1].startswith("Ġ")


def test_a_small_corpus_gives_the_vocabulary_that_it_has(
    make_corpus: Callable[..., Path],
    texts: list[str],
    train: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = train(make_corpus(texts), 50_000)
    manifest = json.loads(path.with_name("manifest.json").read_text())
    size = tokenizers.Tokenizer.from_file(str(path)).get_vocab_size()
    assert manifest["vocab_size"] == size < manifest["asked_vocab_size"] == 50_000
    assert "50,000 asked" in capsys.readouterr().out


def test_a_sample_is_even_and_of_the_size_asked_for(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path]
) -> None:
    chosen = [number for number in range(1000) if is_chosen(number, 30, 100)]
    assert len(chosen) == 300
    assert {b - a for a, b in pairwise(chosen)} == {3, 4}
    whole = sum(len(text.encode()) for text in texts)
    path = train(make_corpus(texts, frame_bytes=300), sample_bytes=whole // 20)
    sample = json.loads(path.with_name("manifest.json").read_text())["sample"]
    assert 0 < sample["bytes"] < whole / 5


def test_vocab_and_merges_become_one_file(tmp_path: Path) -> None:
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: number for number, token in enumerate([*alphabet, "Ġf", "<|endoftext|>"])}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nĠ f\n")
    for path in (tmp_path, tmp_path / "vocab.json"):
        vocabulary = take(path, tmp_path / "out")
        assert (vocabulary.size, vocabulary.eod_id) == (258, 257)
    made = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    assert made.encode(" f").ids == [256]
    assert made.encode("<|endoftext|>").ids == [257]


def test_a_hugging_face_folder_may_end_documents_with_another_token(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path], tmp_path: Path
) -> None:
    content = train(make_corpus(texts)).read_text().replace("<|endoftext|>", "</s>")
    folder = tmp_path / "llama"
    folder.mkdir()
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(InputError, match=r"tokenizer\.eod"):
        take(folder, tmp_path / "out")
    (folder / "tokenizer_config.json").write_text('{"eos_token": {"content": "</s>"}}')
    (folder / "tokenizer.json").write_text(content + " ")  # another date, another size
    assert take(folder, tmp_path / "out").eod == "</s>"
    assert take(folder / "tokenizer.json", tmp_path / "named", "</s>").eod_id == 0


def test_what_is_no_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tokenizer there"):
        take(tmp_path, tmp_path / "out")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"not a tokenizer\.json"):
        take(tmp_path, tmp_path / "out")
    with pytest.raises(ConfigError, match="no corpus"):
        make_tokenizer(
            None,
            None,
            output=tmp_path / "a",
            manifest=tmp_path / "b",
            work_folder=tmp_path / "c",
            settings=Tokenizer(),
        )


def test_a_tokenizer_that_is_not_its_manifests_is_refused(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path]
) -> None:
    path = train(make_corpus(texts))
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InputError, match="run tokenizer again"):
        Vocabulary.load(path)


@pytest.mark.parametrize("other", ["{", "[]", "5", "{}"])
def test_anothers_manifest_beside_a_tokenizer_is_passed_over(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path], other: str
) -> None:
    path = train(make_corpus(texts))
    path.with_name("manifest.json").write_text(other)
    assert Vocabulary.load(path).size == 300


def test_ids_that_no_bin_can_hold_are_refused(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path]
) -> None:
    content = (
        train(make_corpus(texts))
        .read_text()
        .replace('"vocab": {', '"vocab": {"beyond": 2147483647,')
    )
    with pytest.raises(InputError, match="has the id 2,147,483,647"):
        Vocabulary.of(content.encode(), path=Path("tokenizer.json"))
