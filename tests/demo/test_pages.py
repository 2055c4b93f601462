"""The lay-out of articles on pages."""

from typing import Any

from web2gpt.demo.pages import MAX_CHARACTERS, MIN_CHARACTERS, lay_out
from web2gpt.demo.plants import lightly_edited, mojibake


def words(start: int, count: int) -> str:
    """A paragraph of ``count`` words that no other start gives."""
    return " ".join(f"word{chr(97 + (start + n) % 26)}{chr(97 + start % 26)}".replace("word", "wo")
                    + "rd" * (start % 3) for n in range(count))  # fmt: skip


def module(name: str, *paragraphs: str, entries: Any = ()) -> dict[str, Any]:
    return {"name": name, "doc": "\n\n".join(paragraphs), "submodules": [], "entries": entries}


def test_small_modules_are_gathered_and_large_ones_split() -> None:
    small = [module(f"small{n}", words(n, 120)) for n in range(8)]
    large = module("zoo", *(words(n, 300) for n in range(8, 26)))
    articles = list(lay_out([*small, large]))
    assert all(article.characters >= MIN_CHARACTERS for article in articles)
    assert all(article.characters <= MAX_CHARACTERS + MIN_CHARACTERS for article in articles)
    assert [article.path for article in articles if article.package == "zoo"][:2] == [
        "/zoo",
        "/zoo-2",
    ]
    assert articles[0].path == "/notes/1"


def test_a_paragraph_stands_once_in_the_whole_site() -> None:
    again = words(1, 300)
    articles = list(
        lay_out([module("aa", again, words(2, 300)), module("bb", again, words(3, 400))])
    )
    texts = [
        block.text
        for article in articles
        for section in article.sections
        for block in section.blocks
    ]
    assert len(texts) == len(set(texts))
    assert sum(text == again for text in texts) == 1


def test_a_large_class_has_a_page_of_its_own() -> None:
    members = [{"name": "run", "doc": words(5, 400)}]
    entries = [{"name": "Engine", "doc": words(4, 300), "members": members}]
    paths = [article.path for article in lay_out([module("cars", words(6, 400), entries=entries)])]
    assert paths == ["/cars/class-Engine", "/cars"]


def test_an_edited_copy_keeps_most_words_in_order() -> None:
    (article,) = lay_out([module("aa", words(1, 300), words(2, 300))])
    edited = lightly_edited(article)
    before = article.sections[0].blocks[0].text.split()
    after = edited.sections[0].blocks[0].text.split()
    assert 0.98 <= len(after) / len(before) < 1
    assert edited.sections[-1].name == "About this copy"


def test_mojibake_is_utf8_read_as_windows_1252() -> None:
    assert mojibake("café ©") == "cafÃ© Â©"
