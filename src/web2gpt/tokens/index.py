"""The stage index: split the documents, put samples in order, write arrays and manifest.

Invariant: the arrays follow from the contents of .bin and .idx, the tokenizer's size and the
settings; the manifest holds a hash of each of these, and ``identity``, one hash of all that
decides which tokens step k sees. Paths stand in it as given and are no part of the identity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from web2gpt.config.tokens import IndexRun
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import InputError
from web2gpt.io.atomic import write_json
from web2gpt.io.checksums import checksum, checksum_of
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.tokens.blend import blend_orders, blend_sequence
from web2gpt.tokens.indexed import bin_path, idx_path
from web2gpt.tokens.order import EMPTY, Order, megatron_order, once_order, stable_order
from web2gpt.tokens.provenance import check_tokenizer
from web2gpt.tokens.split import SPLITS, Division, divide, split_shares, validation_counts
from web2gpt.tokens.streams import (
    Stream,
    all_lengths,
    held_out_documents,
    make_streams,
    open_datasets,
    scan_dataset,
)
from web2gpt.tokens.summary import print_summary
from web2gpt.tokens.verify import verify_dataset
from web2gpt.tokens.vocabulary import Vocabulary

Array = npt.NDArray[Any]
ARRAYS = ("document", "sample", "shuffle")
FORMAT = 1


@dataclass(frozen=True)
class IndexInputs:
    """What the index is made from: prefixes and documents.parquet by dataset, weights by source."""

    prefixes: Sequence[tuple[str, Path]]
    documents: Mapping[str, Path]
    weights: Mapping[str, float]
    tokenizer: Path

    def files(self) -> list[Path]:
        pairs = [end(prefix) for _, prefix in self.prefixes for end in (bin_path, idx_path)]
        return [*pairs, *self.documents.values(), self.tokenizer]


def build_index(inputs: IndexInputs, output: Path, work_folder: Path, settings: IndexRun) -> None:
    """Run the stage: arrays and manifest.json in the folder ``output``."""
    job = {
        "stage": "index",
        "version": VERSIONS["index"],
        "settings": settings.model_dump(mode="json"),
        "prefixes": [[name, str(prefix)] for name, prefix in inputs.prefixes],
        "weights": dict(inputs.weights),
        "inputs": file_states(inputs.files()),
    }
    splits = [*SPLITS, *map(validation_name, settings.validation)]
    arrays = [f"{split}.{array}.npy" for split in splits for array in ARRAYS]
    targets = [output / name for name in (*arrays, "manifest.json")]
    with WorkFolder(work_folder, job) as work:
        if work.is_published(targets):
            return
        manifest = _make(inputs, settings, work.path)
        write_json(work.path / "manifest.json", manifest)
        work.publish({work.path / target.name: target for target in targets})
        print_summary(manifest)


def _make(inputs: IndexInputs, settings: IndexRun, folder: Path) -> dict[str, Any]:
    """Write the arrays to ``folder``; return the manifest."""
    vocabulary = Vocabulary.load(inputs.tokenizer)
    for _, prefix in inputs.prefixes:
        verify_dataset(prefix)
        check_tokenizer(prefix, vocabulary, inputs.tokenizer)
    datasets = open_datasets(inputs.prefixes, inputs.documents)
    lengths = all_lengths(datasets)
    streams = make_streams(
        datasets, inputs.weights, settings.validation, whole=settings.order == "megatron"
    )
    held_out = held_out_documents(datasets)
    divisions = [divide(stream, held_out, settings.split) for stream in streams]
    parts = _parts(streams, divisions)
    _check_not_empty(parts["train"], lengths, settings)
    train_order, shares = _train_order(streams, divisions, lengths, settings)
    splits = {}
    for split, documents in parts.items():
        is_train = split == "train"
        order = train_order if is_train else _pass_order(documents, lengths, settings)
        wanted = settings.train_samples if is_train else len(order.shuffle)
        facts = _facts(documents, lengths, order, wanted, settings.sequence_length)
        splits[split] = facts | {"files": _save(order, folder, split)}
    for split, share in zip(SPLITS, split_shares(settings.split), strict=True):
        splits[split] = {"share": share} | splits[split]
    splits["valid"]["claimed"] = validation_counts(divisions)
    manifest = {
        "format": FORMAT,
        "settings": settings.model_dump(mode="json"),
        "tokenizer": {"path": str(inputs.tokenizer)} | vocabulary.as_json(),
        "datasets": [scan_dataset(dataset, vocabulary) for dataset in datasets],
        "sources": shares,
        "unused": _unused(inputs, settings, shares),
        "splits": splits,
    }
    return {"identity": identity_of(manifest)} | manifest


def _check_not_empty(train: Array, lengths: Array, settings: IndexRun) -> None:
    """Raise ``InputError`` if there is nothing to train on."""
    if not int(lengths[train].sum()):
        raise InputError(
            f"nothing to train on: of {len(lengths):,} documents, the split {settings.split!r} "
            "leaves none with tokens to train; stats/*.json tell where documents were lost."
        )


def identity_of(manifest: Mapping[str, Any]) -> str:
    """One hash of all that decides which tokens are seen when: contents, never paths."""
    decides = {
        "tokenizer": manifest["tokenizer"]["blake2b"],
        "data": [[data["bin"], data["idx"]] for data in manifest["datasets"]],
        "settings": manifest["settings"],
        "arrays": [[file["blake2b"] for file in split["files"].values()]
                   for split in manifest["splits"].values()],
    }  # fmt: skip
    return checksum_of(orjson.dumps(decides, option=orjson.OPT_SORT_KEYS))


def validation_name(source: str) -> str:
    """The part that a named validation set is read under."""
    return f"valid-{source}"


def _unused(
    inputs: IndexInputs, settings: IndexRun, shares: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Names that have a weight, but no documents to train on."""
    used = {share["name"] for share in shares} | {name for name, _ in inputs.prefixes}
    return [name for name in inputs.weights if name not in used | set(settings.validation)]


