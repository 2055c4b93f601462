"""The stage index on a large dataset: seconds and peak memory.

    python tests/benchmarks/sample_index.py --tokens 1e9 --documents 1e6

Lengths are drawn from a log-normal distribution, ids are zeros.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tokenizers import AddedToken, Tokenizer, models

from web2gpt.config.tokens import IndexRun
from web2gpt.tokens.index import IndexInputs, build_index
from web2gpt.tokens.indexed import write_idx

SECONDS, BYTES = 10.0, 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=float, default=1e9)
    parser.add_argument("--documents", type=float, default=1e6)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--order", choices=("stable", "megatron"), default="stable")
    parser.add_argument("--work", type=Path, help="folder for the files; none: a temporary one")
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.work) as folder:
        figures = measure(Path(folder), options)
    print(json.dumps(figures))
    if figures["seconds"] > SECONDS or figures["peak_memory"] > BYTES:
        sys.exit(f"more than {SECONDS:g} s or {BYTES:g} bytes")


def measure(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    tokens = make_dataset(folder, int(options.tokens), int(options.documents))
    length = 1024
    settings = IndexRun(
        order=options.order,
        sequence_length=length,
        train_samples=int(options.epochs * 0.949 * tokens / length),
    )
    inputs = IndexInputs([("corpus", folder / "data")], {}, {}, folder / "tokenizer.json")
    start, processor = time.monotonic(), time.process_time()
    build_index(inputs, folder / "index", folder / "work", settings)
    return {
        "tokens": tokens,
        "seconds": time.monotonic() - start,
        "processor_seconds": time.process_time() - processor,
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def make_dataset(folder: Path, tokens: int, documents: int) -> int:
    """A pair of uint16 and a tokenizer of one word; returns the tokens that it has."""
    drawn = np.random.default_rng(0).lognormal(6, 1, documents)
    lengths = np.maximum(1, drawn * tokens / drawn.sum()).astype(np.int32)
    with (folder / "data.idx").open("wb") as file:
        write_idx(file, lengths, np.dtype("<u2"))
    total = int(lengths.sum(dtype=np.int64))
    with (folder / "data.bin").open("wb") as file:
        block = bytes(2_000_000)
        for begin in range(0, 2 * total, len(block)):
            file.write(block[: 2 * total - begin])
    tokenizer = Tokenizer(models.BPE())
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return total


if __name__ == "__main__":
    main()
