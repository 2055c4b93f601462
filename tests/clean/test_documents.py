"""Which documents stay, which go and why, with the figures that the report shows."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from web2gpt.clean.marks import FIRST, LAST, MOST, is_mark, longest_run

ENGLISH = (
    "The river ran through the valley, and the people who lived beside it built their mills "
    "where the water was quick. In winter the ice held the wheels and nobody worked. "
)
GERMAN = (
    "Der Fluss lief durch das Tal, und die Leute bauten ihre Mühlen, wo das Wasser schnell war. "
)


def document(number: int, text: str) -> dict[str, Any]:
    return {
        "id": f"{number:032x}",
        "url": f"http://a.example/{number}",
        "text": text,
        "source": "s",
    }


MIXED = [
    document(1, ENGLISH * 5),
    document(2, GERMAN * 8),
    document(3, "12345 67890 " * 60),
    document(4, ENGLISH),
    document(5, "Please enable JavaScript to see this page of ours. " * 4),
    document(6, ENGLISH * 4 + "It isnâ€™t always so."),
    document(7, "The  wide   gaps   close. \n\n\n\n" + ENGLISH * 5),
]


def test_each_document_meets_its_rule(run_stage: Any) -> None:
    found = run_stage(["clean"], MIXED, "--min-tokens", "45")
    reasons = {record["url"][-1]: (record["reason"], record["figure"]) for record in found.rejected}
    assert reasons["2"][0] == "language"
    assert str(reasons["2"][1]).startswith("de ")
    assert reasons["3"] == ("language", "none")
    assert reasons["4"] == ("short", len(ENGLISH.strip()) // 4)
    assert reasons["5"] == ("javascript", 203)
    assert [kept["url"][-1] for kept in found.documents] == ["1", "6", "7"]
    assert found.documents[1]["text"].endswith("It isn't always so.")
    assert found.documents[2]["text"].startswith("The wide gaps close.\n\nThe river")


def test_statistics_add_up_and_say_how_length_was_judged(run_stage: Any) -> None:
    stats = run_stage(["clean"], MIXED, "--min-tokens", "45").stats
    assert (stats["in"], stats["kept"], stats["out"]) == (7, 3, 3)
    assert stats["dropped"] == {"javascript": 1, "language": 2, "short": 1}
    figures = stats["figures"]
    assert figures["fixed"] == 1
    assert figures["short_characters"] == len(ENGLISH.strip())
    assert figures["judged_by_bytes"] == 4  # three went before, for language and script
    assert "judged_by_tokenizer" not in figures


def test_language_and_probability_are_stored(run_stage: Any) -> None:
    kept = run_stage(["clean"], MIXED, "--languages", "de").documents
    assert [(one["language"], one["language_probability"] > 0.99) for one in kept] == [("de", True)]


def test_all_languages_stay_if_none_is_named(run_stage: Any) -> None:
    found = run_stage(["clean"], MIXED, "--settings", '{"languages": [], "min_tokens": 0}')
    assert found.stats["dropped"] == {"javascript": 1}


def test_characters_rule(run_stage: Any) -> None:
    flags = ("--min-tokens", "0", "--min-characters", "100", "--max-characters", "300")
    found = run_stage(["clean"], [document(1, ENGLISH), document(2, ENGLISH * 9)], *flags)
    assert [record["figure"] for record in found.rejected] == [len((ENGLISH * 9).strip())]


def test_tokens_are_counted_with_a_given_tokenizer(run_stage: Any, tmp_path: Path) -> None:
    words = {word: number for number, word in enumerate(["[UNK]", "river", "the"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    length = len(ENGLISH.split())
    flags = ("--token-counter", str(tmp_path / "tokenizer.json"), "--min-tokens")
    assert len(run_stage(["clean"], [document(1, ENGLISH)], *flags, str(length)).documents) == 1
    found = run_stage(["clean"], [document(1, ENGLISH)], *flags, str(length + 1))
    assert found.rejected[0]["figure"] == length
    assert found.stats["figures"]["judged_by_tokenizer"] == 1


def test_same_bytes_without_the_fast_substitutes(
    run_stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = run_stage(["clean"], MIXED, "--min-tokens", "45").files
    monkeypatch.setitem(sys.modules, "langdetect_rs", None)
    assert run_stage(["clean"], MIXED, "--min-tokens", "45").files == fast


def test_a_row_of_marks_without_end_costs_its_document_no_time(run_stage: Any) -> None:
    marks = "\u0301\u0327" * 200_000  # sorting them would take hours
    found = run_stage(["clean"], [{"id": "1" * 32, "url": None, "text": f"a{marks}"}, MIXED[0]])
    assert found.stats["dropped"] == {"combining_marks": 1}
    assert found.rejected[0]["figure"] == len(marks)


def test_no_mark_is_forgotten_and_writing_with_many_of_them_is_left_alone() -> None:
    everywhere = set(filter(is_mark, map(chr, range(0x80, sys.maxunicode + 1))))
    assert everywhere == set(filter(is_mark, map(chr, range(FIRST, LAST))))
    assert longest_run("e\u0301\u0327" * 5000) == 0
    assert longest_run("a" + "\u0301" * MOST) == 0
    assert longest_run("a" + "\uff9e\u0f73" * MOST) == 2 * MOST


def test_a_document_without_text_is_an_error_of_its_own(run_stage: Any) -> None:
    found = run_stage(["clean"], [{"id": "1" * 32, "url": None}, MIXED[0]])
    assert found.stats["errors"] == {"no_text": 1}
    assert len(found.documents) == 1
