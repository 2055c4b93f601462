"""The detector's answers are seeded langdetect's, whichever library computes them."""

import subprocess
import sys
import unicodedata
from itertools import pairwise

import langdetect
import pytest

from web2gpt.clean.language import Language, language_detector

SENTENCES = {
    "en": "The old house stood at the end of the road, and nobody had lived there for years.",
    "de": "Das alte Haus stand am Ende der Straße, und niemand wohnte darin.",
    "fr": "La vieille maison se trouvait au bout de la route et personne n'y habitait.",
    "es": "La vieja casa estaba al final del camino y hacía muchos años que nadie vivía en ella.",
    "it": "La vecchia casa stava in fondo alla strada e nessuno ci abitava più da molti anni.",
    "nl": "Het oude huis stond aan het einde van de weg en er woonde al jaren niemand meer.",
    "pl": "Stary dom stał na końcu drogi i od wielu lat nikt już w nim nie mieszkał.",
    "ru": "Старый дом стоял в конце дороги, и уже много лет в нём никто не жил.",
    "ja": "古い家は道の終わりに立っていて、もう何年も誰も住んでいませんでした。",
    "ko": "오래된 집은 길 끝에 서 있었고 여러 해 동안 아무도 살지 않았다.",
    "ar": "كان البيت القديم يقع في نهاية الطريق ولم يسكنه أحد منذ سنوات طويلة.",
    "vi": "Ngôi nhà cũ nằm ở cuối con đường và đã nhiều năm không có ai sống ở đó.",
}  # fmt: skip


def mixed_set() -> list[str]:
    """Whole sentences, halves, pairs of languages, capitals, decomposed, and texts without any."""
    texts = list(SENTENCES.values())
    texts += [text[: len(text) // 2] for text in texts] + [text.upper() for text in texts]
    texts += [f"{a} {b}" for a, b in pairwise(texts[:13])]
    texts += [unicodedata.normalize("NFD", text) for text in texts[:12]]
    return [
        *texts,
        "",
        "12345 67890",
        "http://a.example/b?c=d",
        "a",
        "ab",
        "😀😀",
        "\x01",
        "x" * 20_000,
    ]


def test_languages_are_found() -> None:
    detect = language_detector()
    for code, text in SENTENCES.items():
        found = detect(text)
        assert found is not None
        assert found.code == code
        assert 0.5 < found.probability <= 1


def test_fast_library_agrees_on_every_text_of_a_mixed_set() -> None:
    pytest.importorskip("langdetect_rs")
    fast, plain = language_detector(fast=True), language_detector(fast=False)
    for text in mixed_set():
        assert fast(text) == plain(text)


def test_label_and_probability_are_langdetects() -> None:
    detect = language_detector()
    langdetect.DetectorFactory.seed = 0
    best = langdetect.detect_langs(SENTENCES["nl"])[0]
    assert detect(SENTENCES["nl"]) == Language(best.lang, round(best.prob, 6))


def test_text_without_features_has_no_language() -> None:
    for fast in (True, False):
        assert language_detector(fast=fast)("2026-11-29 12:00 ... 42") is None


def test_answers_are_the_same_in_every_process() -> None:
    program = (
        "from web2gpt.clean.language import language_detector as d; import sys;"
        "print([d(fast=f)(sys.argv[1]) for f in (True, False)])"
    )
    text = "Oui non yes no si ja " + SENTENCES["fr"][:20] + SENTENCES["es"][:20]
    answers = {
        subprocess.run([sys.executable, "-c", program, text], capture_output=True, text=True,
                       check=True, env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "1", "random")
    }  # fmt: skip
    assert len(answers) == 1
