"""The rules of Gopher, C4 and FineWeb and the masks, against datatrove's own on the same documents.

With spaCy's words, which are datatrove's, every verdict, rule and text must be the same. With the
simple words, nine verdicts in ten must be, on documents that stand near the limits on purpose.
"""

import inspect
import json
import random
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from web2gpt.clean.filters import filters
from web2gpt.clean.mask import masker
from web2gpt.config.clean import C4, Clean, FineWeb, GopherQuality, GopherRepetition, Mask

pytestmark = pytest.mark.peers

MODULES = ("argparse", "decimal", "email.message", "heapq", "json", "pathlib", "re", "zipfile")
OWN_NAME = {  # of datatrove's reasons
    "gopher_short_doc": "few_words",
    "gopher_long_doc": "many_words",
    "gopher_below_avg_threshold": "word_length",
    "gopher_above_avg_threshold": "word_length",
    "gopher_too_many_hashes": "symbols",
    "gopher_too_many_ellipsis": "symbols",
    "gopher_too_many_bullets": "bullets",
    "gopher_too_many_end_ellipsis": "ellipses",
    "gopher_below_alpha_threshold": "alphabetic",
    "gopher_enough_stop_words": "stop_words",
    "dup_para_frac": "duplicate_paragraphs",
    "dup_para_char_frac": "duplicate_paragraph_characters",
    "dup_line_frac": "duplicate_lines",
    "dup_line_char_frac": "duplicate_line_characters",
    **{f"top_{n}_gram": f"top_{n}_gram" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"duplicate_{n}_grams" for n in range(5, 11)},
    "too_few_sentences": "few_sentences",
    "lorem_ipsum": "lorem_ipsum",
    "curly_bracket": "curly_bracket",
    "empty": "empty",
    "line_punct_ratio": "punctuated",
    "short_line_ratio": "short_lines",
    "char_dup_ratio": "duplicates",
    "list_ratio": "line_breaks",
}


def documents() -> list[str]:
    """Prose, reference, code and lists from the standard library, whole, in parts, and spoilt."""
    texts = []
    for name in MODULES:
        module = __import__(name, fromlist=["x"])
        texts.append(Path(module.__file__ or "").read_text()[:6000])
        members = [getattr(module, one) for one in sorted(vars(module))]
        texts += [inspect.getdoc(one) or "" for one in (module, *members)
                  if isinstance(one, type | types.FunctionType | types.ModuleType)]  # fmt: skip
    texts = sorted({text.strip() for text in texts if len(text) > 150})
    draw = random.Random(7)
    for text in draw.sample(texts, 25):
        lines = text.splitlines()
        texts += [
            text + "\n" + "\n".join(lines[:3]) * 4,
            "\n\n".join([text[:200]] * 3),
            "\n".join(f"- {line}" for line in lines),
            "\n".join(line + "..." for line in lines),
            " ".join(word + " #" for word in text.split()),
            text.replace("e", "7").replace("a", "5").replace("t", "1"),
            " ".join(sorted(text.split())),
            text.replace(". ", ". \n"),
            "Lorem ipsum dolor sit amet.\n" + text,
            "We use cookies to know you better.\nJavaScript is needed here.\n" + text,
            "Kept [1] as it is.[citation needed] It “is” so!\n" * 2 + text,
        ]
    return texts


DOCUMENTS = documents()


def own_verdicts(name: str, **settings: Any) -> list[tuple[str | None, str]]:
    """The rule by which each document goes, and its text afterwards."""
    judge = filters(Clean(**settings))[name]
    verdicts = []
    for text in DOCUMENTS:
        document = {"text": text}
        figure = judge(document)
        verdicts.append((str(figure).split()[0] if figure else None, document["text"]))
    return verdicts


def their_verdicts(judge: Any) -> list[tuple[str | None, str]]:
    from datatrove.data import Document

    verdicts = []
    for text in DOCUMENTS:
        document = Document(text=text, id="1")
        answer = judge.filter(document)
        reason = None if answer is True else OWN_NAME[answer[1]]
        verdicts.append((reason, document.text))
    return verdicts


