"""Indexed datasets and sample indices, against megatron-core's own code."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from web2gpt.config.tokens import IndexRun
from web2gpt.tokens.blend import blend_sequence
from web2gpt.tokens.encoder import with_eod
from web2gpt.tokens.indexed import IndexedDataset, write_idx
from web2gpt.tokens.order import megatron_order
from web2gpt.tokens.split import split_bounds
from web2gpt.tokens.verify import verify_dataset

pytestmark = pytest.mark.peers

Documents = list[np.ndarray[Any, Any]]


def some_documents(count: int, seed: int = 0, longest: int = 90) -> Documents:
    random = np.random.default_rng(seed)
    return [random.integers(1, 60000, random.integers(1, longest)) for _ in range(count)]


def write_megatron(prefix: Path, documents: Documents, dtype: Any) -> None:
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
    for document in documents:
        builder.add_document(torch.from_numpy(document), [len(document)])
    builder.finalize(f"{prefix}.idx")


def write_ours(prefix: Path, documents: Documents, dtype: Any) -> None:
    ids = np.concatenate([document[:-1] for document in documents])
    offsets = np.cumsum([0, *(len(document) - 1 for document in documents)])
    together, lengths = with_eod(ids.astype(np.uint32), offsets, 0, np.dtype(dtype))
    prefix.with_suffix(".bin").write_bytes(together.tobytes())
    with prefix.with_suffix(".idx").open("wb") as file:
        write_idx(file, lengths, np.dtype(dtype))


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_bin_and_idx_are_those_of_megatron(tmp_path: Path, dtype: Any) -> None:
    from megatron.core.datasets.indexed_dataset import IndexedDataset as MegatronDataset

    documents = some_documents(500)
    for document in documents:
        document[-1] = 0
    write_megatron(tmp_path / "theirs", documents, dtype)
    write_ours(tmp_path / "ours", documents, dtype)
    for ending in (".bin", ".idx"):
        theirs = (tmp_path / "theirs").with_suffix(ending).read_bytes()
        assert (tmp_path / "ours").with_suffix(ending).read_bytes() == theirs
    read = MegatronDataset(str(tmp_path / "ours"))
    ours = verify_dataset(tmp_path / "theirs")
    for number, document in enumerate(documents):
        assert np.array_equal(read[number], document)
        assert np.array_equal(ours.get(number), document)


@pytest.mark.parametrize("split", ["949,50,1", "90,9,1", "969, 30, 1", "1,1,1", "98/2/0", "1"])
def test_splits_are_those_of_megatron(split: str) -> None:
    from megatron.core.datasets.blended_megatron_dataset_config import (
        convert_split_vector_to_split_matrix,
        parse_and_normalize_split,
    )

    matrix = convert_split_vector_to_split_matrix(parse_and_normalize_split(split))
    for count in itertools.chain(range(1200), (10**6 + 1, 123_456_789)):
        for part, bounds in zip(matrix, split_bounds(split, count), strict=True):
            if part is None:
                assert bounds[0] == bounds[1]
            else:
                assert bounds == tuple(round(edge * float(count)) for edge in part)


def megatron_dataset(
    prefix: Path, indices: Sequence[int], samples: int | None, length: int, seed: int
) -> Any:
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset as MegatronDataset
    from megatron.core.datasets.utils import Split

    class Tokenizer:
        eod, vocab_size = 0, 60001
        unique_identifiers = {"class": "test"}  # noqa: RUF012 - what it reads of a tokenizer

    config = GPTDatasetConfig(
        random_seed=seed,
        sequence_length=length,
        blend=([str(prefix)], None),
        split="1,0,0",
        path_to_cache=str(prefix.parent / f"cache-{indices[0]}-{samples}-{length}-{seed}"),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
        tokenizer=Tokenizer(),
    )
    return GPTDataset(
        MegatronDataset(str(prefix)),
        str(prefix),
        np.array(indices, np.int32),
        samples,
        Split.train,
        config,
    )


def megatron_arrays(*arguments: Any) -> tuple[Any, Any, Any]:
    dataset = megatron_dataset(*arguments)
    return dataset.document_index, dataset.sample_index, dataset.shuffle_index


@pytest.mark.parametrize("samples", [None, 1, 20, 170, 180, 300, 350, 1000])
@pytest.mark.parametrize(("length", "seed"), [(64, 1234), (7, 0), (1000, 5)])
def test_the_sample_index_is_that_of_megatron(
    tmp_path: Path, samples: int | None, length: int, seed: int
) -> None:
    documents = some_documents(250, seed=1)
    write_ours(tmp_path / "data", documents, np.int32)
    indices = np.arange(7, 240)
    theirs = megatron_arrays(tmp_path / "data", indices, samples, length, seed)
    data = IndexedDataset(tmp_path / "data")
    ours = megatron_order(indices, data.lengths[indices], length=length, samples=samples, seed=seed)
    assert np.array_equal(ours.document, theirs[0])
    assert np.array_equal(ours.sample, theirs[1])
    assert np.array_equal(ours.shuffle, theirs[2])
    assert ours.document.dtype == theirs[0].dtype
    assert ours.shuffle.dtype == theirs[2].dtype


def test_the_stage_gives_megatrons_samples(tmp_path: Path) -> None:
    from web2gpt.tokens.index import IndexInputs, build_index
    from web2gpt.tokens.samples import Samples

    documents = some_documents(300, seed=2)
    write_ours(tmp_path / "data", documents, np.int32)
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(wide_tokenizer())
    settings = IndexRun(
        split="90,9,1", order="megatron", seed=9, sequence_length=32, train_samples=500
    )
    inputs = IndexInputs([("corpus", tmp_path / "data")], {}, {"corpus": 1.0}, tokenizer)
    build_index(inputs, tmp_path / "index", tmp_path / "work", settings)
    prefix = tmp_path / "data"
    for split, bounds in zip(("train", "valid", "test"), split_bounds("90,9,1", 300), strict=True):
        wanted = 500 if split == "train" else None
        document, sample, shuffle = megatron_arrays(prefix, range(*bounds), wanted, 32, 9)
        samples = Samples(tmp_path / "index" / "manifest.json", split)
        assert np.array_equal(samples.document_index, document)
        assert np.array_equal(samples.sample_index, sample)
        assert np.array_equal(samples.shuffle_index, shuffle)


def test_a_whole_blended_run_reads_megatrons_samples(tmp_path: Path) -> None:
    from web2gpt.tokens.index import IndexInputs, build_index
    from web2gpt.tokens.samples import Samples

    shares, counts = {"one": 0.25, "two": 0.75}, {"one": 150, "two": 450}
    theirs = {}
    for number, name in enumerate(shares):
        write_ours(tmp_path / name, some_documents(60 + 90 * number, seed=number), np.int32)
        documents = range(60 + 90 * number)
        theirs[name] = megatron_dataset(tmp_path / name, documents, counts[name], 32, 9)
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(wide_tokenizer())
    settings = IndexRun(split="1", order="megatron", seed=9, sequence_length=32, train_samples=600)
    prefixes = [(name, tmp_path / name) for name in shares]
    build_index(
        IndexInputs(prefixes, {}, shares, tokenizer), tmp_path / "i", tmp_path / "w", settings
    )
    samples = Samples(tmp_path / "i" / "manifest.json", "train")
    seen = dict.fromkeys(shares, 0)
    for number in range(600):
        first = next(samples.pieces(number)).document
        name = prefixes[samples.locate(first)[0]][0]
        item = theirs[name][seen[name]]
        tokens = samples.sample(number)
        assert np.array_equal(tokens[:-1], item["tokens"])
        assert np.array_equal(tokens[1:], item["labels"])
        seen[name] += 1
    assert seen == counts


@pytest.mark.parametrize("weights", [(0.3, 0.7), (1, 1, 1), (0.01, 5, 0.5, 2), (1e-4, 1)])
def test_a_blend_is_never_further_from_its_shares_than_megatrons(
    weights: tuple[float, ...],
) -> None:
    from megatron.core.datasets.helpers import build_blending_indices

    size, count = 20_000, len(weights)
    shares = np.array(weights, np.float64) / sum(weights)
    theirs, numbers = np.zeros(size, np.int16), np.zeros(size, np.int64)
    build_blending_indices(theirs, numbers, shares, count, size, False)
    ours, _ = blend_sequence(weights, size)
    ideal = np.arange(1, size + 1)[:, None] * shares
    off = [
        np.abs(np.cumsum(sequence[:, None] == np.arange(count), axis=0) - ideal).max()
        for sequence in (ours, theirs)
    ]
    assert off[0] <= off[1] + 1e-9
    assert np.abs(np.bincount(ours, minlength=count) - size * shares).max() < 1


def test_merged_datasets_are_megatrons(tmp_path: Path) -> None:
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    from web2gpt.tokens.merge import merge_datasets

    prefixes = [tmp_path / name for name in ("a", "b", "c")]
    for number, prefix in enumerate(prefixes):
        write_megatron(prefix, some_documents(20 + number, seed=number), np.int32)
    builder = IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=np.int32)
    for prefix in prefixes:
        builder.add_index(str(prefix))
    builder.finalize(str(tmp_path / "theirs.idx"))
    merge_datasets(prefixes, tmp_path / "ours")
    for ending in ("bin", "idx"):
        theirs = (tmp_path / f"theirs.{ending}").read_bytes()
        assert (tmp_path / f"ours.{ending}").read_bytes() == theirs


def wide_tokenizer() -> str:
    """A tokenizer.json of 60,001 words, enough for the ids of the test."""
    import tokenizers

    words = {"<|endoftext|>": 0} | {f"w{number}": number for number in range(1, 60001)}
    model = tokenizers.models.WordLevel(words, unk_token="w1")
    return str(tokenizers.Tokenizer(model).to_str())
