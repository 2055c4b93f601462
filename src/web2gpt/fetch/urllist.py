"""A shard's list of URLs, by line, in a few bytes of memory for each.

A line is ``url<TAB>source``. Lines are read once to note where they stand and which host they
name, and again when their turn comes.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import can_ada
import numpy as np
import numpy.typing as npt

from web2gpt.errors import InputError

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ListedUrl:
    """A URL of the list."""

    url: str
    source: str


class UrlList:
    """The lines of ``path``, numbered from 0.

    ``readable[n]`` is False for a line that is no http or https URL with its source.
    """

    def __init__(self, path: Path):
        self.path = path
        starts, hosts = array("q", [0]), array("q")
        content = blake2b(digest_size=16)
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise InputError(
                f"{path}: cannot be opened ({error.strerror}); run urls first."
            ) from error
        for line in self._file:
            content.update(line)
            starts.append(starts[-1] + len(line))
            hosts.append(_host_number(line))
        self._starts = np.frombuffer(starts, np.int64)
        self._hosts = np.frombuffer(hosts, np.int64)
        self.content = content.hexdigest()
        self.readable = self._hosts >= 0

    def __len__(self) -> int:
        return len(self._hosts)

    def text(self, number: int) -> bytes:
        """Line ``number`` as it stands in the file."""
        self._file.seek(self._starts[number])
        return self._file.read(self._starts[number + 1] - self._starts[number])

    def __getitem__(self, number: int) -> ListedUrl:
        """A readable line."""
        url, _, source = self.text(number).decode().rstrip("\r\n").partition("\t")
        return ListedUrl(url, source)

    def by_host(self, wanted: npt.NDArray[np.bool_]) -> Iterator[Numbers]:
        """The readable and ``wanted`` lines of each host, hosts with the most lines first.

        A host waits between its pages, so the longest queues decide how long a crawl takes.
        """
        numbers = np.flatnonzero(self.readable & wanted)
        numbers = numbers[np.argsort(self._hosts[numbers], kind="stable")]
        cuts = np.flatnonzero(np.diff(self._hosts[numbers])) + 1
        bounds = np.concatenate(([0], cuts, [len(numbers)]))
        sizes = np.diff(bounds)
        for group in np.argsort(-sizes, kind="stable"):
            if sizes[group]:
                yield numbers[bounds[group] : bounds[group + 1]]


def _host_number(line: bytes) -> int:
    """A 63-bit hash of the line's host, or -1 if the line cannot be used."""
    try:
        url, tab, source = line.decode().rstrip("\r\n").partition("\t")
        parsed = can_ada.parse(url)
    except ValueError:
        return -1
    if not tab or not source or parsed.protocol not in ("http:", "https:"):
        return -1
    return int.from_bytes(blake2b(parsed.hostname.encode(), digest_size=8).digest()) >> 1
