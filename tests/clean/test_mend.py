"""Mending is ftfy's, exactly; the fast path only leaves out work that would change nothing."""

import random
from pathlib import Path

import ftfy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from web2gpt.clean.mend import collapse_whitespace, fixer_config, text_fixer
from web2gpt.config.clean import Ftfy

HARMLESS = ["plain words ", "longer line without anything ", "\n", "\t", "\x0c", "& so", "&", ";"]
MARKUP = ["&amp;", "&eacute;", "&EACUTE;", "&#8217;", "&#x27;", "&lt;", "<", "<b>", "a<b"]
MOJIBAKE = ["schön", "schÃ¶n", "â€œquotedâ€\x9d", "Ã", "Ã\xa0", "à ", "\xa0", "ã‚¹"]  # noqa: RUF001
FORMS = ["“curly”", "ﬁne", "\uff37\uff29\uff24\uff25", "e\u0301", "\ud83d\ude00"]
CONTROLS = ["\r\n", "\r", "\x00", "\x1b[31m", "\x0b", "\x7f", "\x85", "\u2028", "\ufeff"]
PIECES = st.sampled_from(HARMLESS + MARKUP + MOJIBAKE + FORMS + CONTROLS)
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=25).map("".join)
OPTIONS = [
    Ftfy(),
    Ftfy(unescape_html="yes"),
    Ftfy(unescape_html="no", normalization="NFKC"),
    Ftfy(max_decode_length=7),
    Ftfy(uncurl_quotes=False, fix_encoding=False, normalization="none"),
    Ftfy(fix_line_breaks=False, remove_control_chars=False, remove_terminal_escapes=False),
]


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
@example(text="&eacute; <p>\n&eacute;")
@example(text="&eacute;\nplain < line\n&eacute;")
@example(text="plain " * 5 + "&amp; <&amp; <&amp;\n&amp;")
def test_same_text_as_ftfy(options: Ftfy, text: str) -> None:
    assert text_fixer(options)(text) == ftfy.fix_text(text, fixer_config(options))


@pytest.mark.parametrize("options", OPTIONS)
def test_same_text_as_ftfy_for_every_character_in_a_line(options: Ftfy) -> None:
    characters = "".join(f"a {chr(code)} b\n" for code in range(0x3000))
    assert text_fixer(options)(characters) == ftfy.fix_text(characters, fixer_config(options))


def test_same_text_as_ftfy_on_prose_with_damage() -> None:
    source = Path(random.__file__).read_text()
    damaged = source.replace("the", "th\u00e9").encode().decode("cp1252", "replace")
    for text in (source, damaged, source + "\n" + damaged):
        assert text_fixer(Ftfy())(text) == ftfy.fix_text(text)


def test_options_are_all_of_ftfy_with_its_defaults() -> None:
    assert fixer_config(Ftfy()) == ftfy.TextFixerConfig(explain=False)
    assert {*Ftfy.model_fields, "explain"} == set(ftfy.TextFixerConfig._fields)


def test_white_space_is_collapsed_and_indentation_kept() -> None:
    text = "\n\n  a  b\t\tc \n\n\n\n    d e\u3000\u3000f  \n"
    assert collapse_whitespace(text) == "  a b c\n\n    d e f"


@given(st.text(alphabet="ab \t\n\u3000", max_size=60))
def test_collapsing_again_changes_nothing_and_no_word_is_lost(text: str) -> None:
    once = collapse_whitespace(text)
    assert collapse_whitespace(once) == once
    assert once.split() == text.split()
