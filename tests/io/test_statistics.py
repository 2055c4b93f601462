"""Statistics of a stage add up, and too many errors stop it."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.errors import InputError, LimitError
from web2gpt.io.statistics import Statistics, add_up, check_errors

counts = st.dictionaries(st.text(max_size=5), st.integers(0, 1000), max_size=4).map(Counter)


@st.composite
def shards(draw: st.DrawFn) -> Statistics:
    kept, dropped, errors = draw(st.integers(0, 1000)), draw(counts), draw(counts)
    read = kept + dropped.total() + errors.total()
    return Statistics(
        "extract", "pages", read, kept, draw(st.integers(0, 1000)), dropped, errors,
        draw(st.integers(0, 1 << 40)), draw(st.integers(0, 1 << 40)), draw(counts),
        {"seconds": draw(st.integers(0, 1000)) / 8},
    )  # fmt: skip


@given(shards())
def test_json_form_comes_back_the_same(one: Statistics) -> None:
    assert Statistics.from_json(one.as_json()) == one


@settings(max_examples=50)
@given(st.lists(shards(), min_size=1, max_size=4))
def test_sums_are_sums_in_any_order(parts: list[Statistics]) -> None:
    before = [part.as_json() for part in parts]
    total = add_up(parts)
    assert total.as_json() == add_up(parts[::-1]).as_json()
    assert [part.as_json() for part in parts] == before  # the parts are left as they were
    for name in ("read", "kept", "out", "bytes_in", "bytes_out"):
        assert getattr(total, name) == sum(getattr(part, name) for part in parts)
    assert total.dropped.total() == sum(part.dropped.total() for part in parts)
    assert total.time["seconds"] == sum(part.time["seconds"] for part in parts)
    assert total.read == total.kept + total.dropped.total() + total.errors.total()


def test_counts_that_do_not_add_up_are_never_written(tmp_path: Path) -> None:
    wrong = Statistics("clean", "documents", read=3, kept=1, dropped=Counter(short=1))
    with pytest.raises(AssertionError, match="3 read, 2 accounted for"):
        wrong.write(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_the_written_form_is_that_of_the_contract() -> None:
    one = Statistics("clean", "documents", 6, 3, 4, Counter(z=1, a=1), Counter(not_json=1), 10, 20)
    assert one.as_json() == {
        "stage": "clean",
        "unit": "documents",
        "in": 6,
        "kept": 3,
        "dropped": {"a": 1, "z": 1},
        "errors": {"not_json": 1},
        "out": 4,
        "bytes": {"in": 10, "out": 20},
        "figures": {},
        "time": {},
    }
    assert list(one.as_json()["dropped"]) == ["a", "z"]


@pytest.mark.parametrize(("errors", "limit", "fails"), [(5, 0.05, False), (6, 0.05, True),
                                                        (0, 0.0, False), (1, 0.0, True),
                                                        (100, 1.0, False)])  # fmt: skip
def test_the_limit_is_a_share_that_may_be_reached(errors: int, limit: float, fails: bool) -> None:
    total = Statistics("fetch", "URLs", 100, 100 - errors, errors=Counter(bad=errors))
    if fails:
        with pytest.raises(LimitError, match=rf"{errors} of 100 URLs .*{errors} bad.*{limit}"):
            check_errors(total, limit)
    else:
        check_errors(total, limit)


def test_an_empty_stage_is_within_every_limit() -> None:
    check_errors(Statistics("fetch", "URLs"), 0.0)


def test_the_summary_names_every_loss_the_commonest_first() -> None:
    one = Statistics(
        "clean", "documents", 1003, 1, 1, Counter(short=1, language=1000), Counter(bad=1)
    )
    assert one.summary() == (
        "clean: 1,003 documents in, 1 kept, 1 out (1,000 language, 1 short, 1 bad), 0.0 s"
    )


def write_parts(folder: Path, errors: int) -> list[str]:
    paths = [folder / "a.json", folder / "b.json"]
    Statistics("fetch", "URLs", 10, 10, 10).write(paths[0])
    Statistics("fetch", "URLs", 10, 10 - errors, 10, errors=Counter(bad=errors)).write(paths[1])
    return [argument for path in paths for argument in ("--part", str(path))]


def test_the_command_adds_up_and_says_one_line(tmp_path: Path) -> None:
    output = tmp_path / "all.json"
    arguments = ["statistics", *write_parts(tmp_path, 1), "--output", str(output)]
    result = CliRunner().invoke(app, [*arguments, "--limit", "0.05"])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["fetch: 20 URLs in, 19 kept, 20 out (1 bad), 0.0 s"]
    assert Statistics.load(output).read == 20


def test_the_command_writes_nothing_past_the_limit(tmp_path: Path) -> None:
    output = tmp_path / "all.json"
    arguments = ["statistics", *write_parts(tmp_path, 2), "--output", str(output)]
    result = CliRunner().invoke(app, [*arguments, "--limit", "0.05"])
    assert isinstance(result.exception, LimitError)
    assert not output.exists()


def test_the_command_can_ask_for_something_to_be_left(tmp_path: Path) -> None:
    part, output = tmp_path / "a.json", tmp_path / "all.json"
    Statistics("fetch", "urls", 5, dropped=Counter(dns=2, http_404=3)).write(part)
    arguments = ["statistics", "--part", str(part), "--output", str(output)]
    result = CliRunner().invoke(app, [*arguments, "--not-empty"])
    assert isinstance(result.exception, InputError)
    assert "nothing is left of 5 urls (3 http_404, 2 dns), so" in str(result.exception)
    assert not output.exists()
    assert CliRunner().invoke(app, arguments).exit_code == 0


@pytest.mark.parametrize(
    ("stage", "is_told"), [("urls", True), ("extract", False), ("merge", True)]
)
def test_a_stage_that_nothing_came_to_leaves_it_to_the_one_before(
    tmp_path: Path, stage: str, is_told: bool
) -> None:
    part = tmp_path / "a.json"
    Statistics(stage, "things").write(part)
    named = ["--part", str(part), "--output", str(tmp_path / "all.json")]
    result = CliRunner().invoke(app, ["statistics", *named, "--not-empty"])
    assert (result.exit_code == 1) == is_told


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[1]", b'{"stage": "fetch"}', b"\xff"])
def test_the_command_names_a_part_that_is_no_statistics(
    tmp_path: Path, content: bytes | None
) -> None:
    part = tmp_path / "part.json"
    if content is not None:
        part.write_bytes(content)
    arguments = ["statistics", "--part", str(part), "--output", str(tmp_path / "all.json")]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InputError)
    assert str(part) in str(result.exception)


def test_the_command_refuses_parts_of_different_stages(tmp_path: Path) -> None:
    arguments = ["statistics", *write_parts(tmp_path, 0), "--output", str(tmp_path / "all.json")]
    Statistics("clean", "documents").write(tmp_path / "b.json")
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InputError)
    assert "counts documents of clean" in str(result.exception)


def test_pages_and_records_of_one_stage_add_up(tmp_path: Path) -> None:
    """Archives beside JSON lines, as extract reads them."""
    parts = [Statistics("extract", unit, 2, 2, 2) for unit in ("records", "pages", "records")]
    for number, part in enumerate(parts):
        part.write(tmp_path / f"{number}.json")
    named = [word for n in range(3) for word in ("--part", str(tmp_path / f"{n}.json"))]
    result = CliRunner().invoke(app, ["statistics", *named, "--output", str(tmp_path / "all.json")])
    assert result.exit_code == 0, result.exception
    assert result.output.startswith("extract: 6 pages and records in, 6 kept")
