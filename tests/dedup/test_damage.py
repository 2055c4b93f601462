"""Damage is what ftfy says of the whole text."""

import random

import ftfy
import pytest
from ftfy.badness import MOJIBAKE_CATEGORIES, is_bad
from tests.dedup.corpora import texts

from web2gpt.dedup import damage
from web2gpt.dedup.damage import is_damaged


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain\ntext\n",
        "it\u2019s curled",
        "schÃ¶n",
        "schön",
        "a &amp; b",
        "<p>a &amp; b",
        "a &amp; b\n<p>",
        "<p>\na &amp; b",
        "a & b",
        "two\r\nlines",
        "\x1b[31mred",
        "bell\x07",
        "tab\tform\x0c",
        "ﬁne",
        "\uff37\uff29\uff24\uff25",
        "line\u2028break",
        "last\x7f",
        "cafe\u0301",
    ],
)
def test_damage_is_what_ftfy_says_of_the_whole_text(text):
    for whole in (text, f"before\n{text}\nafter", f"wörd {text}\n{text}"):
        assert is_damaged(whole) == (ftfy.fix_text(whole) != whole)


STRANGE = [
    *"".join(MOJIBAKE_CATEGORIES.values()).replace("\\", ""),
    *"ÃÂâ€œŠŸÐÑ√≈\u201aβΒΓΞΟвЂГўВ\u0301\u0327\ufeff\ufb01\uff21\u3000\u200b\xad\xa0\x85漢字",
]
ORDINARY = ["a", "B", "é", "ü", " ", " ", "\n", "&amp;", "&", ";", "<", "0", ".", "—", "日"]


@pytest.mark.parametrize("share", [0.02, 0.2, 0.7])
def test_shortcuts_say_the_same_as_ftfy_on_anything(share: float) -> None:
    draw = random.Random(f"{share}")
    found = set[bool]()
    for _ in range(1500):
        parts = [
            draw.choice(STRANGE if draw.random() < share else ORDINARY)
            for _ in range(draw.randint(1, 60))
        ]
        text = "".join(parts)
        assert is_damaged(text) == (ftfy.fix_text(text) != text), repr(text)
        found.add(is_damaged(text))
    assert found == {True, False}


def test_mojibake_of_real_text_is_damage_and_the_text_is_not() -> None:
    for encoding in ("latin-1", "cp1252", "cp1251", "mac-roman"):
        for text in texts(20, 40):
            sound = f"{text} — naïve café, {text}"
            broken = sound.encode().decode(encoding, errors="ignore")
            assert not is_damaged(sound)
            assert is_damaged(broken) == (ftfy.fix_text(broken) != broken)


def test_signs_of_mojibake_are_seen_in_their_surroundings() -> None:
    draw = random.Random(5)
    for _ in range(3000):
        line = "".join(draw.choice(STRANGE + ["a", "B", " "] * 60) for _ in range(40))
        line = line.replace("\n", "")
        assert any(map(is_bad, damage._strange_parts(line))) == is_bad(line), repr(line)


def test_ordinary_pages_are_not_handed_to_ftfy(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(damage.ftfy, "fix_text", lambda text, **_: calls.append(text) or text)
    text = texts(1, 300)[0]
    assert not is_damaged(f"{text} — é\n→ {text}")
    assert is_damaged(f"{text} “{text}”")
    assert calls == []
