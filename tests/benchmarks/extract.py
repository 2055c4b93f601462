"""Extraction on trafilatura's own evaluation pages: quality and rate of each extractor.

Each page comes with passages that its text should hold and passages that it should not; precision,
recall and F1 count passages over all pages, white space aside. Pages go through the pool of
processes that the stage extract uses. What two workers gain over one is measured in turns, so that
a busy moment falls on both.

    python tests/benchmarks/extract.py --peer CHECKOUT_OF_TRAFILATURA
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from web2gpt.extract.extractors import Extracted, Page
from web2gpt.extract.pool import ExtractorPool

EXTRACTORS = ("trafilatura", "resiliparse", "paragraphs")
SECONDS, MEMORY = 20.0, 1 << 30  # the stage's own defaults


def main() -> None:
    """Print a table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", type=Path, required=True, help="checkout of adbar/trafilatura")
    parser.add_argument("--workers", type=int, default=2, help="compared with one")
    parser.add_argument("--rounds", type=int, default=5, help="turns; the median counts")
    parser.add_argument("--every", type=int, default=4, help="time every so-many-th page only")
    given = parser.parse_args()
    entries = load_entries(given.peer / "tests")
    pages = [page for page, _ in entries]
    print(f"{len(entries)} pages, {sum(len(page.body) for page in pages) / 1e6:.1f} MB")
    print("extractor    precision  recall     F1   pages/s 1 worker  pages/s "
          f"{given.workers} workers  gain")  # fmt: skip
    results = {}
    for name in EXTRACTORS:
        quality = score(extract_all(name, pages, given.workers), entries)
        quality |= rates(name, pages[:: given.every], given.workers, given.rounds)
        results[name] = {key: round(value, 4) for key, value in quality.items()}
        print("{:11s}  {precision:9.3f}  {recall:6.3f}  {f1:5.3f}  {one:17.1f}  {many:18.1f}"
              "  {gain:4.2f}".format(name, **quality))  # fmt: skip
    print(json.dumps(results))


def load_entries(folder: Path) -> list[tuple[Page, dict[str, Any]]]:
    """The pages, in the order of their URLs, each with its passages."""
    listed = json.loads((folder / "evaldata.json").read_text())
    entries = []
    for url, entry in sorted(listed.items()):
        places = [folder / name / entry["file"] for name in ("cache", "eval")]
        body = next(path for path in places if path.is_file()).read_bytes()
        entries.append((Page(body, url), entry))
    return entries


def extract_all(name: str, pages: Sequence[Page], workers: int) -> list[str]:
    """The pages' texts; empty where extraction failed."""
    with ExtractorPool(name, SECONDS, MEMORY, workers) as pool:
        found = [result for _, result in pool.map((None, page) for page in pages)]
    return [result.text if isinstance(result, Extracted) else "" for result in found]


def score(texts: Sequence[str], entries: Sequence[tuple[Page, dict[str, Any]]]) -> dict[str, float]:
    """Precision, recall and F1 over the passages of all pages."""
    wanted = found = intruders = 0
    for text, (_, entry) in zip(texts, entries, strict=True):
        flat = collapse(text)
        wanted += len(entry["with"])
        found += sum(collapse(passage) in flat for passage in entry["with"])
        intruders += sum(collapse(passage) in flat for passage in entry["without"])
    precision, recall = found / (found + intruders), found / wanted
    f1 = 2 * precision * recall / (precision + recall)
    return {"precision": precision, "recall": recall, "f1": f1}


def collapse(text: str) -> str:
    return " ".join(text.split())


def rates(name: str, pages: Sequence[Page], workers: int, rounds: int) -> dict[str, float]:
    """Pages a second of one and of several workers, and the median of the rounds' quotients."""
    ones, manys = [], []
    with ExtractorPool(name, SECONDS, MEMORY, 1) as one, \
            ExtractorPool(name, SECONDS, MEMORY, workers) as many:  # fmt: skip
        for pool in (one, many):
            timed(pool, pages[: 8 * workers])  # the processes start
        for _ in range(rounds):
            ones.append(timed(one, pages))
            manys.append(timed(many, pages))
    return {
        "one": len(pages) / median(ones),
        "many": len(pages) / median(manys),
        "gain": median(single / double for single, double in zip(ones, manys, strict=True)),
    }


def timed(pool: ExtractorPool, pages: Sequence[Page]) -> float:
    start = time.perf_counter()
    for _ in pool.map((None, page) for page in pages):
        pass
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
