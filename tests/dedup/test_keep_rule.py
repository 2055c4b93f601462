"""Which of several copies stays."""

from tests.dedup.corpora import deduplicate, document, texts

from web2gpt.dedup.merits import seconds_of

TEXT = texts(1, 80)[0]


def survivor(folder, documents, **settings):
    outcome = deduplicate(folder, documents, 2, **settings)
    assert len(outcome.kept) == 1
    return next(d for d in documents if d["id"] == outcome.kept[0])


def test_the_longest_stays_then_the_first_url(tmp_path):
    longest = document(TEXT + "  \n", 9)
    documents = [document(TEXT, 1), longest, document(TEXT, 2)]
    assert survivor(tmp_path / "a", documents) == longest
    assert survivor(tmp_path / "b", [document(TEXT, n) for n in (3, 2, 4)])["url"].endswith("2")


def test_a_copy_that_ftfy_would_change_ranks_last(tmp_path):
    damaged = document(TEXT + " schÃ¶n and long", 1)
    sound = document(TEXT + " schön", 2)
    assert len(damaged["text"]) > len(sound["text"])
    assert survivor(tmp_path, [damaged, sound], threshold=0.7) == sound


def test_a_copy_below_the_minimum_length_ranks_last(tmp_path):
    documents = [
        document(TEXT, 1, crawled="2001-01-01"),
        document(TEXT + " x" * 3, 2, crawled="2009"),
    ]
    settings = {"keep": "oldest", "min_characters": len(TEXT) + 1, "threshold": 0.7}
    assert survivor(tmp_path, documents, **settings) == documents[1]


def test_the_oldest_stays_and_unknown_dates_are_the_youngest(tmp_path):
    documents = [
        document(TEXT + " and much more", 1),
        document(TEXT, 2, crawled="2020-05-01T12:00:00+02:00"),
        document(TEXT, 3, crawled="2020-05-01T11:00:00Z"),
    ]
    assert survivor(tmp_path, documents, keep="oldest", threshold=0.7) == documents[1]


def test_the_highest_priority_stays(tmp_path):
    documents = [
        document(TEXT, 1, rank=1),
        document(TEXT, 2, rank=2.5),
        document(TEXT + " and more", 3, rank="high"),
        document(TEXT + " and more", 4),
    ]
    settings = {"keep": "priority", "priority_field": "rank", "threshold": 0.7}
    assert survivor(tmp_path, documents, **settings) == documents[1]


def test_dates_are_read_as_iso_8601_in_utc():
    assert seconds_of("1970-01-02") == 86400
    assert seconds_of("1970-01-01T01:00:00+01:00") == 0
    assert seconds_of(12.7) == 12
    for strange in ("yesterday", None, True, "9999-99-99", [1], 1e300, float("inf")):
        assert seconds_of(strange) is None
