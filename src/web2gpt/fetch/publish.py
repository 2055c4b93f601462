"""From the journal to a shard's results, in the order of the list.

The archive has its pages in the list's order, whenever they came, so that a second crawl of an
unchanged site gives the same documents in the same order.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from web2gpt import __version__
from web2gpt.config.fetch import Fetch
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

    def __init__(self, files: FetchFiles, urls: UrlList, journal: Journal, settings: Fetch):
        self._files, self._urls, self._journal = files, urls, journal
        self._settings = settings
        self.statistics = Statistics("fetch", "urls")

    def publish(self, work: WorkFolder, seconds: float) -> None:
        """The whole of it; ``seconds`` is the time that the crawl took."""
        start = time.monotonic()
        names = ("pages.warc.gz", "outcomes.jsonl.zst", "rejected.jsonl.zst", "stats.json")
        drafts = [work.path / name for name in names]
        warc, outcomes, rejected, stats = drafts
        with warc.open("wb") as archive, JsonlWriter(outcomes) as all_outcomes:
            archive.write(self._warcinfo())
            with JsonlWriter(rejected) as all_rejected:
                for number in range(len(self._urls)):
                    outcome, records = self._outcome(number)
                    archive.write(records)
                    all_outcomes.write(outcome)
                    self._count(outcome, all_rejected)
        self.statistics.bytes_in = self._files.urls.stat().st_size
        self.statistics.bytes_out = warc.stat().st_size
        self.statistics.out = self.statistics.kept
        self.statistics.time["seconds"] = seconds + time.monotonic() - start
        self.statistics.write(stats)
        work.publish(dict(zip(drafts, self._files.outputs, strict=True)))

    def _warcinfo(self) -> bytes:
        about = {
            "software": f"web2gpt/{__version__}",
            "format": "WARC File Format 1.1",
            "robots": "obey (RFC 9309)",
        }
        if self._settings.contact:
            about["operator"] = self._settings.contact
        return warcinfo(self._files.warc.name, about, self._settings.warc_level)

    def _outcome(self, number: int) -> tuple[dict[str, Any], bytes]:
        if self._urls.readable[number]:
            return self._journal.read(number)
        text = self._urls.text(number).decode("utf-8", "replace").rstrip("\r\n")
        url, _, source = text.partition("\t")
        bad = {"url": url, "source": source, "outcome": "bad_line",
               "file": str(self._urls.path), "line": number + 1}  # fmt: skip
        return bad, b""

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
