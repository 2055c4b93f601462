"""Every intact record is found, whatever stands beside it, and whatever is damaged is told."""

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from web2gpt.io.warc_blocks import Block, Damage, read_blocks

LIMIT = 100_000


def record(name: str, content: bytes, length: object = None) -> bytes:
    head = f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: {name}\r\n"
    length = len(content) if length is None else length
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + content + b"\r\n\r\n"


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


A, B, C = (record(name, noise(ord(name), 700)) for name in "abc")


def read(path: Path, content: bytes, limit: int = LIMIT) -> list[str]:
    """The records' names in order; ``-`` before for damage, ``>`` behind for over the limit."""
    path.write_bytes(content)
    return [_told(found) for found in read_blocks(path, limit)]


def _told(found: Block | Damage) -> str:
    name = found.headers.get("WARC-Record-ID") if found.headers else ""
    if isinstance(found, Damage):
        return f"-{name}"
    return f"{name}>" if found.content is None else str(name)


PACKINGS = {
    "plain": b"".join,
    "one member": lambda records: gzip.compress(b"".join(records)),
    "member a record": lambda records: b"".join(map(gzip.compress, records)),
}


@pytest.fixture(params=PACKINGS)
def pack(request: pytest.FixtureRequest):
    return PACKINGS[request.param]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.warc.gz"


def test_all_packings_give_the_same_records(path: Path, pack) -> None:
    path.write_bytes(pack([A, B, C]))
    assert [found.content for found in read_blocks(path, LIMIT)] == [
        noise(ord(n), 700) for n in "abc"
    ]


@pytest.mark.parametrize("length", [0, 1, 699, 701, 750, 2_000, 90_000, 10**6, 2**63, 10**300])
def test_a_wrong_length_costs_nothing_but_what_is_over_the_limit(path: Path, pack, length) -> None:
    content = pack([A, record("b", noise(98, 700), length), C])
    assert read(path, content) == ["a", "b" if length <= LIMIT else "b>", "c"]
    if length <= LIMIT:
        content = list(read_blocks(path, LIMIT))[1].content
        assert content.removesuffix(b"\r") == noise(98, 700), "a line end may be one or the other's"


@pytest.mark.parametrize("length", ["", "-5", "x", "1e3", "٣", "0x10"])
def test_a_length_that_is_no_number_costs_the_record(path: Path, pack, length: str) -> None:
    assert read(path, pack([A, record("b", b"abc", length), C])) == ["a", "-b", "c"]


def test_garbage_between_records_is_told_once(path: Path) -> None:
    assert read(path, gzip.compress(A) + noise(1, 9000) + gzip.compress(C)) == ["a", "-", "c"]
    assert read(path, b"garbage at the start\r\n\r\n" + A + C) == ["-", "a", "c"]
    assert read(path, A + C + b"garbage at the end") == ["a", "c", "-"]


def test_zeros_after_the_last_member_are_no_damage(path: Path) -> None:
    assert read(path, gzip.compress(A) + bytes(5000)) == ["a"]


def test_a_record_of_another_archive_inside_a_page_is_part_of_the_page(path: Path, pack) -> None:
    page = b"<pre>\r\n\r\n" + A + B + b"</pre>"
    assert read(path, pack([record("page", page), C])) == ["page", "c"]


def test_records_over_the_limit_are_passed_over_in_bounded_memory(path: Path, pack) -> None:
    assert read(path, pack([A, record("b", bytes(3_000_000)), C])) == ["a", "b>", "c"]


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 100, 400, 690])
def test_a_file_that_breaks_off_loses_its_last_record_only(path: Path, pack, cut: int) -> None:
    found = read(path, pack([A, B, C])[:-cut])
    assert found[:2] == ["a", "b"]
    assert found[2:] in (["c"], ["-c"], ["-"])
    assert found[2:] == ["-c"] or cut not in (100, 400)


def test_a_flipped_byte_costs_its_record_where_checksums_can_tell(path: Path) -> None:
    members = [gzip.compress(one) for one in (A, B, C)]
    for place in range(11, len(members[1]) - 4, 40):
        broken = bytearray(members[1])
        broken[place] ^= 0x10
        found = read(path, members[0] + broken + members[2])
        assert found in (["a", "-b", "c"], ["a", "-", "c"]), place


def test_offsets_are_those_of_members_or_of_the_plain_file(path: Path) -> None:
    path.write_bytes(gzip.compress(A) + gzip.compress(B + C))
    size = len(gzip.compress(A))
    assert [found.offset for found in read_blocks(path, LIMIT)] == [0, size, len(A + B)]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    packing=st.sampled_from(sorted(PACKINGS)),
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 60), st.binary(max_size=60)), max_size=4
    ),
)
def test_no_damage_stops_the_reading(tmp_path: Path, packing: str, edits) -> None:
    content = PACKINGS[packing]([A, B, C])
    for place, cut, put in edits:
        at = int(place * len(content))
        content = content[:at] + put + content[at + cut :]
    read(tmp_path / "x.warc.gz", content)
