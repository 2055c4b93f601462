"""From exchanges to WARC records: a request and a response for each answer.

Both records of a pair name each other (WARC-Concurrent-To), and carry the URL of the list that
they answer (X-Requested-URL) and its source (X-Source). The last answer to a URL says what became
of it (X-Outcome): only one that was ``kept`` is a page. A body that was not read to its end, or is
not to be archived, is left out, and WARC-Truncated says why.
"""

from collections.abc import Sequence

from web2gpt.fetch.exchange import Exchange
from web2gpt.fetch.urllist import ListedUrl
from web2gpt.io.warc import digest, new_record_id, payload_headers, record, warc_date


def archive(listed: ListedUrl, trail: Sequence[Exchange], outcome: str, level: int) -> bytes:
    """The records of all answered exchanges of one URL, each a gzip member."""
    pairs = [
        _pair(listed, exchange, outcome if exchange is trail[-1] else None, level)
        for exchange in trail
        if exchange.status
    ]
    return b"".join(pairs)


def _pair(listed: ListedUrl, exchange: Exchange, outcome: str | None, level: int) -> bytes:
    body = exchange.body if exchange.truncated is None else b""
    request_id, response_id = new_record_id(), new_record_id()
    shared = {
        "WARC-Date": warc_date(exchange.date),
        "WARC-Target-URI": exchange.url,
        "X-Requested-URL": listed.url,
        "X-Source": listed.source,
    }
    if exchange.address is not None:
        shared["WARC-IP-Address"] = exchange.address
    request = {
        "WARC-Type": "request",
        "WARC-Record-ID": request_id,
        "WARC-Concurrent-To": response_id,
        **shared,
        "Content-Type": "application/http; msgtype=request",
    }
    response = {
        "WARC-Type": "response",
        "WARC-Record-ID": response_id,
        "WARC-Concurrent-To": request_id,
        **shared,
        "Content-Type": "application/http; msgtype=response",
        "WARC-Payload-Digest": digest(body),
    }
    if outcome is not None:
        response["X-Outcome"] = outcome
    if exchange.truncated is not None:
        response["WARC-Truncated"] = exchange.truncated
    head = payload_headers(exchange.headers, len(body))
    block = b"".join((exchange.status_line, b"\r\n", head, b"\r\n", body))
    return record(request, exchange.request, level) + record(response, block, level)
