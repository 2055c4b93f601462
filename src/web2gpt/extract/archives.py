"""From WARC files to documents.

Counted are HTTP responses. Those with another status than 200 or another type than HTML are
dropped; what cannot be read, or whose extraction fails, is an error of that page. In archives of
our own fetcher, which has accounted for each URL by itself, redirects and failures are not counted
again: a page in is a URL that was fetched (``other_answers`` among the figures tells the rest).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from web2gpt.config.extract import Extract
from web2gpt.extract.extractors import Extracted, Page
from web2gpt.extract.pool import ExtractorPool, Failure
from web2gpt.io.seen import SeenIds
from web2gpt.io.shards import Document
from web2gpt.io.stage import ShardJob
from web2gpt.io.warc import BadRecord, Response, read_responses
from web2gpt.web.ids import document_id
from web2gpt.web.text import writable

HTML = ("text/html", "application/xhtml+xml")
SNIFFED = 1024  # bytes looked at where the server gave no type
MARKUP = (b"<!doctype html", b"<html", b"<head", b"<body")
OK = 200


@dataclass(frozen=True)
class Skipped:
    """A response that is no page, and why: a rule dropped it."""

    reason: str
    figure: str | int | None


def extract_archives(job: ShardJob, source: str | None, settings: Extract, workers: int) -> None:
    """Extract the pages of the job's WARC files into its documents, in the files' order."""
    seen = SeenIds()
    records = _records(job, settings.max_bytes)
    if source is None:
        records = _without_hops(job, records)
    limits = (float(settings.timeout), settings.memory, workers)
    with ExtractorPool(settings.extractor, *limits) as pool:
        for (document, judged), result in pool.map(
            _pages(records, source, dated=settings.crawl_date)
        ):
            verdict = judged or result
            if isinstance(verdict, Extracted):
                _keep(job, seen, document, verdict)
            elif isinstance(verdict, Skipped):
                job.drop(document, verdict.reason, verdict.figure)
            elif verdict:
                job.error(document, verdict.reason, verdict.figure)


def _records(job: ShardJob, max_bytes: int) -> Iterator[Response | BadRecord]:
    for path in job.files.inputs:
        job.statistics.bytes_in += path.stat().st_size
        yield from read_responses(path, max_bytes)


def _without_hops(
    job: ShardJob, records: Iterable[Response | BadRecord]
) -> Iterator[Response | BadRecord]:
    """All records but the redirects and failures on the way of our own fetcher."""
    for record in records:
        if isinstance(record, Response) and record.requested_url and not _is_kept(record):
            job.statistics.figures["other_answers"] += 1
        else:
            yield record


def _is_kept(record: Response) -> bool:
    """Whether our own fetcher took this answer for a page."""
    return record.status == OK and record.outcome in (None, "kept")


def _pages(
    records: Iterable[Response | BadRecord], source: str | None, *, dated: bool
) -> Iterator[tuple[tuple[Document, Failure | Skipped | None], Page | None]]:
    """What is known of each record and, where that is not the end of it, its page."""
    for record in records:
        document = _identify(record, source)
        if isinstance(record, BadRecord):
            yield (document, Failure(record.reason)), None
        elif record.status != OK:
            yield (document, Skipped("http_status", record.status)), None
        elif not _is_html(record):
            yield (document, Skipped("not_html", record.content_type)), None
        else:
            date = record.date[:10] if record.date else None
            if dated and record.date:
                document["crawled"] = record.date
            yield (document, None), Page(record.payload, document["url"], record.charset, date)


def _identify(record: Response | BadRecord, source: str | None) -> Document:
    """id, url and source of a record. Without a given source the archive is this run's own, whose
    records carry the URL of the list and its source; what another one claims of itself is not
    believed.
    """
    own = record if source is None and isinstance(record, Response) else None
    fetched = own.requested_url if own else None
    name = (own.source if own else source) or ""
    key = fetched or record.record_id or f"{record.file}:{record.offset}"
    url = fetched or record.url
    document = {"id": document_id(name, key), "url": url and writable(url), "source": name}
    where = {"file": record.file, "offset": record.offset}
    return document | where if isinstance(record, BadRecord) else document


def _is_html(record: Response) -> bool:
    if record.content_type:
        return record.content_type in HTML
    head = record.payload[:SNIFFED].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith(MARKUP)


def _keep(job: ShardJob, seen: SeenIds, document: Document, page: Extracted) -> None:
    if not page.text:
        job.drop(document, "empty")
    elif not seen.add(document["id"]):
        job.error(document, "duplicate_id")
    else:
        job.statistics.figures["characters"] += len(page.text)
        facts = {"title": page.title, "date": page.date, "language": page.language}
        job.keep({**document, "text": page.text, **facts})
