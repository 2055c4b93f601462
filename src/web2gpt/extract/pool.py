"""Child processes that extract pages and can be killed at any moment without losing more than one.

Invariants: results come in the order of the pages, whatever the number of workers; a page that
kills its process, or needs more memory than is left in one that has worked before, is tried once
more in a new process, and that verdict counts: so no result depends on the pages before it. At most
``AHEAD`` pages a worker are under way, which bounds memory.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO, Any, TypeVar, cast

import orjson

from web2gpt.extract.extractors import Extracted, Page
from web2gpt.extract.worker import LENGTH, MEMORY, write_message

AHEAD = 4  # pages handed out for each worker
PATIENCE = 10.0  # seconds of waiting for each second of processor time that a page may use
RENEW_AFTER = 2000  # pages after which a worker is replaced, for libraries leak
PIECE = 1 << 16

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """A page that could not be extracted: ``timeout``, ``memory``, ``crashed`` or
    ``extractor_failed``."""

    reason: str
    figure: str | None = None


class Worker:
    """One child process, replaced when it dies. Not for use by two threads at once."""

    def __init__(self, extractor: str, seconds: float, memory: int):
        self._arguments = [extractor, str(seconds), str(memory)]
        self._patience = seconds * PATIENCE
        self._process: subprocess.Popen[bytes] | None = None
        self._done = 0

    def extract(self, page: Page) -> Extracted | Failure:
        """The page's text, or why there is none."""
        fresh = self._done == 0
        result = self._try(page)
        if not fresh and isinstance(result, Failure) and result.reason in (MEMORY, "crashed"):
            self.close()
            result = self._try(page)
        return result

    def close(self) -> None:
        """Kill the process, if one runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    cast(IO[bytes], stream).close()
        self._process, self._done = None, 0

    def _try(self, page: Page) -> Extracted | Failure:
        process = self._process or self._start()
        self._done += 1
        answer = self._ask(process, page)
        if answer is None:
            failure = self._cause_of_death(process)
            self.close()
            return failure
        if answer.get("reason") == MEMORY or self._done >= RENEW_AFTER:
            self.close()
        return Failure(**answer) if "reason" in answer else Extracted(**answer)

    def _start(self) -> subprocess.Popen[bytes]:
        self._done = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "web2gpt.extract.worker", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"},
        )
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], page: Page) -> dict[str, Any] | None:
        """The child's answer; None if it died or had to be killed."""
        stdin = cast(IO[bytes], process.stdin)
        facts = {"url": page.url, "charset": page.charset, "date": page.date}
        try:
            write_message(stdin, orjson.dumps(facts))
            write_message(stdin, page.body)
            stdin.flush()
        except BrokenPipeError:
            return None
        deadline = time.monotonic() + self._patience
        head = _receive(process, LENGTH.size, deadline)
        content = _receive(process, LENGTH.unpack(head)[0], deadline) if head else None
        return cast(dict[str, Any], orjson.loads(content)) if content else None

    def _cause_of_death(self, process: subprocess.Popen[bytes]) -> Failure:
        try:
            code = process.wait(timeout=1)
        except subprocess.TimeoutExpired:  # it neither works nor ends
            return Failure("timeout")
        if -code == signal.SIGPROF:
            return Failure("timeout")
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Failure("crashed", name)


def _receive(process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes | None:
    """Exactly ``size`` bytes of the child's output; None at its end or at the deadline."""
    stream = cast(IO[bytes], process.stdout).fileno()
    parts, missing = [], size
    while missing:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([stream], [], [], left)[0]:
            return None
        part = os.read(stream, min(missing, PIECE))
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class ExtractorPool:
    """``with ExtractorPool(...) as pool: for tag, result in pool.map(pages)``."""

    def __init__(self, extractor: str, seconds: float, memory: int, workers: int):
        self._count = workers
        self._workers = [Worker(extractor, seconds, memory) for _ in range(workers)]
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> "ExtractorPool":
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="extract")
        return self

    def __exit__(self, *rest: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def map(
        self, pages: Iterable[tuple[T, Page | None]]
    ) -> Iterator[tuple[T, Extracted | Failure | None]]:
        """Each tag with its page's result, in order; a tag without a page is passed through."""
        waiting: deque[tuple[T, Future[Extracted | Failure] | None]] = deque()
        for tag, page in pages:
            waiting.append((tag, self._threads.submit(self._run, page) if page else None))
            if len(waiting) > AHEAD * self._count:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())

    def _run(self, page: Page) -> Extracted | Failure:
        worker = self._idle.get()
        try:
            return worker.extract(page)
        finally:
            self._idle.put(worker)


def _result(
    entry: tuple[T, Future[Extracted | Failure] | None],
) -> tuple[T, Extracted | Failure | None]:
    tag, future = entry
    return tag, future.result() if future else None
