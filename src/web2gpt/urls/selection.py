"""The stage's job: all lists through all rules, into sorted shards.

Pass one judges each line by itself and spills what is left; pass two finds duplicates and writes
the shards. A registered domain falls into one shard, by a hash of its name.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import IO

from web2gpt.config.derive import shard_names
from web2gpt.config.urls import Urls
from web2gpt.config.versions import VERSIONS
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import BadLine, JsonlWriter
from web2gpt.io.statistics import Statistics
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.urls.domain_lists import load_lists
from web2gpt.urls.inputs import Line, ListFile, read_list
from web2gpt.urls.rules import Rejection, Rules
from web2gpt.urls.spill import Candidate, Spill
from web2gpt.web.urls import duplicate_key, preference

LARGEST = 20  # domains named in the statistics
STEP = 1000  # lines between two words to the progress line


@dataclass(frozen=True)
class Outputs:
    """Where the stage's results go: clean.txt and the shards into ``folder``."""

    folder: Path
    rejected: Path
    stats: Path
    work: Path


def select_urls(files: Sequence[ListFile], outputs: Outputs, shards: int, settings: Urls) -> None:
    """Choose the URLs to fetch. The same lists in the same order give the same bytes."""
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
        selection = _Selection(files, settings)
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

    def __init__(self, files: Sequence[ListFile], settings: Urls):
        self._files = files
        self._min_score = settings.min_score
        block, allow = map(Path, settings.blacklist_domains), map(Path, settings.allow_domains)
        self._rules = Rules(settings.min_length, load_lists(settings.without_lists, block, allow))
        self._sources = list(dict.fromkeys(file.source for file in files))
        self._domains: Counter[str] = Counter()
        self._statistics = Statistics("urls", "urls")
        self._start = time.monotonic()

    def judge(self, spill: Spill, rejected: JsonlWriter) -> None:
        """Pass one: each line by itself."""
        with ProgressLine("urls", unit="lines") as progress:
            for place, file in enumerate(self._files):
                self._statistics.bytes_in += file.path.stat().st_size
                source = self._sources.index(file.source)
                for line in read_list(file, self._min_score):
                    self._statistics.read += 1
                    if self._statistics.read % STEP == 0:
                        progress.advance(STEP)
                    verdict = line.fault or self._rules.judge(line.given)
                    if isinstance(verdict, BadLine):
                        self._bad_line(verdict, rejected)
                    elif isinstance(verdict, Rejection):
                        self._drop(verdict, line, file, rejected)
                    else:
                        url = verdict.url
                        rank, key = preference(url), duplicate_key(url)
                        spill.add(
                            Candidate(
                                key, rank, url.url, source, place, line.number, verdict.domain
                            )
                        )

    def drop_duplicates(self, spill: Spill, rejected: JsonlWriter) -> None:
        """Pass two: one URL of each key stays."""
        for duplicate in spill.duplicates():
            one = duplicate.candidate
            line = Line(one.line, one.url)
            reason = Rejection("duplicate", duplicate.kept)
            self._drop(reason, line, self._files[one.file], rejected)

    def write(self, spill: Spill, paths: Sequence[Path]) -> None:
        """Write clean.txt (the first of ``paths``) and the shards (the others)."""
        with ExitStack() as stack:
            clean, *shards = (stack.enter_context(path.open("wb", 1 << 20)) for path in paths)
            for url in spill.unique():
                self._domains[url.domain] += 1
                clean.write(f"{url.url}\n".encode())
                shard: IO[bytes] = shards[shard_of(url.domain, len(shards))]
                shard.write(f"{url.url}\t{self._sources[url.source]}\n".encode())

    def finish(self, clean: Path) -> Statistics:
        """The statistics, with the number of registered domains and the largest of them."""
        statistics = self._statistics
        statistics.kept = statistics.out = self._domains.total()
        statistics.bytes_out = clean.stat().st_size
        statistics.figures["domains"] = len(self._domains)
        by_size = sorted(self._domains.items(), key=lambda item: (-item[1], item[0]))
        statistics.figures.update({f"domain {name}": count for name, count in by_size[:LARGEST]})
        statistics.time["seconds"] = time.monotonic() - self._start
        return statistics

    def _drop(
        self, rejection: Rejection, line: Line, file: ListFile, rejected: JsonlWriter
    ) -> None:
        self._statistics.dropped[rejection.reason] += 1
        rejected.write(
            {
                "id": None,
                "url": line.given,
                "reason": rejection.reason,
                "figure": rejection.figure,
                "source": file.source,
                "file": str(file.path),
                "line": line.number,
            }
        )

    def _bad_line(self, line: BadLine, rejected: JsonlWriter) -> None:
        self._statistics.errors[line.reason] += 1
        rejected.write(
            {"id": None, "url": None, "reason": line.reason, "file": line.file, "line": line.line}
        )


@lru_cache(maxsize=1 << 16)
def shard_of(domain: str, shards: int) -> int:
    """The shard that all URLs of a registered domain fall into."""
    return int.from_bytes(blake2b(domain.encode(), digest_size=8).digest(), "big") % shards
