"""What a crawl has done, in one append-only file that survives SIGKILL at any moment.

An entry is a line of JSON (number of the URL, its outcome, the size of its records), then the
records, then a line end, written at once: what is in the file is done, outcome and records
together, and a torn entry at its end is cut off. Memory: eight bytes a URL.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson

from web2gpt.fetch.page import Fetched

MAX_LINE = 1 << 20


class Journal:
    """``with Journal(path, len(urls)) as journal:`` opens it, cut to its last whole entry."""

    def __init__(self, path: Path, size: int):
        self.path = path
        self._places = np.full(size, -1, np.int64)

    def __enter__(self) -> Self:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        self._reader = self.path.open("rb")
        self._end = 0
        for number, place, end in self._entries():
            self._places[number] = place
            self._end = end
        os.ftruncate(self._file, self._end)
        return self

    def __exit__(self, *error: object) -> None:
        self._reader.close()
        os.close(self._file)

    @property
    def done(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which URLs have an entry."""
        return self._places >= 0

    def append(self, number: int, fetched: Fetched) -> None:
        """Note that URL ``number`` is done."""
        head = {"number": number, "records": len(fetched.records),
                "outcome": fetched.outcome}  # fmt: skip
        entry = memoryview(b"".join((orjson.dumps(head), b"\n", fetched.records, b"\n")))
        self._places[number] = self._end
        while entry:
            written = os.pwrite(self._file, entry, self._end)
            self._end += written
            entry = entry[written:]

    def read(self, number: int) -> tuple[dict[str, Any], bytes]:
        """Outcome and records of a URL that is done."""
        self._reader.seek(self._places[number])
        head = orjson.loads(self._reader.readline(MAX_LINE))
        return head["outcome"], self._reader.read(head["records"])

    def _entries(self) -> Iterator[tuple[int, int, int]]:
        """Number, beginning and end of each whole entry."""
        size, place = os.fstat(self._file).st_size, 0
        while place < size:
            self._reader.seek(place)
            line = self._reader.readline(MAX_LINE)
            try:
                head = orjson.loads(line)
                end = place + len(line) + head["records"]
                number = head["number"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                return
            self._reader.seek(end)
            if self._reader.read(1) != b"\n":
                return
            yield number, place, end + 1
            place = end + 1
