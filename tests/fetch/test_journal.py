"""The journal survives being cut anywhere, and forgets only the entry that was torn."""

import pytest

from web2gpt.fetch.journal import Journal
from web2gpt.fetch.page import Fetched, Outcome


def fetched(number, records):
    outcome = Outcome(f"http://a.test/{number}", "s", "kept", 200, None, 0, None, 1, 2)
    return Fetched(outcome, records)


ENTRIES = [(2, b"\x1f\x8b\n\x00{}"), (0, b""), (3, b'\n\n{"number":1}\n')]


@pytest.fixture
def path(tmp_path):
    with Journal(tmp_path / "journal", 4) as journal:
        for number, records in ENTRIES:
            journal.append(number, fetched(number, records))
    return tmp_path / "journal"


def test_what_was_noted_is_found_again(path):
    with Journal(path, 4) as journal:
        assert journal.done.tolist() == [True, False, True, True]
        for number, records in ENTRIES:
            outcome, found = journal.read(number)
            assert (outcome["url"], found) == (f"http://a.test/{number}", records)


def test_cut_at_any_byte_it_keeps_every_whole_entry(path):
    whole = path.read_bytes()
    sizes = []
    with Journal(path.with_name("sizes"), 4) as journal:
        for number, records in ENTRIES:
            journal.append(number, fetched(number, records))
            sizes.append(journal.path.stat().st_size)
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with Journal(path, 4) as journal:
            kept = sum(size <= cut for size in sizes)
            assert journal.done.sum() == kept
            journal.append(1, fetched(1, b"new"))
        with Journal(path, 4) as journal:
            assert journal.read(1)[1] == b"new"
            assert journal.done.sum() == kept + 1


def test_an_end_of_zeros_is_cut_off(path):
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(5000))
    with Journal(path, 4) as journal:
        assert journal.done.sum() == 3
    assert path.read_bytes() == whole