def cases() -> dict[str, tuple[dict[str, Any], Callable[[], Any]]]:
    """Settings of ours, and a filter of theirs that is made later."""

    def theirs(module: str, name: str, **values: Any) -> Callable[[], Any]:
        def make() -> Any:
            found = __import__(f"datatrove.pipeline.filters.{module}", fromlist=[name])
            return getattr(found, name)(**values)

        return make

    few = {"min_doc_words": 10, "min_stop_words": 1, "max_avg_word_length": 6}
    own_few = {"min_words": 10, "min_stop_words": 1, "max_word_length": 6}
    loose = {"dup_line_frac": 0.9, "dup_para_frac": 0.9, "dup_line_char_frac": 0.9,
             "dup_para_char_frac": 0.9}  # fmt: skip
    own_loose = {
        "duplicate_lines": 0.9,
        "duplicate_paragraphs": 0.9,
        "duplicate_line_characters": 0.9,
        "duplicate_paragraph_characters": 0.9,
    }
    return {
        "gopher_quality": (
            {"gopher_quality": GopherQuality(enabled=True)},
            theirs("gopher_quality_filter", "GopherQualityFilter"),
        ),
        "gopher_quality of short documents": (
            {"gopher_quality": GopherQuality(enabled=True, **own_few)},
            theirs("gopher_quality_filter", "GopherQualityFilter", **few),
        ),
        "gopher_repetition": (
            {"gopher_repetition": GopherRepetition(enabled=True)},
            theirs("gopher_repetition_filter", "GopherRepetitionFilter"),
        ),
        "gopher_repetition of n-grams": (
            {"gopher_repetition": GopherRepetition(enabled=True, **own_loose)},
            theirs("gopher_repetition_filter", "GopherRepetitionFilter", **loose),
        ),
        "c4": ({"c4": C4(enabled=True)}, theirs("c4_filters", "C4QualityFilter")),
        "c4 with any line": (
            {"c4": C4(enabled=True, terminal_punctuation=False, curly_bracket=False)},
            theirs("c4_filters", "C4QualityFilter", filter_no_terminal_punct=False,
                   filter_curly_bracket=False),
        ),
        "fineweb": (
            {"fineweb": FineWeb(enabled=True)},
            theirs("fineweb_quality_filter", "FineWebQualityFilter"),
        ),
        "fineweb of lists": (
            {"fineweb": FineWeb(enabled=True, min_punctuated=0, max_short=1, max_line_breaks=0.1)},
            theirs("fineweb_quality_filter", "FineWebQualityFilter", line_punct_thr=0,
                   short_line_thr=1, new_line_ratio=0.1),
        ),
    }  # fmt: skip


@pytest.mark.parametrize("case", cases())
def test_same_verdicts_rules_and_texts_as_datatrove(case: str) -> None:
    settings, make = cases()[case]
    theirs = their_verdicts(make())
    reasons = {reason for reason, _ in theirs}
    assert len(reasons) >= 3, "the documents must put the rules to use"
    exact = own_verdicts(case.partition(" ")[0], words="spacy", **settings)
    assert exact == theirs
    simple = own_verdicts(case.partition(" ")[0], words="simple", **settings)
    alike = sum((a is None) == (b is None) for (a, _), (b, _) in zip(simple, theirs, strict=True))
    print(json.dumps({"case": case, "documents": len(theirs), "alike": alike / len(theirs)}))
    assert alike / len(theirs) > 0.9


def test_same_masks_as_datatrove() -> None:
    from datatrove.pipeline.formatters.pii import PIIFormatter

    rules = Mask(emails=True, ips=True)
    pieces = [
        "a@b.example", "first.last+tag@sub.domain.example", "..x@y.de", "a@b", "@c.d", "a@@b.c",
        "é@b.example", "xé@b.example", "'q'@b.example.", "a@-b.example", "a@b-.example",
        "x@1.2.3.4", "8.8.8.8", "10.0.0.1", "1.2.3.4.5.6.7.8", "256.1.1.1", "01.2.3.4",
        "192.168.1.1,8.8.4.4", "v1.2.3", " ", "\n", "word", "mailto:a_b@c.example?x=1",
        "a@b.example@c.example",
    ]  # fmt: skip
    draw = random.Random(3)
    texts = ["".join(draw.choices(pieces, k=12)) for _ in range(600)] + DOCUMENTS
    mask = masker(rules)
    assert mask is not None
    theirs = PIIFormatter(email_replacement=rules.email, ip_replacement=rules.ip)
    for text in texts:
        masked, count = mask(text)
        assert masked == theirs.format(text)
        assert (count > 0) == (masked != text)
