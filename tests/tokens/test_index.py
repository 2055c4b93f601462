"""The stage index, its manifest, and the samples read through it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pyarrow.parquet
import pytest
from tests.tokens.small import documents, write_sources
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.errors import ConfigError, InputError, Web2gptError
from web2gpt.io.atomic import read_json
from web2gpt.tokens.indexed import IndexedDataset
from web2gpt.tokens.samples import Samples

MakePair = Callable[..., Path]


def test_the_arrays_lead_to_the_tokens(make_pair: MakePair, build: Callable[..., Path]) -> None:
    texts = documents(0, 50)
    manifest = build([("corpus", make_pair("data", texts))])
    for split, expected in (
        ("train", range(40)),
        ("valid", range(40, 45)),
        ("test", range(45, 50)),
    ):
        samples = Samples(manifest, split)
        arrays = {name: np.load(manifest.with_name(f"{split}.{name}.npy"))
                  for name in ("document", "sample", "shuffle")}  # fmt: skip
        assert set(arrays["document"].tolist()) == set(expected)
        stream = [token for d in arrays["document"] for token in texts[d]]
        starts = np.cumsum([0, *(len(texts[d]) for d in arrays["document"])])
        for number in range(len(samples)):
            position, offset = arrays["sample"][arrays["shuffle"][number]]
            begin = starts[position] + offset
            assert samples.sample(number).tolist() == stream[begin : begin + 5]
    assert len(Samples(manifest, "train")) >= 30


def test_a_batch_is_a_function_of_its_place(
    make_pair: MakePair, build: Callable[..., Path]
) -> None:
    samples = Samples(build([("corpus", make_pair("data", documents(0, 50)))]), "train")
    whole = samples.batch(0, 64)
    assert (whole.shape, whole.dtype) == ((64, 5), np.int64)
    for first, count in ((0, 1), (10, 7), (63, 1)):
        assert np.array_equal(samples.batch(first, count), whole[first : first + count])
    beyond = samples.batch(10 * len(samples) - 1, 2)  # nothing ever runs out
    assert np.array_equal(beyond, [samples.sample(len(samples) - 1), samples.sample(0)])


def test_a_longer_run_begins_with_the_shorter_ones_batches(
    make_pair: MakePair, build: Callable[..., Path]
) -> None:
    pair = [("corpus", make_pair("data", documents(0, 50)))]
    short = Samples(build(pair, "short"), "train")
    long = Samples(build(pair, "long", train_samples=500), "train")
    assert np.array_equal(short.batch(0, 30), long.batch(0, 30))


def test_without_weights_sources_are_seen_by_size_and_split_alike(
    make_pair: MakePair, build: Callable[..., Path], tmp_path: Path
) -> None:
    sources = write_sources(tmp_path / "documents.parquet", ["a"] * 30 + ["b"] * 20)
    pair = [("corpus", make_pair("data", documents(0, 50)))]
    manifest = build(pair, sources=sources)
    valid = np.load(manifest.with_name("valid.document.npy"))
    assert set(valid.tolist()) == {24, 25, 26, 46, 47}  # 10% of each
    read = read_json(manifest)["sources"]
    assert [source["name"] for source in read] == ["a", "b"]
    assert sum(source["share"]["requested"] for source in read) == pytest.approx(1)


def test_documents_without_a_source_stand_under_the_datasets_name(
    make_pair: MakePair, build: Callable[..., Path], tmp_path: Path
) -> None:
    path = tmp_path / "documents.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": ["a", None, "b", None, None] * 10}), path)
    manifest = build([("corpus", make_pair("data", documents(0, 50)))], sources=path, split="1")
    read = read_json(manifest)["sources"]
    assert [(one["name"], one["documents"]) for one in read] == [
        ("a", 10),
        ("corpus", 30),
        ("b", 10),
    ]


@pytest.mark.parametrize(
    "columns", [None, {"row": [1] * 50}, {"source": ["a"] * 50, "held_out": ["x"] * 50}]
)
def test_what_is_no_table_of_documents_is_refused(
    make_pair: MakePair, build: Callable[..., Path], tmp_path: Path, columns: Any
) -> None:
    path = tmp_path / "documents.parquet"
    path.write_bytes(b"no")
    if columns:
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(InputError, match="not what tokenize writes"):
        build([("corpus", make_pair("data", documents(0, 50)))], sources=path)


@pytest.mark.parametrize("order", ["stable", "megatron"])
def test_weights_decide_the_shares_of_sources_and_datasets(
    make_pair: MakePair, build: Callable[..., Path], tmp_path: Path, order: str
) -> None:
    sources = write_sources(tmp_path / "documents.parquet", ["a"] * 30 + ["b"] * 20)
    first, second = make_pair("one", documents(0, 50)), make_pair("two", documents(50, 20), 4)
    prefixes = [("corpus", first), ("extra", second)]
    manifest = build(
        prefixes,
        sources=sources,
        weights={"a": 1, "b": 2, "extra": 5},
        train_samples=800,
        order=order,
    )
    read = {source["name"]: source for source in read_json(manifest)["sources"]}
    assert [read[name]["samples"] for name in ("a", "b", "extra")] == [100, 200, 500]
    samples = Samples(manifest, "train")
    assert len(samples) == 800
    groups = {"a": range(200, 224), "b": range(230, 246), "extra": range(250, 266)}
    seen = dict.fromkeys(groups, 0)
    for tokens in samples.batch(0, 800).tolist():
        values = {token for token in tokens if token}
        name = next(name for name, group in groups.items() if values <= set(group))
        seen[name] += 1
    assert seen == {"a": 100, "b": 200, "extra": 500}


def test_a_weight_for_some_sources_only_is_refused(
    make_pair: MakePair, build: Callable[..., Path]
) -> None:
    pairs = [
        ("one", make_pair("one", documents(0, 20))),
        ("two", make_pair("two", documents(0, 20))),
    ]
    with pytest.raises(ConfigError, match="'two' has none"):
        build(pairs, weights={"one": 2.0})


def test_data_smaller_than_a_sequence_still_trains(
    make_pair: MakePair, build: Callable[..., Path]
) -> None:
    manifest = build([("corpus", make_pair("data", [[201, 0], [202, 0]]))], split="1")
    assert Samples(manifest, "train").batch(0, 30).shape == (30, 5)
    with pytest.raises(InputError, match="empty"):
        Samples(manifest, "valid").sample(0)


def test_an_empty_part_and_many_epochs_are_announced(
    make_pair: MakePair, build: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    build([("corpus", make_pair("data", documents(0, 4)))], split="949,50,1", train_samples=99)
    said = " ".join(capsys.readouterr().out.split())
    assert "the valid part is empty" in said
    assert "longer than the data" in said


def test_nothing_to_train_on_is_refused(make_pair: MakePair, build: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="nothing to train on"):
        build([("corpus", make_pair("none", []))])
    with pytest.raises(InputError, match="nothing to train on"):
        build([("corpus", make_pair("data", documents(0, 9)))], split="0,1,1")


def test_identity_follows_contents_and_settings_but_not_paths(
    make_pair: MakePair, build: Callable[..., Path]
) -> None:
    def identity(prefix: Path, name: str, **settings: Any) -> str:
        identity = read_json(build([("corpus", prefix)], name, **settings))["identity"]
        assert isinstance(identity, str)
        return identity

    texts = documents(0, 50)
    first = identity(make_pair("data", texts), "a")
    assert identity(make_pair("copy", texts), "b") == first
    texts[49][0] += 1
    assert identity(make_pair("other", texts), "c") != first
    assert identity(make_pair("data", documents(0, 50)), "d", seed=8) != first


def test_two_builds_have_the_same_bytes(make_pair: MakePair, build: Callable[..., Path]) -> None:
    pair = [("corpus", make_pair("data", documents(0, 50)))]
    first, second = build(pair, "a").parent, build(pair, "b").parent
    names = sorted(path.name for path in first.iterdir())
    assert len(names) == 10
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_an_index_of_other_data_is_refused(make_pair: MakePair, build: Callable[..., Path]) -> None:
    prefix = make_pair("data", documents(0, 50))
    manifest = build([("corpus", prefix)])
    made = manifest.stat().st_mtime_ns
    tokens = prefix.with_suffix(".bin")
    content = bytearray(tokens.read_bytes())
    Samples(manifest, "train", check="full")
    os.utime(tokens, ns=(made + 10**9, made + 10**9))
    Samples(manifest, "train")  # newer, but the same
    content[0] ^= 1
    tokens.write_bytes(content)
    os.utime(tokens, ns=(made + 10**9, made + 10**9))
    with pytest.raises(InputError, match=r"data\.bin: not the file"):
        Samples(manifest, "train")
    os.utime(tokens, ns=(made - 10**9, made - 10**9))
    with pytest.raises(InputError, match=r"data\.bin: not the file"):
        Samples(manifest, "train", check="full")
    tokens.write_bytes(content + b"\0\0")
    with pytest.raises(InputError, match=r"data\.bin: not the file"):
        Samples(manifest, "train")


def test_ids_beyond_the_vocabulary_and_damage_are_refused(
    make_pair: MakePair, build: Callable[..., Path]
) -> None:
    with pytest.raises(InputError, match="another tokenizer"):
        build([("corpus", make_pair("data", [[300, 0]] * 9))])
    with pytest.raises(InputError, match="the id -1"):
        build([("corpus", make_pair("below", [[-1, 0]] * 9, code=4))])
    prefix = make_pair("cut", documents(0, 9))
    prefix.with_suffix(".bin").write_bytes(b"\1\0")
    with pytest.raises(InputError, match="cut short"):
        build([("corpus", prefix)])


def test_a_step_is_traced_to_its_documents(
    make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path],
    encode: Callable[..., Any], tmp_path: Path,
) -> None:  # fmt: skip
    folder = make_corpus(texts)
    tokenizer, files = train(folder), encode(folder)
    runner = CliRunner()
    result = runner.invoke(app, [
        "index", "--tokens", f"corpus={files.bin.with_suffix('')}", "--documents",
        str(files.documents), "--tokenizer", str(tokenizer), "--output", str(tmp_path / "index"),
        "--work", str(tmp_path / "work"), "--sequence-length", "8", "--train-samples", "64",
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    manifest = tmp_path / "index" / "manifest.json"
    result = runner.invoke(app, [
        "tokens", "trace", "--index", str(manifest), "--step", "3", "--global-batch-size", "4",
        "--documents", str(files.documents),
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    said = result.output
    config = tmp_path / "config.yaml"
    source = "{name: web, kind: jsonl, paths: [a.jsonl]}"
    train_settings = "{global_batch_size: 4, micro_batch_size: 1}"
    config.write_text(f"input: [{source}]\ntrain: {train_settings}\nparallel: {{tensor: 1}}\n")
    result = runner.invoke(app, [
        "tokens", "trace", "--index", str(manifest), "--step", "3", "--config", str(config),
        "--documents", str(files.documents),
    ])  # fmt: skip
    assert result.output == said
    as_json = runner.invoke(app, [
        "tokens", "trace", "--index", str(manifest), "--step", "3", "--config", str(config),
        "--documents", str(files.documents), "--json",
    ])  # fmt: skip
    traced = orjson.loads(as_json.output)
    samples = Samples(manifest, "train")
    rows = pyarrow.parquet.read_table(files.documents).to_pylist()
    for number in range(8, 12):
        for piece in samples.pieces(number):
            assert rows[piece.document]["url"] in result.output
            found = traced["samples"][number - 8]["pieces"].pop(0)
            assert found["url"] == rows[piece.document]["url"]
            assert found["last_token"] - found["first_token"] + 1 == piece.length
    shown = runner.invoke(app, [
        "tokens", "show", str(files.idx), "--tokenizer", str(tokenizer), "--documents",
        str(files.documents), "--first", "6", "--count", "1",
    ])  # fmt: skip
    assert texts[7] in shown.output  # the first one is empty and has no entry
    assert "sound" in runner.invoke(app, ["tokens", "verify", str(files.bin)]).output
    dataset = IndexedDataset(files.bin.with_suffix(""))
    for command in ("verify", "show"):
        said = runner.invoke(app, ["tokens", command, str(files.bin), "--json"]).output
        facts = orjson.loads(said)[0] if command == "verify" else orjson.loads(said)
        assert (facts["sequences"], facts["tokens"]) == (len(dataset), len(dataset.tokens))
    assert [one["ids"] for one in facts["shown"]] == [
        dataset.get(n, 0, 64).tolist() for n in range(3)
    ]


def test_faults_of_the_command_line_are_lines(tmp_path: Path, tokenizer: Path) -> None:
    for arguments in (["--tokens", "nameless"], ["--tokens", "a=x", "--weight", "a=-1"]):
        result = CliRunner().invoke(app, [
            "index", *arguments, "--tokenizer", str(tokenizer), "--output", str(tmp_path / "o"),
            "--work", str(tmp_path / "w"),
        ])  # fmt: skip
        assert isinstance(result.exception, Web2gptError)
