"""Which documents are removed, against similarities worked out the plain way."""

import random
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from tests.dedup.corpora import deduplicate, document, edited, jaccard, texts

from web2gpt.io.shards import Document


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str, float]]:
    """Originals, edited copies (0 to 9 of 300 words replaced), and their exact similarity."""
    draw = random.Random(7)
    result = []
    for number, original in enumerate(texts(1300, 300)):
        copy = edited(original, number % 10, draw) + " end"
        result.append((original, copy, jaccard(original, copy)))
    return result


def corpus(pairs: list[tuple[str, str, float]]) -> list[Document]:
    documents = [
        document(text, 2 * number + which)
        for number, pair in enumerate(pairs)
        for which, text in enumerate(pair[:2])
    ]
    random.Random(1).shuffle(documents)
    return documents


@pytest.fixture(scope="module")
def outcome(pairs, tmp_path_factory):
    return deduplicate(tmp_path_factory.mktemp("recall"), corpus(pairs), 3)


def test_recall_is_high_in_each_class_and_nothing_below_the_threshold_goes(pairs, outcome):
    found: dict[float, list[bool]] = defaultdict(list)
    for number, (_, _, similarity) in enumerate(pairs):
        ids = [document("", 2 * number + which)["id"] for which in (0, 1)]
        gone = any(name in outcome.removed for name in ids)
        if similarity < 0.8:
            assert not gone
        found[int(similarity * 20) / 20].append(gone)
    for low in (0.85, 0.9, 0.95):
        assert len(found[low]) >= 100
        assert sum(found[low]) / len(found[low]) >= 0.95
    assert len(found[0.75]) >= 50


def test_each_removed_document_was_verified_against_the_one_kept(outcome, pairs):
    by_id = {record["id"]: record["text"] for record in corpus(pairs)}
    assert len(outcome.removed) > 500
    for name, kept in outcome.removed.items():
        similarity = outcome.verdicts[name]["similarity"]
        assert similarity == pytest.approx(jaccard(by_id[name], by_id[kept]), abs=1e-12)
        assert similarity >= 0.8
        assert kept not in outcome.removed


def test_every_document_is_written_or_rejected_once(outcome, pairs):
    ids = [record["id"] for record in corpus(pairs)]
    assert Counter(outcome.kept) + Counter(r["id"] for r in outcome.rejected) == Counter(ids)
    assert set(outcome.verdicts) == set(ids)
    reasons = Counter(record["reason"] for record in outcome.rejected)
    assert sum((part.dropped for part in outcome.statistics), Counter()) == reasons
    for record in outcome.rejected:
        verdict = outcome.verdicts[record["id"]]
        assert (record["figure"], record["kept"]) == (verdict["similarity"], verdict["kept"])
        assert record["kept"] in outcome.kept


def test_the_longer_copy_stays(outcome, pairs):
    by_id = {record["id"]: record["text"] for record in corpus(pairs)}
    assert all(len(by_id[kept]) >= len(by_id[name]) for name, kept in outcome.removed.items())


def chain() -> list[str]:
    """Each text is similar (0.9) to the next, the ends are not (below 0.8)."""
    draw = random.Random(5)
    links = texts(1, 300, seed=9)
    for _ in range(6):
        links.append(edited(links[-1], 3, draw) + " more")
    return links


def test_star_never_removes_for_a_chain_and_components_does(tmp_path):
    links = chain()
    assert all(jaccard(one, other) > 0.85 for one, other in pairwise(links))
    assert jaccard(links[0], links[-1]) < 0.8
    documents = [document(text, number) for number, text in enumerate(links)]
    star = deduplicate(tmp_path / "star", documents)
    components = deduplicate(tmp_path / "components", documents, cluster="components")
    assert len(star.kept) > 1
    assert len(components.kept) == 1
    assert len({row["cluster"] for row in star.verdicts.values()}) == 1
    lengths = {record["id"]: len(record["text"]) for record in documents}
    assert components.kept == [max(lengths, key=lambda name: lengths[name])]
    last = components.verdicts[documents[0]["id"]]
    assert last["similarity"] == pytest.approx(jaccard(links[0], links[-1]))


def test_estimates_decide_when_asked_to(tmp_path, pairs):
    some = corpus(pairs[:150])
    estimated = deduplicate(tmp_path, some, verify="estimate")
    by_id = {record["id"]: record["text"] for record in some}
    assert len(estimated.removed) > 60
    for name, kept in estimated.removed.items():
        similarity = float(str(estimated.verdicts[name]["similarity"]))
        assert similarity * 128 == pytest.approx(round(similarity * 128))
        assert abs(similarity - jaccard(by_id[name], by_id[kept])) < 0.2


@pytest.mark.parametrize("form", ["min", "max"])
def test_other_forms_of_similarity_divide_by_one_side(tmp_path, form):
    original = texts(1, 300)[0]
    part = " ".join(original.split()[:285])
    outcome = deduplicate(
        tmp_path, [document(original, 0), document(part, 1)], jaccard=form, threshold=0.9
    )
    expected = {"min": 1.0, "max": 281 / 296}[form]
    (similarity,) = [row["similarity"] for row in outcome.verdicts.values() if row["similarity"]]
    assert similarity == pytest.approx(expected)


def test_character_shingles_find_copies_in_text_without_spaces(tmp_path):
    draw = random.Random(2)
    text = "".join(chr(draw.randrange(0x4E00, 0x5E00)) for _ in range(400))
    copy = text[:200] + "新" + text[201:]
    documents = [document(text, 0), document(copy, 1)]
    assert not deduplicate(tmp_path / "words", documents).removed
    assert len(deduplicate(tmp_path / "characters", documents, shingle="characters").removed) == 1
