"""The process that extracts pages: one at a time, under limits that the kernel enforces.

Run as ``python -m web2gpt.extract.worker EXTRACTOR SECONDS BYTES``. A message on its standard input
or output is a length of 4 bytes and then JSON, for a page followed by its body in the same way.
Hostile pages are let into this process only, so the parent takes nothing from it but JSON.

A page may use SECONDS of processor time, not of waiting: a busy machine changes no result. At the
limit SIGPROF ends the process; it has no handler, so nothing in it can put that off.
"""

import logging
import os
import resource
import signal
import struct
import sys
from typing import IO

import orjson

from web2gpt.extract.extractors import Extracted, Extractor, Page, extractor, reset_caches

LENGTH = struct.Struct("<I")
RESET_EVERY = 100  # pages between resets of the extractor's caches
MEMORY = "memory"  # the answer of a process that ran out of it, before it ends


def write_message(stream: IO[bytes], content: bytes) -> None:
    stream.write(LENGTH.pack(len(content)))
    stream.write(content)


def read_message(stream: IO[bytes]) -> bytes | None:
    """The next message; None where the stream ends."""
    head = stream.read(LENGTH.size)
    return stream.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


def main(name: str, seconds: float, memory: int) -> None:
    """Answer pages until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(1000)
    extract = extractor(name)
    extract(Page(b"<html><body><p>Loads all that is loaded when first used.</p></body></html>"))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    count = 0
    while (head := read_message(requests)) is not None:
        page = Page(body=read_message(requests) or b"", **orjson.loads(head))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answer = _answer(extract, page)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_message(answers, orjson.dumps(answer))
        answers.flush()
        if answer == {"reason": MEMORY}:
            return  # what ran out of memory may be left in any state
        count += 1
        if count % RESET_EVERY == 0:
            reset_caches(name)


def _answer(extract: Extractor, page: Page) -> Extracted | dict[str, str]:
    try:
        return extract(page)
    except MemoryError:
        return {"reason": MEMORY}
    except Exception as error:  # noqa: BLE001  (whatever a page makes a library do is its result)
        return {"reason": "extractor_failed", "figure": type(error).__name__}


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
