"""Pass one: every line by itself, chunk by chunk, in one process or several.

What a chunk comes to depends on the chunk alone, and comes in the chunks' order: the results are
the same for any number of processes.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from web2gpt.config.urls import Urls
from web2gpt.io.shards import BadLine
from web2gpt.urls.domain_lists import load_lists
from web2gpt.urls.inputs import Chunk, ListFile, lines_of, read_chunks
from web2gpt.urls.rules import Rejection, Rules
from web2gpt.urls.spill import BUCKETS, origin_of, spilled

AHEAD = 3  # chunks given out for each process before the first is waited for


class Judged(NamedTuple):
    """What a chunk came to: lines for each bucket of the spill, records for rejected/, counts."""

    read: int
    buckets: list[bytes]
    rejected: list[bytes]
    dropped: Counter[str]
    errors: Counter[str]


class Judge:
    """The rules, ready for chunks of ``files``; can be handed to another process."""

    def __init__(self, files: Sequence[ListFile], settings: Urls):
        self._files, self._min_score = files, settings.min_score
        sources = list(dict.fromkeys(file.source for file in files))
        self._sources = [sources.index(file.source) for file in files]
        block, allow = map(Path, settings.blacklist_domains), map(Path, settings.allow_domains)
        lists = load_lists(settings.without_lists, block, allow)
        self._rules = Rules(settings.min_length, lists)

    def __call__(self, place: int, chunk: Chunk) -> Judged:
        """Judge a chunk of file number ``place``."""
        file, judge = self._files[place], self._rules.judge
        buckets: list[list[str]] = [[] for _ in range(BUCKETS)]
        rejected, dropped, errors = list[bytes](), Counter[str](), Counter[str]()
        origin, read = origin_of(self._sources[place], place), 0
        for number, given, fault in lines_of(chunk, file, self._min_score):
            read += 1
            verdict = fault or judge(given)
            if isinstance(verdict, Rejection):
                dropped[verdict.reason] += 1
                rejected.append(rejected_record(verdict, given, number, file))
            elif isinstance(verdict, BadLine):
                errors[verdict.reason] += 1
                rejected.append(_error_record(verdict))
            else:
                bucket, line = spilled(*verdict, origin, number)
                buckets[bucket].append(line)
        encoded = ["".join(lines).encode() for lines in buckets]
        return Judged(read, encoded, rejected, dropped, errors)


def judge_files(files: Sequence[ListFile], settings: Urls, workers: int) -> Iterator[Judged]:
    """What the chunks of all files come to, in their order."""
    judge = Judge(files, settings)
    chunks = ((n, chunk) for n, file in enumerate(files) for chunk in read_chunks(file.path))
    if workers == 1:
        yield from (judge(*chunk) for chunk in chunks)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _keep, (judge,))
    with pool:
        waiting = deque[Future[Judged]]()
        for chunk in chunks:
            waiting.append(pool.submit(_judge, *chunk))
            if len(waiting) > AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def rejected_record(rejection: Rejection, url: str, line: int, file: ListFile) -> bytes:
    """A line of rejected/ for a URL that a rule leaves out."""
    return _json_line({
        "id": None,
        "url": url,
        "reason": rejection.reason,
        "figure": rejection.figure,
        "source": file.source,
        "file": str(file.path),
        "line": line,
    })  # fmt: skip


def _error_record(bad: BadLine) -> bytes:
    return _json_line(
        {"id": None, "url": None, "reason": bad.reason, "file": bad.file, "line": bad.line}
    )


def _json_line(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


_kept: list[Judge] = []
"""The judge of a worker process."""


def _keep(judge: Judge) -> None:
    _kept.append(judge)


def _judge(place: int, chunk: Chunk) -> Judged:
    return _kept[-1](place, chunk)
