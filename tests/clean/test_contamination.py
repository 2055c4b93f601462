"""Evaluation text is found wherever it stands and cut out to the sentence, compared with a plain
search word by word; common phrases stay."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from web2gpt.clean.contamination import add_counts, count_ngrams, cut, spans_of
from web2gpt.clean.evaluation_sets import evaluation_ngrams
from web2gpt.clean.folded_words import folded_words, word_spans
from web2gpt.clean.ngrams import NgramFinder
from web2gpt.cli import app
from web2gpt.config.clean import Decontaminate
from web2gpt.errors import InputError
from web2gpt.io.shards import JsonlWriter
from web2gpt.web.ids import document_id

QUESTION = (
    "which of the seven brothers carried the heavy stone bridge over the mountain last winter"
)
FILLER = "Nothing in this sentence is of any importance to anybody at all. "


def settings(**values: Any) -> Decontaminate:
    return Decontaminate(**values)


def plain_search(text: str, ngrams: set[tuple[str, ...]]) -> list[tuple[int, int]]:
    """Every place of every n-gram, by trying each at each word."""
    found = [(match.group().casefold(), match.span()) for match in re.finditer(r"\w+", text)]
    words = [word for word, _ in found]
    return [
        (found[start][1][0], found[start + len(ngram) - 1][1][1])
        for start in range(len(words))
        for ngram in sorted(ngrams, key=len)
        if tuple(words[start : start + len(ngram)]) == ngram
    ]


@pytest.mark.parametrize("seed", range(5))
def test_finder_finds_what_a_plain_search_finds(seed: int) -> None:
    draw = random.Random(seed)
    words = ["a", "B", "straße", "STRASSE", "İx", "ΣΑΣ", "σας", "_", "7", "ﬁn"]
    text = "".join(draw.choice(words) + draw.choice([" ", ", ", "\n", "! "]) for _ in range(400))
    folded = folded_words(text)
    starts = [(draw.randrange(380), draw.choice([2, 3, 5])) for _ in range(12)]
    ngrams = {tuple(folded[start : start + n]) for start, n in starts}
    spans = spans_of(text, NgramFinder(ngrams).find(folded_words(text)))
    assert spans == plain_search(text, ngrams)
    assert spans


def test_places_are_those_of_the_original_text_where_folding_changes_lengths() -> None:
    text = "Die İstanbuler Straße ﬂießt. ẞ " * 3 + "one two three"
    assert len(text.casefold()) != len(text)
    finder = NgramFinder([("one", "two", "three")])
    (span,) = spans_of(text, finder.find(folded_words(text)))
    assert text[slice(*span)] == "one two three"


def test_words_and_their_places_agree() -> None:
    text = "Ä ö\u0301 İ_1 ǅ\nﬃ x²"
    assert [text[a:b].casefold() for a, b in word_spans(text)] == folded_words(text)
    assert folded_words("") == []
    assert folded_words("...") == []


def test_ngrams_of_long_short_and_very_short_texts(tmp_path: Path) -> None:
    records = (
        {"question": "q " * 7, "deep": [{"answer": "w1 w2 w3 w4 w5 w6 w7 W8"}]},
        {"passage": " ".join(f"p{n}" for n in range(15))},
    )
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(map(orjson.dumps, records)))
    (tmp_path / "b.txt").write_text("w1 w2 w3\nw4 w5 w6 w7 w8\n\nshort\n")
    against = (str(tmp_path / "a.jsonl"), str(tmp_path / "b.txt"))
    found = evaluation_ngrams(settings(against=against))
    assert found == {
        tuple(f"w{n}" for n in range(1, 9)): list(against),
        **{tuple(f"p{n}" for n in range(s, s + 13)): [against[0]] for s in range(3)},
    }


def test_an_evaluation_set_as_deep_as_json_may_be_is_read(tmp_path: Path) -> None:
    text = " ".join(f"w{n}" for n in range(8))
    (tmp_path / "a.jsonl").write_text(f'{{"x": {"[" * 1000}"{text}"{"]" * 1000}}}')
    found = evaluation_ngrams(settings(against=(str(tmp_path / "a.jsonl"),)))
    assert list(found) == [tuple(text.split())]


@pytest.mark.parametrize("content", ["too short\n", "word", "", "\n\n", "\ufeff"])
def test_an_evaluation_set_without_ngrams_is_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(InputError, match=r"a\.txt: no text of 8 words"):
        evaluation_ngrams(settings(against=(str(tmp_path / "a.txt"),)))


def test_a_line_that_cannot_be_read_costs_itself_when_counting(tmp_path: Path) -> None:
    path = tmp_path / "shard.jsonl"
    path.write_text('{"text": "1 2 3 4 5 6 7 8"}\nnot json\n{"text": "1 2 3 4 5 6 7 8"}\n')
    (tmp_path / "a.txt").write_text("1 2 3 4 5 6 7 8")
    (tmp_path / "work").mkdir()
    against = settings(against=(str(tmp_path / "a.txt"),))
    assert count_ngrams([path], against, tmp_path / "work")["count"].to_pylist() == [2]


def test_cut_reaches_the_margin_and_on_to_the_sentence_ends() -> None:
    text = "Aaa bbb. Ccc ddd eee! Fff MATCH ggg. Hhh iii? Jjj kkk."
    start = text.index("MATCH")
    rules = settings(margin=8, min_characters=1)
    assert cut(text, [(start, start + 5)], rules) == ["Aaa bbb.", "Jjj kkk."]
    assert cut(text, [(start, start + 5)], settings(margin=0, min_characters=1)) == [
        "Aaa bbb. Ccc ddd eee!", "Hhh iii? Jjj kkk."]  # fmt: skip
    assert cut(text, [(0, 3), (len(text) - 3, len(text))], rules) == ["Fff MATCH ggg."]
    both = [(start, start + 5), (start, start + 12)]
    assert cut(text, both, settings(margin=0, min_characters=1)) == [
        "Aaa bbb. Ccc ddd eee!", "Jjj kkk."]  # fmt: skip


def test_short_pieces_are_left_out() -> None:
    text = "Short one. " + "MATCH. " + FILLER * 4
    start = text.index("MATCH")
    pieces = cut(text, [(start, start + 5)], settings(margin=0, min_characters=20))
    assert pieces == [(FILLER * 4).strip()]


def count(tmp_path: Path, documents: list[dict[str, Any]], against: Path) -> Path:
    with JsonlWriter(tmp_path / "all.jsonl.zst") as writer:
        for document in documents:
            writer.write(document)
    output = tmp_path / "ngrams.parquet"
    files = {"documents": tmp_path / "all.jsonl.zst", "against": against, "output": output}
    flags = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    arguments = ["decontaminate", "count", *flags, "--work", str(tmp_path / "work")]
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    return output


def document(number: int, text: str) -> dict[str, Any]:
    return {"id": f"{number:032x}", "url": None, "text": text, "source": "s", "title": "t"}


def test_both_passes_over_a_corpus(tmp_path: Path, run_stage: Any) -> None:
    phrase = "all rights reserved by the owners of this page and their lawful heirs forever after"
    against = tmp_path / "set.jsonl"
    against.write_bytes(b"\n".join(orjson.dumps({"text": text}) for text in (QUESTION, phrase)))
    documents = [
        document(1, FILLER * 10),
        document(2, FILLER * 10 + QUESTION.upper() + ", he asked. " + FILLER * 10),
        document(3, QUESTION),
        document(4, (FILLER * 12 + QUESTION + ". ") * 12 + FILLER * 12),
        *(document(number, FILLER * 10 + phrase + ".") for number in range(5, 17)),
    ]
    ngrams = count(tmp_path, documents, against)
    table = pq.read_table(ngrams).to_pylist()
    assert {row["count"] for row in table} == {14, 12}
    assert {row["words"] for row in table} == {13}

    flags = ("--ngrams", str(ngrams))
    found = run_stage(["decontaminate", "cut"], documents, *flags)
    assert found.stats["dropped"] == {}, "seen 14 and 12 times, both are common phrases"

    flags = ("--ngrams", str(ngrams), "--common", "15")
    found = run_stage(["decontaminate", "cut"], documents, *flags)
    assert found.stats["dropped"] == {"many_pieces": 1, "nothing_left": 1}
    assert (found.stats["in"], found.stats["kept"], found.stats["out"]) == (16, 14, 15)
    assert found.documents[0] == documents[0]
    halves = found.documents[1:3]
    assert [half["text"] for half in halves] == [(FILLER * n).strip() for n in (6, 7)]
    assert [half["id"] for half in halves] == [document_id(f"{2:032x}", n) for n in "12"]
    assert all(half["title"] == "t" and half["whole"] == f"{2:032x}" for half in halves)
    assert {bad["phrase"] for bad in found.rejected} == {" ".join(QUESTION.split()[:13])}
    figures = found.stats["figures"]
    assert figures[f"matches of {against}"] == 14 * 3 + 12 * 3
    assert figures["documents_cut"] == 13
    assert figures["pieces"] == 14


def test_the_report_tells_what_was_hit_of_each_set(tmp_path: Path) -> None:
    phrase = "all rights reserved by the owners of this page and their lawful heirs forever"
    absent = "nobody has ever written this sentence of fourteen words down in any document yet"
    against = tmp_path / "set.jsonl"
    against.write_bytes(
        b"\n".join(orjson.dumps({"t": text}) for text in (QUESTION, phrase, absent))
    )
    documents = [document(number, f"{QUESTION}. " * (number == 1) + phrase) for number in range(11)]
    ngrams = count(tmp_path, documents, against)
    arguments = ["decontaminate", "report", "--ngrams", str(ngrams), "--output"]
    answer = CliRunner().invoke(app, [*arguments, str(tmp_path / "report.json")])
    report = orjson.loads((tmp_path / "report.json").read_bytes())
    found = report["sets"][str(against)]
    assert report["common"] == 10
    assert (found["ngrams"], found["in_corpus"], found["cut"], found["common"]) == (7, 5, 3, 2)
    assert found["occurrences"] == 3 + 2 * 11
    assert found["common_most"][0] == {"phrase": " ".join(phrase.split()[:13]), "count": 11}
    assert len(found["cut_most"]) == 3
    assert "7 n-grams, 5 of them in the corpus: 3 cut out, 2 as common phrases" in answer.stdout


def test_counting_goes_on_with_the_shard_at_which_it_was_stopped(tmp_path: Path) -> None:
    against = tmp_path / "set.jsonl"
    against.write_bytes(orjson.dumps({"t": QUESTION}))
    shards = [tmp_path / f"{name}.jsonl.zst" for name in "abc"]
    for number, path in enumerate(shards):
        with JsonlWriter(path) as writer:
            writer.write(document(number, f"{QUESTION}. " * (number + 1)))
    flags = [word for path in shards for word in ("--documents", str(path))]
    output, work = tmp_path / "ngrams.parquet", tmp_path / "work"
    arguments = ["decontaminate", "count", *flags, "--against", str(against), "--output",
                 str(output), "--work", str(work)]  # fmt: skip
    last = shards[2].read_bytes()
    shards[2].write_bytes(last[:-9])  # stops the stage, as a full disk would
    with pytest.raises(InputError, match=r"c\.jsonl\.zst: broken at line"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert sorted(path.name for path in work.glob("counts-*")) == [
        "counts-0000.npy", "counts-0001.npy"]  # fmt: skip
    np.save(work / "counts-0000.npy", np.array([100, 100, 100]))  # shows that it is taken
    before = {path.name: path.stat().st_mtime_ns for path in work.glob("counts-*")}
    settings_of_both = settings(against=(str(against),))
    shards[2].write_bytes(last)
    table = count_ngrams(shards, settings_of_both, work)
    assert table["count"].to_pylist() == [100 + 2 + 3] * 3
    assert before.items() <= {path.name: path.stat().st_mtime_ns
                              for path in work.glob("counts-*")}.items()  # fmt: skip


def test_counts_of_shards_add_up_to_those_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "set.txt").write_text(QUESTION + "\n")
    documents = [document(number, f"{QUESTION}. " * number) for number in range(5)]
    whole = count(tmp_path, documents, tmp_path / "set.txt")
    parts = []
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        parts += [count(tmp_path / str(number), [documents[number]], tmp_path / "set.txt")]
    flags = [word for path in parts for word in ("--counts", str(path))]
    arguments = ["decontaminate", "add", *flags, "--output", str(tmp_path / "sum.parquet"),
                 "--work", str(tmp_path / "work-sum")]  # fmt: skip
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert (tmp_path / "sum.parquet").read_bytes() == whole.read_bytes()
    (tmp_path / "other.txt").write_text(QUESTION[4:] + "\n")
    (tmp_path / "other").mkdir()
    other = count(tmp_path / "other", documents, tmp_path / "other.txt")
    with pytest.raises(InputError, match="counts other n-grams"):
        add_counts([whole, other])
