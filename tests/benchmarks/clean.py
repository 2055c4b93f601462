"""Cleaning against the openwebtext tools' cleanup_dataset.py: documents a second on one core.

Both run as commands of their own on the same documents, pinned to the same core, in turns; counted
is processor time, which other work on the machine disturbs least, start-up included. The peer's
module ``tokenizer`` went missing years ago; a stand-in around a BPE tokenizer of ``tokenizers``
takes its place, which is faster than the lost one.

Documents are the paragraphs of HTML pages under a folder, such as a documentation package has.
With ``--foreign``, each comes once more with mojibake, so that ftfy has work to do.

    python tests/benchmarks/clean.py --pages FOLDER --peer CHECKOUT_OF_MEGATRON_DEEPSPEED
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tokenizers import ByteLevelBPETokenizer

from web2gpt.extract.extractors import Page, extractor
from web2gpt.io.shards import JsonlWriter

PEER = Path("tools/openwebtext/cleanup_dataset.py")
STAND_IN = """
from tokenizers import Tokenizer as Fast
class Tokenizer:
    def __init__(self, cache_dir=None):
        self.fast = Fast.from_file({file!r})
    def tokenize_document(self, text):
        return self.fast.encode(text).ids + [0]
"""


def main() -> None:
    """Print a line for each round, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, required=True, help="folder of HTML files")
    parser.add_argument("--peer", type=Path, required=True, help="checkout with tools/openwebtext")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--foreign", action="store_true", help="half the documents with mojibake")
    given = parser.parse_args()
    texts = list(read_texts(given.pages, given.documents))
    if given.foreign:
        texts += [text.replace("e", "é").encode().decode("cp1252", "replace") for text in texts]
    with tempfile.TemporaryDirectory() as name:
        compare(texts, given.peer / PEER, Path(name), given.rounds)


def read_texts(folder: Path, count: int) -> Iterator[str]:
    """The texts of the first pages of 500 characters and more, by name."""
    paragraphs = extractor("paragraphs")
    for path in sorted(folder.rglob("*.html")):
        text = paragraphs(Page(path.read_bytes())).text
        if len(text) >= 500:
            yield text
            count -= 1
        if count == 0:
            return


def compare(texts: list[str], peer: Path, folder: Path, rounds: int) -> None:
    documents = [
        {"id": f"{number:032x}", "url": f"http://a.example/{number}", "text": text, "source": "s"}
        for number, text in enumerate(texts)
    ]
    with JsonlWriter(folder / "in.jsonl.zst") as writer, (folder / "in.jsonl").open("w") as plain:
        for document in documents:
            writer.write(document)
            plain.write(json.dumps(document) + "\n")
    prepare_peer(texts, folder)
    characters = sum(map(len, texts))
    print(f"{len(texts)} documents, {characters / 1e6:.1f} million characters")
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(processor_time([str(peer), str(folder / "in.jsonl"), str(folder / "out")],
                                     folder))  # fmt: skip
        ours.append(processor_time(our_command(folder), folder))
        print(f"peer {theirs[-1]:6.2f} s   web2gpt {ours[-1]:6.2f} s   "
              f"{theirs[-1] / ours[-1]:5.1f} times")  # fmt: skip
    results = {
        "peer_documents_a_second": round(len(texts) / median(theirs), 1),
        "documents_a_second": round(len(texts) / median(ours), 1),
        "megabytes_a_second": round(characters / 1e6 / median(ours), 2),
        "times": round(median(a / b for a, b in zip(theirs, ours, strict=True)), 2),
    }
    print(json.dumps(results))


def prepare_peer(texts: list[str], folder: Path) -> None:
    """The stand-in for the peer's lost module."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts[:500], vocab_size=8000, show_progress=False)
    tokenizer.save(str(folder / "bpe.json"))
    (folder / "tokenizer.py").write_text(STAND_IN.format(file=str(folder / "bpe.json")))


def our_command(folder: Path) -> list[str]:
    names = ("output", "rejected", "stats", "work")
    files = [word for name in names for word in (f"--{name}", str(folder / f"{name}.zst"))]
    (folder / "output.zst").unlink(missing_ok=True)
    return ["-m", "web2gpt.cli", "clean", "--documents", str(folder / "in.jsonl.zst"), *files]


def processor_time(arguments: list[str], folder: Path) -> float:
    """Seconds of processor time of a Python process on one core."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    core = min(os.sched_getaffinity(0))
    with (folder / "log").open("wb") as log:
        subprocess.run(
            ["taskset", "-c", str(core), sys.executable, *arguments],
            check=True, stdout=log, stderr=log, cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder), "TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
