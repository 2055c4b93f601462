"""Text to ids."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from web2gpt.errors import InputError
from web2gpt.tokens.encoder import Encoder, with_eod
from web2gpt.tokens.vocabulary import Vocabulary

HOSTILE = [
    "<|endoftext|>",
    "a<|endoftext|>b <|endoftext|>",
    "",
    " ",
    "\n\n\n\t x",
    "é́ ﷽ 👩‍👩‍👧 \U0010ffff \x00",
    "a" * 5000,
    "1234567890" * 50,
    "don't we'll I'M",
]


@pytest.fixture
def tokenizer(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path]
) -> Path:
    return train(make_corpus(texts))


def test_ids_are_those_of_tokenizers(tokenizer: Path, texts: list[str]) -> None:
    vocabulary = Vocabulary.load(tokenizer)
    encoder = Encoder(tokenizer, vocabulary)
    assert encoder.name == "fastokens"
    ids, offsets = encoder.encode([*texts, *HOSTILE])
    independent = tokenizers.Tokenizer.from_file(str(tokenizer))
    independent.encode_special_tokens = True
    for number, text in enumerate([*texts, *HOSTILE]):
        expected = independent.encode(text, add_special_tokens=False).ids
        assert ids[offsets[number] : offsets[number + 1]].tolist() == expected
    encoder.check([*texts, *HOSTILE])


def test_added_tokens_of_plain_text_are_left_to_tokenizers(
    tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tokenizers.Tokenizer.from_file(str(tokenizer))
    made.add_tokens(["  ", "naïve"])
    made.save(str(tokenizer))
    tokenizer.with_name("manifest.json").unlink()
    encoder = Encoder(tokenizer, Vocabulary.load(tokenizer))
    assert encoder.name == "tokenizers"
    assert "without fastokens (added tokens that are plain text)" in capsys.readouterr().err
    assert encoder.encode(["so naïve  "])[0][-2:].tolist() == [301, 300]


def test_a_tokenizer_that_cannot_encode_every_text_stops_the_run(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    model = tokenizers.models.WordLevel({"known": 0, "<|endoftext|>": 1}, unk_token="[UNK]")
    tokenizers.Tokenizer(model).save(str(path))
    with pytest.raises(InputError, match="cannot encode every text"):
        Encoder(path, Vocabulary.load(path)).encode(["unknown"])


def test_end_of_text_written_in_a_text_is_text(
    tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary = Vocabulary.load(tokenizer)
    decode = tokenizers.Tokenizer.from_file(str(tokenizer)).decode
    for name in ("fastokens", "tokenizers"):
        encoder = Encoder(tokenizer, vocabulary)
        assert encoder.name == name
        ids, _ = encoder.encode(["x<|endoftext|>y"])
        assert vocabulary.eod_id not in ids
        assert decode(ids.tolist(), skip_special_tokens=False) == "x<|endoftext|>y"
        monkeypatch.setitem(sys.modules, "fastokens", None)


def test_a_difference_stops_the_run_with_the_text(
    tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(1, len(texts) + 1, dtype=np.uint32), np.arange(len(texts) + 1)

    monkeypatch.setattr("web2gpt.tokens.encoder.fast_encoder", lambda content: wrong)
    with pytest.raises(InputError, match="differ on 'some words'"):
        Encoder(tokenizer, Vocabulary.load(tokenizer)).check(["some words"])


def test_a_text_that_yields_the_end_of_document_id_stops_the_run(
    tokenizer: Path, tmp_path: Path
) -> None:
    content = tokenizer.read_bytes()
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "tokenizer.json"
    other.write_bytes(content)
    vocabulary = Vocabulary.of(content, "x", path=other)
    with pytest.raises(InputError, match="fox"):
        Encoder(other, vocabulary).encode(["quick", "the fox x"])


def test_each_document_gets_its_end() -> None:
    ids, offsets = np.array([5, 6, 7, 8], np.uint32), np.array([0, 3, 3, 4])
    together, lengths = with_eod(ids, offsets, 9, np.dtype("<u2"))
    assert together.tolist() == [5, 6, 7, 9, 9, 8, 9]
    assert lengths.tolist() == [4, 1, 2]
    plain, lengths = with_eod(ids, offsets, None, np.dtype("<i4"))
    assert (plain.tolist(), lengths.tolist()) == ([5, 6, 7, 8], [3, 0, 1])


def test_two_bytes_an_id_only_below_megatrons_bound() -> None:
    sizes = {size: Vocabulary(size, "", 0, {}, "").dtype for size in (50257, 65499, 65500, 65536)}
    assert [dtype.name for dtype in sizes.values()] == ["uint16", "uint16", "int32", "int32"]
