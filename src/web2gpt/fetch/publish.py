"""From the journal to a shard's results, in the order of the list.

The archive has its pages in the list's order, whenever they came, so that a second crawl of an
unchanged site gives the same documents in the same order.
"""

import time
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from web2gpt import __version__
from web2gpt.config.fetch import Fetch
from web2gpt.fetch.earlier import FOLDER, Earlier
from web2gpt.fetch.exchange import UNREADABLE
from web2gpt.fetch.journal import Journal
from web2gpt.fetch.page import KEPT
from web2gpt.fetch.urllist import UrlList
from web2gpt.io.shards import JsonlWriter
from web2gpt.io.statistics import Statistics
from web2gpt.io.warc import warcinfo
from web2gpt.io.work import WorkFolder
from web2gpt.web.ids import document_id


@dataclass(frozen=True)
class FetchFiles:
    """Where a shard's fetch reads and writes."""

    urls: Path
    warc: Path
    outcomes: Path
    rejected: Path
    stats: Path
    work: Path

    @property
    def outputs(self) -> tuple[Path, ...]:
        return self.warc, self.outcomes, self.rejected, self.stats


class Publication:
    """Writes archive, outcomes, rejected/ and statistics, and publishes them together."""

    def __init__(
        self,
        files: FetchFiles,
        urls: UrlList,
        journal: Journal,
        earlier: Earlier | None,
        settings: Fetch,
    ):
        self._files, self._urls, self._journal = files, urls, journal
        self._earlier, self._settings = earlier, settings
        self.statistics = Statistics("fetch", "urls")

    def publish(self, work: WorkFolder, seconds: float) -> None:
        """The whole of it; ``seconds`` is the time that the crawl took."""
        start = time.monotonic()
        names = ("pages.warc.gz", "outcomes.jsonl.zst", "rejected.jsonl.zst", "stats.json")
        drafts = [work.path / name for name in names]
        warc, outcomes, rejected, stats = drafts
        places = self._write(warc, outcomes, rejected)
        self.statistics.bytes_in = self._files.urls.stat().st_size
        self.statistics.bytes_out = warc.stat().st_size
        self.statistics.out = self.statistics.kept
        self.statistics.time["seconds"] = seconds + time.monotonic() - start
        self.statistics.write(stats)
        number = self._settings.retry_failed
        earlier = Earlier.keep(work.path, number, warc, outcomes, places)
        work.publish(dict(zip(drafts, self._files.outputs, strict=True)), keep=(FOLDER,))
        earlier.mark_published()

    def _write(self, warc: Path, outcomes: Path, rejected: Path) -> npt.NDArray[np.int64]:
        """Write all but the statistics; the places of each URL's records in the archive."""
        places = array("q")
        warc.unlink(missing_ok=True)  # a killed run's, which may be the very file that was kept
        with (
            warc.open("wb") as archive,
            JsonlWriter(outcomes) as all_outcomes,
            JsonlWriter(rejected) as all_rejected,
        ):
            archive.write(self._warcinfo())
            for outcome, records in self._entries():
                places.append(archive.tell())
                archive.write(records)
                all_outcomes.write(outcome)
                self._count(outcome, all_rejected)
            places.append(archive.tell())
        return np.frombuffer(places, np.int64)

    def _warcinfo(self) -> bytes:
        about = {
            "software": f"web2gpt/{__version__}",
            "format": "WARC File Format 1.1",
            "robots": "obey (RFC 9309)",
        }
        if self._settings.contact:
            about["operator"] = self._settings.contact
        return warcinfo(self._files.warc.name, about, self._settings.warc_level)

    def _entries(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Outcome and records of each URL of the list. What was tried again has the new outcome,
        and the records of both times."""
        if self._earlier is not None and self._earlier.round >= self._settings.retry_failed:
            yield from self._earlier.entries()  # killed before it was published
            return
        done, readable = self._journal.done, self._urls.readable
        earlier = self._earlier.entries() if self._earlier else repeat(None)
        for number, before in zip(range(len(self._urls)), earlier, strict=False):
            if done[number]:
                outcome, records = self._journal.read(number)
                yield outcome, (before[1] if before else b"") + records
            elif before is not None:
                yield before
            else:
                assert not readable[number]
                yield self._bad_line(number), b""

    def _bad_line(self, number: int) -> dict[str, Any]:
        text = self._urls.text(number).decode("utf-8", "replace").rstrip("\r\n")
        url, _, source = text.partition("\t")
        return {"url": url, "source": source, "outcome": "bad_line",
                "file": str(self._urls.path), "line": number + 1}  # fmt: skip

    def _count(self, outcome: Mapping[str, Any], rejected: JsonlWriter) -> None:
        reason, statistics = outcome["outcome"], self.statistics
        statistics.read += 1
        if reason == KEPT:
            statistics.kept += 1
            statistics.figures["page_bytes"] += outcome["bytes"]
            return
        (statistics.errors if reason in UNREADABLE else statistics.dropped)[reason] += 1
        record = {
            "id": document_id(outcome["source"], outcome["url"]),
            "url": outcome["url"],
            "reason": reason,
            "figure": outcome.get("status"),
        }
        where = {name: outcome[name] for name in ("file", "line") if name in outcome}
        rejected.write({**record, **where})