def _parts(streams: Sequence[Stream], divisions: Sequence[Division]) -> dict[str, Array]:
    """The documents of each part of the index."""
    parts = {
        split: np.concatenate([division.part(split) for division in divisions]) for split in SPLITS
    }
    for split in ("valid", "test"):
        parts[split] = np.sort(parts[split])
    named = [stream for stream in streams if stream.validation]
    return parts | {validation_name(stream.name): stream.documents for stream in named}


def _train_order(
    streams: Sequence[Stream],
    divisions: Sequence[Division],
    lengths: Array,
    settings: IndexRun,
) -> tuple[Order, list[dict[str, Any]]]:
    """The training samples, and what each source was asked for and got."""
    chosen = [division.train for division in divisions]
    present = [i for i, part in enumerate(chosen) if lengths[part].sum(dtype=np.int64) > 0]
    if not present:
        return EMPTY, []
    tokens = [int(lengths[chosen[i]].sum(dtype=np.int64)) for i in present]
    weights = [streams[i].weight for i in present]
    if len(present) == 1 or None in weights:
        documents = np.concatenate([chosen[i] for i in present])
        order = _draw(documents, lengths, settings, settings.train_samples, 0)
        asked, counts = [count / sum(tokens) for count in tokens], [None] * len(present)
    else:
        given = [weight or 0.0 for weight in weights]
        source, number = blend_sequence(given, settings.train_samples)
        counts = np.bincount(source, minlength=len(present)).tolist()
        orders = [
            _draw(chosen[i], lengths, settings, max(1, count), i)
            for i, count in zip(present, counts, strict=True)
        ]
        order = blend_orders(orders, source, number)
        asked = [weight / sum(given) for weight in given]
    rows = zip(present, tokens, asked, counts, strict=True)
    return order, [
        {
            "name": streams[i].name,
            "documents": len(chosen[i]),
            "tokens": size,
            "weight": streams[i].weight,
            "share": _share(share, count, settings.train_samples),
            "samples": count,
        }
        for i, size, share, count in rows
    ]


def _share(requested: float, count: int | None, samples: int) -> dict[str, float]:
    """Of a source in the training samples; one that is not weighted gets what its size asks for."""
    achieved = requested if count is None else count / samples
    return {"requested": requested, "achieved": achieved}


def _draw(documents: Array, lengths: Array, settings: IndexRun, samples: int, stream: int) -> Order:
    """Training samples of one stream, in the order that the settings ask for."""
    size, length, seed = lengths[documents], settings.sequence_length, settings.seed
    if settings.order == "megatron":
        return megatron_order(documents, size, length=length, samples=samples, seed=seed)
    return stable_order(documents, size, length=length, samples=samples, seed=seed, stream=stream)


def _pass_order(documents: Array, lengths: Array, settings: IndexRun) -> Order:
    """All documents once, for evaluation."""
    size = lengths[documents]
    if not size.sum(dtype=np.int64):
        return EMPTY
    if settings.order == "megatron":
        return megatron_order(
            documents, size, length=settings.sequence_length, samples=None, seed=settings.seed
        )
    return once_order(documents, size, length=settings.sequence_length)


def _facts(
    documents: Array, lengths: Array, order: Order, samples: int, length: int
) -> dict[str, Any]:
    """Counts of one split. ``targets``: tokens to predict in one pass, each counted once."""
    tokens = int(lengths[documents].sum(dtype=np.int64))
    return {
        "documents": len(documents),
        "tokens": tokens,
        "samples": len(order.shuffle),
        "samples_used": samples,
        "targets": max(0, tokens - 1),
        "epochs": round(samples * length / tokens, 4) if tokens else 0.0,
    }


def _save(order: Order, folder: Path, split: str) -> dict[str, Any]:
    """Write the three arrays; their names, sizes and hashes."""
    files = {}
    for name in ARRAYS:
        path = folder / f"{split}.{name}.npy"
        with path.open("wb") as file:
            np.save(file, getattr(order, name))
        files[path.name] = {"bytes": path.stat().st_size, "blake2b": checksum(path)}
    return files
