"""The stage's job: all lists through all rules, into sorted shards.

Pass one judges each line by itself and spills what is left; pass two finds duplicates and writes
the shards. A registered domain falls into one shard, by a hash of its name.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO

from web2gpt.config.derive import shard_names
from web2gpt.config.urls import Urls
from web2gpt.config.versions import VERSIONS
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import JsonlWriter
from web2gpt.io.statistics import Statistics
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.urls.inputs import ListFile
from web2gpt.urls.judging import judge_files, rejected_record
from web2gpt.urls.rules import Rejection
from web2gpt.urls.spill import Spill

LARGEST = 20  # domains named in the statistics


@dataclass(frozen=True)
class Outputs:
    """Where the stage's results go: clean.txt and the shards into ``folder``."""

    folder: Path
    rejected: Path
    stats: Path
    work: Path


def select_urls(
    files: Sequence[ListFile], outputs: Outputs, shards: int, settings: Urls, workers: int = 1
) -> None:
    """Choose the URLs to fetch. The same lists in the same order give the same bytes, whatever the
    number of ``workers`` (processes)."""
    lists = [Path(path) for path in (*settings.blacklist_domains, *settings.allow_domains)]
    job = {
        "stage": "urls",
        "version": VERSIONS["urls"],
        "settings": settings.model_dump(mode="json"),
        "shards": shards,
        "inputs": [[file.source, *file_states([file.path])[0]] for file in files],
        "lists": file_states(lists),
    }
    names = ("clean.txt", *(f"{name}.tsv" for name in shard_names("urls", shards)))
    results = [outputs.folder / name for name in names]
    with WorkFolder(outputs.work, job) as work:
        if work.is_published([*results, outputs.rejected, outputs.stats]):
            return
        drafts = {work.path / target.name: target for target in results}
        rejected = {work.path / "rejected.jsonl.zst": outputs.rejected}
        stats = {work.path / "stats.json": outputs.stats}
        selection = _Selection(files, settings, workers)
        with Spill(work.path / "spill") as spill, JsonlWriter(*rejected) as writer:
            selection.judge(spill, writer)
            selection.drop_duplicates(spill, writer)
            selection.write(spill, list(drafts))
        statistics = selection.finish(next(iter(drafts)))
        statistics.write(*stats)
        work.publish(drafts | rejected | stats)
    print(statistics.summary(), flush=True)


class _Selection:
    """The passes over the lists, and what they count."""

    def __init__(self, files: Sequence[ListFile], settings: Urls, workers: int):
        self._files, self._settings, self._workers = files, settings, workers
        self._sources = list(dict.fromkeys(file.source for file in files))
        self._domains: Counter[bytes] = Counter()
        self._statistics = Statistics("urls", "urls")
        self._start = time.monotonic()

    def judge(self, spill: Spill, rejected: JsonlWriter) -> None:
        """Pass one: each line by itself."""
        statistics = self._statistics
        statistics.bytes_in = sum(file.path.stat().st_size for file in self._files)
        with ProgressLine("urls", unit="lines") as progress:
            for judged in judge_files(self._files, self._settings, self._workers):
                spill.add(judged.buckets)
                rejected.write_lines(judged.rejected)
                statistics.read += judged.read
                statistics.dropped.update(judged.dropped)
                statistics.errors.update(judged.errors)
                progress.advance(judged.read)

    def drop_duplicates(self, spill: Spill, rejected: JsonlWriter) -> None:
        """Pass two: one URL of each key stays."""
        for one, kept in spill.duplicates():
            reason = Rejection("duplicate", kept)
            record = rejected_record(reason, one.url, one.line, self._files[one.file])
            rejected.write_lines([record])
            self._statistics.dropped["duplicate"] += 1

    def write(self, spill: Spill, paths: Sequence[Path]) -> None:
        """Write clean.txt (the first of ``paths``) and the shards (the others)."""
        suffixes = {b"%04d" % number: f"\t{source}\n".encode()
                    for number, source in enumerate(self._sources)}  # fmt: skip
        homes, domains = dict[bytes, IO[bytes]](), self._domains
        with ExitStack() as stack:
            clean, *shards = (stack.enter_context(path.open("wb", 1 << 20)) for path in paths)
            for url, source, domain in spill.unique():
                if domain not in domains:
                    homes[domain] = shards[shard_of(domain.decode(), len(shards))]
                domains[domain] += 1
                clean.write(url + b"\n")
                homes[domain].write(url + suffixes[source])

    def finish(self, clean: Path) -> Statistics:
        """The statistics, with the number of registered domains and the largest of them."""
        statistics = self._statistics
        statistics.kept = statistics.out = self._domains.total()
        statistics.bytes_out = clean.stat().st_size
        statistics.figures["domains"] = len(self._domains)
        by_size = sorted(self._domains.items(), key=lambda item: (-item[1], item[0]))
        largest = {f"domain {name.decode()}": count for name, count in by_size[:LARGEST]}
        statistics.figures.update(largest)
        statistics.time["seconds"] = time.monotonic() - self._start
        return statistics


def shard_of(domain: str, shards: int) -> int:
    """The shard that all URLs of a registered domain fall into."""
    return int.from_bytes(blake2b(domain.encode(), digest_size=8).digest(), "big") % shards
