"""From exchanges to WARC records: a request and a response for each answer.

Both records of a pair name each other (WARC-Concurrent-To), and carry the URL of the list that
they answer (X-Requested-URL) and its source (X-Source). A body that was not read to its end is
left out, and WARC-Truncated says why: only a response without it, of status 200 and a wanted type,
is a page.
"""

from collections.abc import Iterable

from web2gpt.fetch.exchange import Exchange
from web2gpt.fetch.urllist import ListedUrl
from web2gpt.io.warc import digest, new_record_id, payload_headers, record, warc_date


def archive(listed: ListedUrl, exchanges: Iterable[Exchange], level: int) -> bytes:
    """The records of all answered exchanges of one URL, each a gzip member."""
    return b"".join(_pair(listed, exchange, level) for exchange in exchanges if exchange.status)


def _pair(listed: ListedUrl, exchange: Exchange, level: int) -> bytes:
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
    if exchange.truncated is not None:
        response["WARC-Truncated"] = exchange.truncated
    head = payload_headers(exchange.headers, len(body))
    block = b"".join((exchange.status_line, b"\r\n", head, b"\r\n", body))
    return record(request, exchange.request, level) + record(response, block, level)
