"""Tokenize against Megatron's own tools/preprocess_data.py: the same documents, the same 32k BPE.

    python tests/benchmarks/tokens.py --text FOLDER --peer CHECKOUT --peer-python PYTHON

Each round runs, one after another: the command ``web2gpt tokenize`` from corpus.jsonl.zst to
.bin/.idx; the encoder alone, on texts that lie in memory, with as many threads; and the peer from
the .jsonl of the same documents. Both start slowly (the peer imports torch), so both are also run
on a single document; rates are given with that taken off, and for the whole commands. Both pairs
must be the same bytes.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from web2gpt.io.frames import FrameWriter, read_documents, read_frames

TARGET = 30.0
COMMAND = "import sys; from web2gpt.cli import main; sys.exit(main())"


def main() -> None:
    options = read_options()
    with TemporaryDirectory(dir=options.work) as folder:
        work = Path(folder)
        texts = read_texts(options.text or Path(os.__file__).parent)
        make_corpus(work / "one", iter(["one document"]), 0)
        size = make_corpus(work / "all", resampled(texts), int(options.megabytes * 1e6)) / 1e6
        make_tokenizer(work)
        rounds = [run_round(work, options) for _ in range(options.runs)]
    rates = {"text_mb": size}
    for name in rounds[0]:
        median = statistics.median(each[name] for each in rounds)
        rates[name] = median / 1e6 if "memory" in name else size / median
    for kind in ("clock", "processor", "whole_clock") if options.peer else ():
        pairs = [(each[f"peer_{kind}"], each[f"ours_{kind}"]) for each in rounds]
        rates[f"ratio_{kind}"] = statistics.median(theirs / ours for theirs, ours in pairs)
    print("MB of text a second, of the processors too; memory in MB")
    for name, value in rates.items():
        print(f"{name:22} {value:12,.1f}")
    print(json.dumps(rates | {"rounds": rounds}))
    if options.peer and rates["ratio_clock"] < TARGET:
        sys.exit(f"less than {TARGET:g} times the peer's rate")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--text", type=Path, help="folder of HTML or text; none: Python's sources")
    parser.add_argument("--megabytes", type=float, default=200, help="text to tokenize")
    parser.add_argument("--workers", type=int, default=2, help="threads, and the peer's processes")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", type=Path, help="checkout of NVIDIA/Megatron-LM")
    parser.add_argument("--peer-python", default=sys.executable, help="Python that can run it")
    parser.add_argument("--work", type=Path, help="folder for the files; none: a temporary one")
    return parser.parse_args()


def make_corpus(folder: Path, texts: Iterator[str], size: int) -> int:
    """Write corpus.jsonl.zst, its frames and corpus.jsonl; return the bytes of text."""
    written = 0
    folder.mkdir()
    with (
        FrameWriter(folder / "corpus.jsonl.zst", folder / "frames.parquet", 4 << 20) as writer,
        (folder / "corpus.jsonl").open("w") as plain,
    ):
        for number, text in enumerate(texts):
            record = {"id": f"{number:032x}", "url": None, "source": "bench", "text": text}
            writer.write(record)
            plain.write(json.dumps(record) + "\n")
            written += len(text.encode())
            if written >= size:
                break
    return written


def read_texts(folder: Path) -> list[str]:
    """The texts of a folder's files, markup taken off."""
    texts = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".html", ".txt", ".rst", ".md", ".py") or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".html":
            text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", text)
            text = re.sub(r"[ \t]*\n\s*", "\n", re.sub(r"[ \t]+", " ", text))
        if len(text) > 500:
            texts.append(text.strip())
    if not texts:
        sys.exit(f"{folder}: no texts there")
    return texts


def resampled(texts: Sequence[str]) -> Iterator[str]:
    """All texts once; then drawn ones in which every tenth word is another one's."""
    yield from texts
    draw = random.Random(0)
    while True:
        words = re.split(r"(?<=\s)", draw.choice(texts))
        others = re.split(r"(?<=\s)", draw.choice(texts))
        for at in range(0, len(words), 10):
            words[at] = draw.choice(others)
        yield "".join(words)


