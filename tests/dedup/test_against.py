"""New documents against those of earlier runs."""

import random
import shutil

import pytest
from tests.dedup.corpora import deduplicate, document, edited, jaccard, texts

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.bands import Bands
from web2gpt.errors import InputError


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """An earlier run over 40 originals, some with a copy that it removed."""
    folder = tmp_path_factory.mktemp("earlier")
    draw = random.Random(3)
    originals = texts(40, 200)
    copies = [edited(text, 2, draw) for text in originals[:10]]
    documents = [document(text, number) for number, text in enumerate([*originals, *copies])]
    outcome = deduplicate(folder, documents, 3)
    assert len(outcome.removed) == 10
    return folder, documents


@pytest.fixture(scope="module")
def fresh(earlier):
    """Copies of originals (exact; 1 to 4 words changed), a pair of new ones, and new text."""
    draw = random.Random(4)
    originals = [record["text"] for record in earlier[1][10:40]]
    found = [*originals[:5], *(edited(text, 1 + n % 4, draw) for n, text in enumerate(originals))]
    found += texts(5, 200, seed=8)
    found.append(f"{found[-1]} end")
    return [document(text, 1000 + number) for number, text in enumerate(found)]


def against(folder, *, exactly: bool) -> dict[str, tuple[str, ...]]:
    settings = {"against": (str(folder / "signatures"),)}
    if exactly:
        settings["against_documents"] = (str(folder / "documents"),)
    return settings


def test_a_copy_of_an_earlier_document_goes_and_is_verified_exactly(tmp_path, earlier, fresh):
    outcome = deduplicate(tmp_path, fresh, 2, **against(earlier[0], exactly=True))
    old = {record["id"]: record["text"] for record in earlier[1]}
    new = {record["id"]: record["text"] for record in fresh}
    assert set(outcome.verdicts) == set(new)
    gone = {name: kept for name, kept in outcome.removed.items() if kept in old}
    for name, kept in gone.items():
        assert outcome.verdicts[name]["similarity"] == pytest.approx(jaccard(new[name], old[kept]))
    expected = {
        name for name, text in new.items() if any(jaccard(text, one) >= 0.8 for one in old.values())
    }
    assert len(expected) > 25
    assert set(gone) <= expected
    assert len(expected - set(gone)) <= 2  # by chance no bucket is shared
    assert set(outcome.removed) - set(gone) == {fresh[-2]["id"]}  # among the new ones: the shorter


def test_without_the_documents_the_estimate_decides_and_its_error_is_told(
    tmp_path, earlier, fresh, capsys
):
    outcome = deduplicate(tmp_path, fresh, 2, **against(earlier[0], exactly=False))
    assert "by the signatures' estimate, of standard error 0.035 at 0.8" in capsys.readouterr().out
    old = {record["id"] for record in earlier[1]}
    estimated = [row for row in outcome.verdicts.values() if row["kept"] in old]
    seen = {record["id"] for record in earlier[1][10:15]}  # whose text a new document has too
    near = [row for row in estimated if row["kept"] not in seen]
    assert len(near) > 20
    assert all(float(row["similarity"]) * 128 % 1 == 0 for row in near)
    assert sum(row["reason"] == "exact_duplicate" for row in estimated) == 5
    (pair,) = [
        row for row in outcome.verdicts.values() if row["kept"] == fresh[-1]["id"] != row["id"]
    ]
    assert float(pair["similarity"]) * 128 % 1 != 0  # both are new: exact


def test_what_the_earlier_run_removed_counts_no_more(tmp_path, earlier):
    folder, documents = earlier
    removed, kept = documents[0], documents[40]  # the longer stayed
    again = [document(removed["text"], 2000)]
    settings = {**against(folder, exactly=True), "threshold": 0.98}
    assert len(removed["text"]) < len(kept["text"])
    assert jaccard(removed["text"], kept["text"]) < 0.98
    assert deduplicate(tmp_path / "a", again, 1, **settings).kept == [again[0]["id"]]
    alone = tmp_path / "alone" / "signatures"
    shutil.copytree(folder / "signatures", alone)  # no clusters.parquet beside it
    assert not deduplicate(tmp_path / "b", again, 1, **{**settings, "against": (str(alone),)}).kept


def test_other_verdicts_of_the_earlier_run_are_seen_in_the_same_work_folder(tmp_path, earlier):
    folder = tmp_path / "earlier"
    shutil.copytree(earlier[0], folder)
    again = [document(earlier[1][0]["text"], 2000)]
    settings = {**against(folder, exactly=True), "threshold": 0.98}
    assert deduplicate(tmp_path / "run", again, 1, **settings).kept
    (folder / "clusters.parquet").unlink()
    assert not deduplicate(tmp_path / "run", again, 1, **settings).kept


def test_a_page_fetched_again_is_a_copy_of_itself(tmp_path, earlier):
    same = earlier[1][20]
    changed = {**earlier[1][21], "text": texts(1, 200, seed=12)[0]}
    outcome = deduplicate(tmp_path, [same, changed], 2, **against(earlier[0], exactly=True))
    assert outcome.kept == [changed["id"]]
    assert [record["reason"] for record in outcome.rejected] == ["exact_duplicate"]


def test_components_join_new_documents_to_earlier_ones(tmp_path, earlier, fresh):
    settings = {**against(earlier[0], exactly=True), "cluster": "components"}
    outcome = deduplicate(tmp_path, fresh, 2, **settings)
    old = {record["id"] for record in earlier[1]}
    assert sum(kept in old for kept in outcome.removed.values()) > 25


def test_a_folder_without_signatures_or_with_others_is_refused(tmp_path, earlier, fresh):
    with pytest.raises(InputError, match="no signature files"):
        deduplicate(tmp_path / "a", fresh, 1, against=(str(tmp_path),))
    with pytest.raises(InputError, match="other settings"):
        deduplicate(tmp_path / "b", fresh, 1, ngram=3, **against(earlier[0], exactly=False))


def test_a_run_against_an_earlier_one_keeps_the_same_for_any_shards(tmp_path, earlier, fresh):
    settings = against(earlier[0], exactly=True)
    one = deduplicate(tmp_path / "1", fresh, 1, **settings)
    four = deduplicate(tmp_path / "4", fresh[::-1], 4, jobs=3, **settings)
    assert one.clusters == four.clusters
    assert Bands.of(Dedup()).count > 3
