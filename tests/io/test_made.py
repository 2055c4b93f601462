"""Whatever is wrong with a file that another command should have made, it is said as that."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from web2gpt.errors import InputError, of_the_system
from web2gpt.io.made import made_by


def read(path: Path) -> int:
    with made_by("index", path):
        return int(json.loads(path.read_text())["settings"]["seed"])


def test_what_is_right_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"settings": {"seed": 7}}')
    assert read(path) == 7


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '"x"', "{}", '{"settings": 3}', '{"settings": {"seed": {}}}']
)
def test_what_is_wrong_is_told_without_pythons_words(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InputError) as raised:
        read(path)
    assert str(raised.value) == (
        f"{path}: not what index writes, or damaged; run index again, or name another file."
    )


def test_a_missing_file_and_a_folder_are_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; run index first"):
        read(tmp_path / "none.json")
    with pytest.raises(InputError, match="not a file; name the one that index wrote"):
        read(tmp_path)


def test_damaged_tables_are_told_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 broken PAR1")
    with pytest.raises(InputError, match="not what dedup writes"), made_by("dedup", path):
        pq.read_table(path)


def test_an_error_of_ours_goes_through(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mine"), made_by("index", tmp_path / "a"):
        raise InputError("mine")


def test_what_the_system_refuses_names_the_way_out(tmp_path: Path) -> None:
    full = of_the_system(OSError(28, "No space left on device", "results/x"))
    assert str(full) == (
        "results/x: no space left on device; free some space and run it again; what was done is "
        "kept."
    )
    assert of_the_system(OSError(5, "Input/output error")) is None