def make_tokenizer(work: Path) -> None:
    """A BPE of 32,768 tokens trained on the corpus, also as a Hugging Face folder for the peer."""
    run([sys.executable, "-c", COMMAND, "tokenizer", "--corpus", work / "all" / "corpus.jsonl.zst",
         "--frames", work / "all" / "frames.parquet", "--output", work / "hf" / "tokenizer.json",
         "--manifest", work / "hf" / "manifest.json", "--work", work / "work-tokenizer",
         "--vocab-size", "32768", "--sample-bytes", "20000000"])  # fmt: skip
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    (work / "hf" / "tokenizer_config.json").write_text(json.dumps(config))


def run_round(work: Path, options: argparse.Namespace) -> dict[str, float]:
    """Seconds of ours, the encoder alone and the peer; and our peak memory in bytes."""
    start, whole = (run_ours(work, options, name) for name in ("one", "all"))
    figures = {"memory": whole["memory"]} | differences("ours", start, whole)
    encoder = [sys.executable, __file__, "--encoder", work, options.workers]
    figures["encoder"] = float(subprocess.check_output([*map(str, encoder)]).split()[-1])
    if options.peer:
        start, whole = (run_peer(work, options, name) for name in ("one", "all"))
        figures |= differences("peer", start, whole)
        for ending in ("bin", "idx"):
            theirs = work / f"peer-all_text_document.{ending}"
            if (work / f"ours-all.{ending}").read_bytes() != theirs.read_bytes():
                sys.exit(f"the two .{ending} differ")
    return figures


def differences(name: str, start: dict[str, float], whole: dict[str, float]) -> dict[str, float]:
    """Seconds of a command without its start, and all of them."""
    kinds = ("clock", "processor")
    return {f"{name}_{kind}": whole[kind] - start[kind] for kind in kinds} | {
        f"{name}_whole_{kind}": whole[kind] for kind in kinds
    }


def run_ours(work: Path, options: argparse.Namespace, name: str) -> dict[str, float]:
    ours = work / f"ours-{name}"
    shutil.rmtree(ours, ignore_errors=True)
    return run(
        [sys.executable, "-c", COMMAND, "tokenize",
         "--corpus", work / name / "corpus.jsonl.zst", "--frames", work / name / "frames.parquet",
         "--tokenizer", work / "hf" / "tokenizer.json", "--bin", f"{ours}.bin",
         "--idx", f"{ours}.idx", "--documents", f"{ours}.parquet", "--rejected", f"{ours}.zst",
         "--stats", f"{ours}.json", "--work", ours, "--workers", options.workers])  # fmt: skip


def run_peer(work: Path, options: argparse.Namespace, name: str) -> dict[str, float]:
    path = os.pathsep.join(filter(None, (str(options.peer), os.environ.get("PYTHONPATH"))))
    return run(
        [options.peer_python, "-W", "ignore", options.peer / "tools" / "preprocess_data.py",
         "--input", work / name / "corpus.jsonl", "--output-prefix", work / f"peer-{name}",
         "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", work / "hf",
         "--append-eod", "--workers", options.workers, "--log-interval", 1000000],
        {"PYTHONPATH": path},
    )  # fmt: skip


def run(command: Sequence[object], environment: dict[str, str] | None = None) -> dict[str, float]:
    """Run to the end: seconds on the clock, of the processors (children too), peak memory."""
    start = time.monotonic()
    process = subprocess.Popen(
        [*map(str, command)], env=os.environ | (environment or {}),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    said = process.stderr.read() if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(said)
    return {
        "clock": time.monotonic() - start,
        "processor": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss * 1024,
    }


def time_encoder(work: Path, workers: int) -> float:
    """Seconds of the encoder alone on texts in memory, frame by frame as the stage does it."""
    os.environ["RAYON_NUM_THREADS"] = str(workers)
    from concurrent.futures import ThreadPoolExecutor

    from web2gpt.tokens.encoder import Encoder
    from web2gpt.tokens.vocabulary import Vocabulary

    tokenizer, corpus = work / "hf" / "tokenizer.json", work / "all" / "corpus.jsonl.zst"
    encoder = Encoder(tokenizer, Vocabulary.load(tokenizer))
    frames = read_frames(work / "all" / "frames.parquet", corpus)
    texts = [[str(d["text"]) for d in read_documents(corpus, frame)] for frame in frames]
    start = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda some: len(encoder.encode(some)[0]), texts):
            pass
    return time.monotonic() - start


if __name__ == "__main__":
    if "--encoder" in sys.argv:
        print(time_encoder(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
