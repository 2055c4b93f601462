"""Batched shingle hashes against their definition, one shingle at a time."""

import random

import numpy as np
import pytest
from tests.dedup.corpora import texts

from web2gpt.dedup import shingles, text
from web2gpt.dedup.shingles import Shingler, hash64_of
from web2gpt.dedup.text import normalise


def strange_texts(count: int) -> list[str]:
    """Short words of one to four bytes a character, from none to forty of them."""
    draw = random.Random(3)
    alphabet = "abcé漢😀\u0301 "
    return [
        normalise("".join(draw.choice(alphabet) for _ in range(draw.randint(0, 900))))
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", ["words", "characters"])
@pytest.mark.parametrize("ngram", [1, 2, 5, 13])
def test_hashes_are_those_of_each_shingle_by_itself(kind, ngram):
    shingler = Shingler(kind, ngram)
    normalised = [*strange_texts(50), *texts(20, 90), "", "a", "a b", "漢"]
    hashes, counts = shingler.hash_all([normalise(text) for text in normalised])
    expected = [shingler.shingles_of(normalise(text)) for text in normalised]
    assert counts.tolist() == [len(found) for found in expected]
    assert hashes.tolist() == [hash64_of(s) for found in expected for s in found]


@pytest.mark.parametrize("kind", ["words", "characters"])
@pytest.mark.parametrize("ngram", [1, 5])
def test_a_text_cut_into_pieces_has_the_same_shingles(kind, ngram, monkeypatch):
    shingler = Shingler(kind, ngram)
    normalised = [normalise(text) for text in [*strange_texts(30), *texts(10, 200)]]
    whole, counts = shingler.hash_all(normalised)
    monkeypatch.setattr(shingles, "LONG", 400)
    monkeypatch.setattr(shingles, "BATCH", 500)
    pieces, piece_counts = shingler.hash_all(normalised)
    assert np.array_equal(whole, pieces)
    assert np.array_equal(counts, piece_counts)


def test_no_two_shingles_of_real_text_have_one_hash():
    shingler = Shingler("words", 5)
    normalised = [normalise(text) for text in texts(200, 400)]
    hashes, _ = shingler.hash_all(normalised)
    distinct = {shingle for text in normalised for shingle in shingler.shingles_of(text)}
    assert len(np.unique(hashes)) == len(distinct)
    assert len(distinct) > 50_000


def test_normalising_ignores_case_white_space_and_compatibility_forms():
    assert normalise("  The\u00a0QUICK\r\n\t ﬁre ") == normalise("the quick fire")
    assert normalise("cafe\u0301") == normalise("café")
    every = "".join(chr(code) * 3 + "A" for code in range(128))
    assert normalise(every) == " ".join(every.lower().split())
    assert normalise(f"{every} é") == f"{normalise(every)} é"
    assert normalise("a b") != normalise("ab")


def test_giant_words_of_long_texts_are_cut_and_runs_of_marks_do_not_stall(monkeypatch):
    monkeypatch.setattr(text, "LONG", 100)
    monkeypatch.setattr(text, "LONGEST_WORD", 30)
    assert max(map(len, normalise("x" * 500).split(" "))) == 30
    marks = "a" + "\u0301\u0316" * 50_000
    assert len(normalise(marks).replace(" ", "")) >= 100_000
