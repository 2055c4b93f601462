"""Named validation sets, the held-out share and the split: which of them claims a document."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.tokens.small import documents, write_sources

from web2gpt.errors import ConfigError, InputError
from web2gpt.io.atomic import read_json
from web2gpt.tokens.samples import Samples

Build = Callable[..., Path]
MakePair = Callable[..., Path]


def seen(manifest: Path, split: str) -> set[int]:
    """Numbers of the documents that a part of the index speaks of."""
    return set(np.load(manifest.with_name(f"{split}.document.npy")).tolist())


@pytest.mark.parametrize("order", ["stable", "megatron"])
def test_each_document_goes_to_the_first_that_claims_it(
    make_pair: MakePair, build: Build, tmp_path: Path, order: str
) -> None:
    held_out = [0, 7, 13, 19, 25]  # 25 is of the validation set: it stays there
    sources = write_sources(tmp_path / "d.parquet", ["a"] * 24 + ["b"] * 10, held_out)
    manifest = build(
        [("corpus", make_pair("data", documents(0, 34)))],
        sources=sources,
        validation=("b",),
        order=order,
    )
    left = [number for number in range(24) if number not in held_out]
    assert seen(manifest, "train") == set(left[:16])
    assert seen(manifest, "test") == set(left[18:])
    assert seen(manifest, "valid") == {*left[16:18], 0, 7, 13, 19, *range(24, 34)}
    assert seen(manifest, "valid-b") == set(range(24, 34))
    claimed = read_json(manifest)["splits"]["valid"]["claimed"]
    assert claimed == {"named": 10, "held_out": 4, "split": 2}


def test_the_precedence_stands_beneath_the_table(
    make_pair: MakePair, build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = write_sources(tmp_path / "d.parquet", ["a"] * 24 + ["b"] * 10, [3])
    build([("corpus", make_pair("data", documents(0, 34)))], sources=sources, validation=("b",))
    said = capsys.readouterr().out
    assert "valid-b" in said
    said = " ".join(said.split())
    assert "the first that claims it: a named validation set, the held-out share, the split" in said
    assert "10 documents of named sets, 1 held out, 3 of the split" in said


def test_a_dataset_may_be_a_validation_set(make_pair: MakePair, build: Build) -> None:
    pairs = [
        ("one", make_pair("one", documents(0, 20))),
        ("two.v1", make_pair("two", documents(50, 4))),
    ]
    manifest = build(pairs, validation=("two.v1",), weights={"one": 3.0}, split="1")
    assert seen(manifest, "train") == set(range(20))
    assert seen(manifest, "valid") == seen(manifest, "valid-two.v1") == {20, 21, 22, 23}
    samples = Samples(manifest, "valid-two.v1")
    assert set(samples.batch(0, len(samples)).ravel().tolist()) == {0, 250, 251, 252, 253}
    with pytest.raises(InputError, match="no part 'valid-one'"):
        Samples(manifest, "valid-one")


def test_a_validation_set_without_documents_is_refused(make_pair: MakePair, build: Build) -> None:
    with pytest.raises(ConfigError, match="'wiki' has no documents; sources that have: corpus"):
        build([("corpus", make_pair("data", documents(0, 20)))], validation=("wiki",))


def test_a_weight_without_documents_is_said(
    make_pair: MakePair, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build([("corpus", make_pair("data", documents(0, 20)))], weights={"corpus": 1.0, "gone": 2.0})
    assert "source 'gone' has a weight, but no documents" in " ".join(
        capsys.readouterr().out.split()
    )


def test_requested_and_achieved_shares_are_printed(
    make_pair: MakePair, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [
        ("one", make_pair("one", documents(0, 20))),
        ("two", make_pair("two", documents(50, 20))),
    ]
    build(pairs, weights={"one": 1.0, "two": 2.0}, train_samples=100)
    said = capsys.readouterr().out
    lines = {line.split()[1]: line for line in said.splitlines() if line.startswith("│")}
    assert "33.333%" in lines["one"]
    assert "33.000%" in lines["one"]
    assert "66.667%" in lines["two"]
    assert "67.000%" in lines["two"]
