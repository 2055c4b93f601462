"""Text leaves the project as UTF-8 that every reader takes."""

from hypothesis import given
from hypothesis import strategies as st

from web2gpt.web.text import writable


@given(st.text(st.sampled_from("a\0é\ud800\udfff\U0001f600\n") | st.characters(), max_size=30))
def test_all_but_nul_and_lone_surrogates_stays(text: str) -> None:
    expected = "".join(c for c in text if c != "\0" and not "\ud800" <= c <= "\udfff")
    assert writable(text) == expected
