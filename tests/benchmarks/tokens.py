"""Tokenize against Megatron's own tools/preprocess_data.py: the same documents, the same 32k BPE.

    python tests/benchmarks/tokens.py --text FOLDER --peer CHECKOUT --peer-python PYTHON

Each round runs, one after another: the command ``web2gpt tokenize`` from corpus.jsonl.zst to
.bin/.idx; the encoder alone, on texts that lie in memory, with as many threads; and the peer from
the .jsonl of the same documents. Times are those of whole processes; the peer's start (it imports
torch) is measured on one document and taken off, ours is not. Both pairs must be the same bytes.
"""

import argparse
import json
import os
import random
import re
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
        size = make_corpus(work, options.text, int(options.megabytes * 1e6))
        make_tokenizer(work)
        rounds = [run_round(work, options, number) for number in range(options.runs)]
    figures = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    rates = {
        "text_bytes": size,
        "tokenize_mb_s": size / 1e6 / figures["tokenize"],
        "encoder_mb_s": size / 1e6 / figures["encoder"],
        "peak_memory_mb": figures["memory"] / 1e6,
        "tokenize_mb_processor_s": size / 1e6 / figures["processor"],
    }
    if options.peer:
        rates["peer_mb_s"] = size / 1e6 / figures["peer"]
        rates["ratio"] = statistics.median(each["peer"] / each["tokenize"] for each in rounds)
        rates["processor_ratio"] = statistics.median(
            each["peer_processor"] / each["processor"] for each in rounds
        )
    for name, value in rates.items():
        print(f"{name:16} {value:14,.1f}")
    print(json.dumps(rates | {"rounds": rounds}))
    if options.peer and rates["ratio"] < TARGET:
        sys.exit(f"less than {TARGET:g} times the peer's rate")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--text", type=Path, help="folder of HTML or text; none: Python's sources")
    parser.add_argument("--megabytes", type=float, default=60, help="text to tokenize")
    parser.add_argument("--workers", type=int, default=2, help="threads, and the peer's processes")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", type=Path, help="checkout of NVIDIA/Megatron-LM")
    parser.add_argument("--peer-python", default=sys.executable, help="Python that can run it")
    parser.add_argument("--work", type=Path, help="folder for the files; none: a temporary one")
    return parser.parse_args()


def make_corpus(work: Path, text: Path | None, size: int) -> int:
    """Write corpus.jsonl.zst, its frames and corpus.jsonl; return the bytes of text."""
    written = 0
    with (
        FrameWriter(work / "corpus.jsonl.zst", work / "frames.parquet", 4 << 20) as writer,
        (work / "corpus.jsonl").open("w") as plain,
    ):
        for number, words in enumerate(resampled(read_texts(text or Path(os.__file__).parent))):
            record = {"id": f"{number:032x}", "url": None, "source": "bench", "text": words}
            writer.write(record)
            plain.write(json.dumps(record) + "\n")
            written += len(words.encode())
            if written >= size:
                break
    (work / "one.jsonl").write_text('{"text": "one document"}\n')
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
    run([sys.executable, "-c", COMMAND, "tokenizer", "--corpus", work / "corpus.jsonl.zst",
         "--frames", work / "frames.parquet", "--output", work / "hf" / "tokenizer.json",
         "--manifest", work / "hf" / "manifest.json", "--work", work / "work-tokenizer",
         "--vocab-size", "32768", "--sample-bytes", "20000000"])  # fmt: skip
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    (work / "hf" / "tokenizer_config.json").write_text(json.dumps(config))


def run_round(work: Path, options: argparse.Namespace, number: int) -> dict[str, float]:
    """Seconds of ours, the encoder alone and the peer, on the clock and of the processors; and our
    peak memory in bytes."""
    ours = work / f"ours-{number}"
    out = [("--bin", "t.bin"), ("--idx", "t.idx"), ("--documents", "d.parquet"),
           ("--rejected", "r.zst"), ("--stats", "s.json"), ("--work", "work")]  # fmt: skip
    usage = run(
        [sys.executable, "-c", COMMAND, "tokenize", "--corpus", work / "corpus.jsonl.zst",
         "--frames", work / "frames.parquet", "--tokenizer", work / "hf" / "tokenizer.json",
         *(part for flag, name in out for part in (flag, ours / name)),
         "--workers", options.workers])  # fmt: skip
    figures = {"tokenize": usage.pop("clock")} | usage
    encoder = [sys.executable, __file__, "--encoder", work, options.workers]
    figures["encoder"] = float(subprocess.check_output([*map(str, encoder)]).split()[-1])
    if options.peer:
        start, whole = (run_peer(work, options, name) for name in ("one", "corpus"))
        figures["peer"] = whole["clock"] - start["clock"]
        figures["peer_processor"] = whole["processor"] - start["processor"]
        theirs = work / "peer-corpus_text_document"
        for ending in ("bin", "idx"):
            if (ours / f"t.{ending}").read_bytes() != Path(f"{theirs}.{ending}").read_bytes():
                sys.exit(f"the two .{ending} differ")
    return figures


def run_peer(work: Path, options: argparse.Namespace, name: str) -> dict[str, float]:
    path = os.pathsep.join(filter(None, (str(options.peer), os.environ.get("PYTHONPATH"))))
    return run(
        [options.peer_python, "-W", "ignore", options.peer / "tools" / "preprocess_data.py",
         "--input", work / f"{name}.jsonl", "--output-prefix", work / f"peer-{name}",
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

    tokenizer, corpus = work / "hf" / "tokenizer.json", work / "corpus.jsonl.zst"
    encoder = Encoder(tokenizer, Vocabulary.load(tokenizer))
    frames = read_frames(work / "frames.parquet", corpus)
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
