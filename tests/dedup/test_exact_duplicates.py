"""Equal texts, short texts, empty ones; and buckets that hold thousands."""

from collections import Counter

import numpy as np
import pytest
from tests.dedup.corpora import deduplicate, document, texts

from web2gpt.dedup import candidates
from web2gpt.dedup.candidates import _pairs_of, split


def test_texts_that_differ_in_case_and_space_only_are_exact_duplicates(tmp_path):
    text = texts(1, 100)[0]
    documents = [document(text, 0), document(text.upper() + "\n", 1), document(f"  {text}", 2)]
    outcome = deduplicate(tmp_path, documents)
    assert Counter(record["reason"] for record in outcome.rejected) == {"exact_duplicate": 2}
    assert len(outcome.kept) == 1


def test_documents_too_short_to_shingle_are_compared_whole(tmp_path):
    short = ["", "", "two words", "Two  words", "two other words", "one two three four five"]
    outcome = deduplicate(tmp_path, [document(text, n) for n, text in enumerate(short)])
    assert len(outcome.kept) == 4
    assert {record["reason"] for record in outcome.rejected} == {"exact_duplicate"}


def test_an_exact_copy_of_a_near_duplicate_goes_with_it(tmp_path):
    text = texts(1, 100)[0]
    documents = [document(text + " and more", 0), document(text, 1), document(text, 2)]
    outcome = deduplicate(tmp_path, documents)
    assert outcome.kept == [documents[0]["id"]]
    assert {row["kept"] for row in outcome.verdicts.values()} == {documents[0]["id"]}
    assert {record["reason"] for record in outcome.rejected} == {"near_duplicate"}


def test_a_corpus_without_duplicates_and_an_empty_one_pass(tmp_path):
    documents = [document(text, number) for number, text in enumerate(texts(20, 50))]
    outcome = deduplicate(tmp_path / "some", documents, 2)
    assert sorted(outcome.kept) == sorted(record["id"] for record in documents)
    assert all(row["similarity"] is None for row in outcome.verdicts.values())
    assert deduplicate(tmp_path / "none", [], 2).kept == []
    assert deduplicate(tmp_path / "short", [document("a", 0)], 3).kept == [document("a", 0)["id"]]


def test_thousands_of_equal_pages_make_one_text_and_no_pair(tmp_path, monkeypatch):
    pairs: list[int] = []
    count = candidates._pairs_of

    def counting(keys, ranks):
        found = count(keys, ranks)
        pairs.append(len(found))
        return found

    monkeypatch.setattr(candidates, "_pairs_of", counting)
    error = "page not found, please go back to the start page and try again"
    documents = [document(error, number) for number in range(5000)]
    documents += [document(text, 5000 + number) for number, text in enumerate(texts(10, 60))]
    outcome = deduplicate(tmp_path, documents, 2)
    assert sum(pairs) == 0
    assert len(outcome.kept) == 11


@pytest.mark.long
def test_a_hundred_thousand_equal_pages_leave_one_and_are_never_paired(tmp_path, capsys):
    error = "page not found, please go back to the start page and try again " * 3
    outcome = deduplicate(tmp_path, [document(error, number) for number in range(100_000)], 4)
    assert outcome.kept == [document(error, 0)["id"]]
    assert "dedup: 0 candidate pairs" in capsys.readouterr().out


def test_pairs_of_a_bucket_grow_linearly_and_are_all_pairs_of_a_small_one():
    def pairs_of(size: int) -> int:
        ranks = np.arange(size, dtype=np.uint32) * 3
        better, worse = split(_pairs_of(np.zeros(size, dtype=np.uint64), ranks))
        assert (better < worse).all()
        return len(np.unique(np.stack([better, worse]), axis=1).T)

    for size in range(10):
        assert pairs_of(size) == size * (size - 1) // 2
    assert pairs_of(20_000) <= 16 * 20_000


def test_thousands_of_nearly_equal_pages_leave_one(tmp_path):
    text = texts(1, 120)[0]
    documents = [document(f"{text} visitor {number:05d}", number) for number in range(3000)]
    outcome = deduplicate(tmp_path, documents, 2)
    assert len(outcome.kept) == 1


def test_a_record_without_a_sound_id_or_text_is_an_error_of_that_record(tmp_path):
    text = texts(1, 60)[0]
    bad = [
        {"text": text},
        {"id": "Z" * 32, "text": text},
        {"id": document("", 7)["id"]},
        {"id": document("", 8)["id"], "text": 5},
    ]
    outcome = deduplicate(tmp_path, [document(text, 0), *bad, document(text, 1)], 1)
    assert outcome.statistics[0].errors == {"bad_id": 2, "no_text": 2}
    assert outcome.kept == [document(text, 0)["id"]]


def test_a_second_record_of_an_id_is_left_to_merge(tmp_path):
    text = texts(1, 60)[0]
    outcome = deduplicate(tmp_path, [document(text, 0), document(text, 0), document(text, 1)], 2)
    assert outcome.kept == [document(text, 0)["id"]] * 2
