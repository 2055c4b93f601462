"""The rules that are off by default: figures worked by hand, reasons and sums in the statistics.

Against datatrove itself: tests/peers/test_clean_datatrove.py.
"""

from typing import Any

import pytest

from web2gpt.clean.gopher import judge_quality, judge_repetition
from web2gpt.clean.line_rules import c4_lines, judge_fineweb
from web2gpt.clean.mask import masker
from web2gpt.clean.words import count_sentences, word_splitter
from web2gpt.config.clean import C4, FineWeb, GopherQuality, GopherRepetition, Mask

SPLIT = word_splitter("simple")
PROSE = (
    "The mill stood by the river, and people had to be there with the first light of day. "
    "It wasn't easy to have that much grain, but the miller knew what he wanted. "
)


def test_words_are_found_as_a_reader_would() -> None:
    assert SPLIT("Don't pay $3,000.50 (it's U.S. money)... well-known!") == [
        "Do", "n't", "pay", "$", "3,000.50", "(", "it", "'s", "U.S.", "money", ")", "...",
        "well", "-", "known", "!"]  # fmt: skip
    assert SPLIT("") == []


def test_sentences_begin_after_a_mark() -> None:
    for text, count in {
        "": 0,
        "a": 1,
        "A b. C d! E": 3,
        'He said: "No." Then?': 2,
        "...": 1,
    }.items():
        assert count_sentences(SPLIT(text)) == count, text


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        (PROSE * 3, None),
        ("", ("few_words", 0)),
        ("only four words here!", ("few_words", 4)),
        ("a b c d e " * 20, ("word_length", 1.0)),
        (PROSE * 3 + "# " * 30, ("symbols", 30 / 144)),
        ("- the words of it\n" * 20, ("bullets", 1.0)),
        (("the words of it " * 10 + "...\n") * 5 + PROSE * 2, ("ellipses", 5 / 6)),
        (PROSE + "1234 " * 60, ("alphabetic", 34 / 98)),
        ("mill river people miller grain " * 20, ("stop_words", 0)),
    ],
)
def test_quality_rules_of_gopher(text: str, broken: tuple[str, float] | None) -> None:
    assert judge_quality(text, SPLIT, GopherQuality(enabled=True)) == pytest.approx(broken)


def test_repetition_rules_of_gopher() -> None:
    rules = GopherRepetition(enabled=True)
    assert judge_repetition("", SPLIT, rules) is None
    assert judge_repetition(PROSE, SPLIT, rules) is None
    text = "one\n\ntwo\n\none\n\none"
    assert judge_repetition(text, SPLIT, rules) == ("duplicate_paragraphs", 0.5)
    lax = rules.model_copy(update={"duplicate_paragraphs": 1, "duplicate_lines": 1})
    assert judge_repetition(text, SPLIT, lax) == ("duplicate_paragraph_characters", 6 / len(text))
    words = "a b " * 10 + PROSE
    assert judge_repetition(words, SPLIT, rules.model_copy(update={"top_2_gram": 0.1})) == (
        "top_2_gram", 3 * 10 / len(words))  # fmt: skip
    sentence = "six small words in a row "
    twice = sentence + PROSE + sentence
    strict = rules.model_copy(update={"duplicate_6_grams": 0, "top_4_gram": 1})
    assert judge_repetition(twice, SPLIT, strict) == (
        "duplicate_6_grams", 19 / len(twice))  # fmt: skip


def test_c4_leaves_lines_out_and_drops_documents() -> None:
    rules = C4(enabled=True, min_sentences=2)
    text = (
        "Menu\nThis line stays [1] as it is. \nThis line has no end\nToo short.\n"
        "We use cookies on this page.\nPlease enable JavaScript here.\nThis goes on...\n"
        + "x" * 1001
        + " is a long word.\nIt stays as well!"
    )
    assert c4_lines(text, SPLIT, rules) == "This line stays  as it is.\nIt stays as well!"
    assert c4_lines(text, SPLIT, C4(enabled=True)) == ("few_sentences", 2)
    assert c4_lines("Lorem ipsum dolor sit.", SPLIT, rules) == ("lorem_ipsum", 0)
    assert c4_lines("It stays here.\nThis is { code.", SPLIT, rules) == ("curly_bracket", 1)


def test_fineweb_judges_lines() -> None:
    rules = FineWeb(enabled=True)
    line = "A line of more than thirty characters, every time"
    assert judge_fineweb("\n".join(f"{line} {n}." for n in range(9)), SPLIT, rules) is None
    assert judge_fineweb(" \n", SPLIT, rules) == ("empty", 0)
    assert judge_fineweb("\n".join([line] * 8 + [line + "."]), SPLIT, rules) == (
        "punctuated", 1 / 9)  # fmt: skip
    assert judge_fineweb("Short.\n" * 3 + line, SPLIT, rules) == ("short_lines", 0.75)
    assert judge_fineweb(f"{line}.\n{line}.", SPLIT, rules) == ("duplicates", 0.5)
    wide = "\n\n\n".join(f"{line.replace(' ', '')}{n}." for n in range(3))
    assert judge_fineweb(wide, SPLIT, rules) == ("line_breaks", 6 / 12)


def test_masks() -> None:
    mask = masker(Mask(emails=True, ips=True))
    assert mask is not None
    assert mask("Ask a.b+c@d.example. or @e, f@g; 8.8.8.8 10.0.0.1 1.2.3") == (
        "Ask email@example.com. or @e, f@g; 192.0.2.1 10.0.0.1 1.2.3", 2)  # fmt: skip
    everything = masker(Mask(ips=True, public_ips_only=False, ip="IP"))
    assert everything is not None
    assert everything("a@b.example 10.0.0.1") == ("a@b.example IP", 1)
    assert masker(Mask()) is None


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["@" * 10**6, "a-" * 300_000 + "@", "a@" * 300_000, "1." * 300_000]
)
def test_masks_take_linear_time(text: str) -> None:
    mask = masker(Mask(emails=True, ips=True))
    assert mask is not None
    mask(text)


def test_reasons_figures_and_sums_of_the_stage(run_stage: Any) -> None:
    texts = (
        PROSE * 2 + "Write to a@b.example.",
        "mill river people miller grain " * 20,
        PROSE * 2 + "\nMenu",
        "the words of\n" * 60,
    )
    documents = [{"id": f"{n:032x}", "url": None, "text": text} for n, text in enumerate(texts)]
    flags = ("--gopher-quality.enabled", "--gopher-repetition.enabled", "--c4.enabled",
             "--c4.min-sentences", "4", "--mask.emails", "--min-tokens", "0",
             "--gopher-repetition.duplicate-5-grams", "1")  # fmt: skip
    lax = [word for n in range(5, 11) for word in (f"--gopher-repetition.duplicate-{n}-grams", "1")]
    lax += ["--gopher-repetition.top-2-gram", "0.9", "--gopher-repetition.top-3-gram", "0.9",
            "--gopher-repetition.top-4-gram", "0.9"]  # fmt: skip
    found = run_stage(["clean"], documents, *flags, *lax, "--settings", '{"languages": []}')
    assert [(bad["reason"], bad["figure"]) for bad in found.rejected] == [
        ("gopher_quality", "stop_words 0"),
        ("gopher_repetition", "duplicate_lines 0.9833"),
    ]
    first, third = found.documents
    assert first["text"].endswith("Write to email@example.com.")
    assert third["text"] == (PROSE * 2).strip()
    figures = found.stats["figures"]
    assert figures["masked"] == 1
    assert figures["gopher_quality_characters"] == len(texts[1].strip())
