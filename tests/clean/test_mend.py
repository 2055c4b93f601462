"""Mending is ftfy's, exactly; the fast path only leaves out work that would change nothing."""

import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import ftfy
import pytest
from ftfy.badness import BADNESS_RE
from hypothesis import example, given, settings
from hypothesis import strategies as st

from web2gpt.clean.mend import ALONE, collapse_whitespace, fixer_config, text_fixer, uncurl_quotes
from web2gpt.config.clean import Ftfy

HARMLESS = ["plain words ", "longer line without anything ", "\n", "\t", "\x0c", "& so", "&", ";"]
MARKUP = ["&amp;", "&eacute;", "&EACUTE;", "&#8217;", "&#x27;", "&lt;", "<", "<b>", "a<b"]
MOJIBAKE = ["schön", "schÃ¶n", "â€œquotedâ€\x9d", "Ã", "Ã\xa0", "à ", "\xa0", "ã‚¹"]
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


def alternatives(items: Any) -> Iterator[list[set[int] | None]]:
    """Each way through a parsed regular expression: sets of characters, None where any may stand
    or the place may stay empty."""
    ways: list[list[set[int] | None]] = [[]]
    for kind, value in items:
        match str(kind):
            case "AT":
                continue
            case "LITERAL":
                ends: list[list[set[int] | None]] = [[{value}]]
            case "IN":
                ends = [[members(value)]]
            case "BRANCH":
                ends = [way for branch in value[1] for way in alternatives(branch)]
            case _:
                ends = [[None]]
        ways = [[*way, *end] for way in ways for end in ends]
    yield from ways


def members(items: Any) -> set[int] | None:
    found: set[int] = set()
    for kind, value in items:
        match str(kind):
            case "LITERAL":
                found.add(value)
            case "RANGE":
                found.update(range(value[0], value[1] + 1))
            case _:
                return None
    return found


def test_mojibake_shows_in_two_characters_side_by_side_or_in_one_that_is_listed() -> None:
    listed = {code for code in range(256, 400) if chr(code) in "Œœ"} | {0xC2, 0xC3}
    listed |= set(range(0x80, 0xA0))
    assert {code for code in range(0x3000) if re.match(f"[{ALONE}]", chr(code))} == listed
    ways = list(alternatives(re._parser.parse(BADNESS_RE.pattern, re.VERBOSE)))
    assert len(ways) > 30
    for way in ways:
        beyond = [place is not None and min(place) > 0x7F for place in way]
        alone = any(place is not None and place <= listed for place in way)
        assert alone or any(a and b for a, b in pairwise(beyond)), way


def test_quotes_are_straightened_as_ftfy_does() -> None:
    characters = "".join(map(chr, range(0xD800)))
    assert uncurl_quotes(characters) == ftfy.fixes.uncurl_quotes(characters)


def test_same_text_as_ftfy_for_all_pairs_of_telling_characters() -> None:
    telling = "aA Â½éÉ“”’…€£–œŒÃ°中ав\u0301\xa0\x85&;ﬁ"
    text = "".join(f"x{a}{b} y {b}\n" for a in telling for b in telling)
    assert text_fixer(Ftfy())(text) == ftfy.fix_text(text)


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
