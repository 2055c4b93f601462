"""The order in which a page's character set is decided, and that no bytes are too broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web2gpt.web.charset import decode_page, python_encoding

GERMAN = "Größe und Überfluß: die schöne Müllerin fährt über den Fluß, dürfen Bären schwärmen?"
RUSSIAN = "Съешь ещё этих мягких французских булок, да выпей же чаю, сказал он ей."


def meta(charset: str, text: str) -> str:
    return f'<html><head><meta charset="{charset}"></head><body>{text}</body></html>'


def test_byte_order_mark_wins_over_header_and_meta() -> None:
    page = meta("latin1", GERMAN)
    assert decode_page(b"\xef\xbb\xbf" + page.encode(), "koi8-r") == page
    assert decode_page(b"\xff\xfe" + page.encode("utf-16-le"), "utf-8") == page
    assert decode_page(b"\xfe\xff" + page.encode("utf-16-be")) == page


def test_header_wins_over_meta() -> None:
    page = meta("koi8-r", GERMAN)
    assert decode_page(page.encode("cp1252"), "ISO-8859-1") == page


def test_header_that_does_not_fit_the_bytes_is_passed_over() -> None:
    page = meta("windows-1251", RUSSIAN)
    assert decode_page(page.encode("cp1251"), "utf-8") == page


def test_strict_utf8_wins_over_meta() -> None:
    page = meta("iso-8859-1", GERMAN)
    assert decode_page(page.encode()) == page


def test_meta_wins_over_detection() -> None:
    page = meta("iso-8859-5", RUSSIAN)
    assert decode_page(page.encode("iso-8859-5")) == page


def test_http_equiv_meta_is_read() -> None:
    page = f'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>{RUSSIAN}</p>'
    assert decode_page(page.encode("koi8-r")) == page


def test_utf16_in_a_meta_element_cannot_be_true() -> None:
    assert decode_page(meta("utf-16", "x").encode() + b"\xff").startswith("<html>")


@pytest.mark.parametrize(
    ("text", "encoding"), [(GERMAN, "cp1252"), (RUSSIAN, "cp1251"), (RUSSIAN, "koi8-r")]
)
def test_undeclared_character_sets_are_detected(text: str, encoding: str) -> None:
    assert decode_page(f"<p>{text}</p>".encode(encoding)) == f"<p>{text}</p>"


def test_labels_mean_what_the_standard_says() -> None:
    assert python_encoding("latin1") == "cp1252"
    assert python_encoding(" UTF8 ") in ("utf-8", None)
    assert python_encoding("gb2312") == "gb18030"
    assert python_encoding("x-user-defined") is None
    assert python_encoding("no-such-set") is None


@given(st.binary(max_size=300), st.sampled_from([None, "", "utf-8", '"latin-1"', "ÿþ", "big5"]))
def test_any_bytes_become_text(body: bytes, charset: str | None) -> None:
    assert isinstance(decode_page(body, charset), str)


def test_invalid_utf8_is_replaced_where_nothing_else_fits() -> None:
    assert "ab" in decode_page(b"<p>ab\xff\x81\x8d\x8f\xfe</p>", "utf-8")
