"""A hostile page costs only itself; no result depends on worker, order or earlier pages."""

import os
import signal
from collections.abc import Iterator

import pytest

from web2gpt.extract.extractors import Extracted, Page
from web2gpt.extract.pool import ExtractorPool, Failure, Worker

PROSE = (
    "The first paragraph tells of a river that ran through the valley for a thousand years.",
    "The second one speaks of the people who lived beside it and built their mills there.",
    "In the third the water rises, and everything that had been written down is lost again.",
    "A fourth ends the story with the children who dig out the old stones from the sand.",
)


def page(number: int = 0) -> Page:
    body = "".join(f"<p>{number}: {text}</p>" for text in PROSE)
    head = f"<head><title>Page {number}</title></head>"
    html = f"<html lang='en-GB'>{head}<body><article>{body}</article></body></html>"
    return Page(html.encode(), url=f"http://a.example/{number}", date="2026-01-01")


ROW = b"<tr>" + b"<td>a cell of a table</td>" * 10 + b"</tr>"
HOSTILE = {
    "table of 10 MB": b"<html><body><table>" + ROW * (10_000_000 // len(ROW)) + b"</table>",
    "100,000 nested tags": b"<html><body>" + b"<div>" * 100_000 + b"x" + b"</div>" * 100_000,
    "colspan of 2**53": b"<html><body><table><tr><td colspan=9007199254740992>x</td></table>",
    "5 MB on one line": b"<html><body><p>" + b"words and more words. " * 227_000 + b"</p>",
    "invalid UTF-8": b"<html><body><p>\xff\xfe\xfa bad \x80 bytes \xc3",
    "NUL bytes": b"\0<html>\0<body><p>\0nul\0s &#0; &#55296;",
    "not HTML": bytes(range(256)) * 100,
    "nothing": b"",
}


@pytest.fixture(scope="module", params=["trafilatura", "resiliparse", "paragraphs"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    worker = Worker(request.param, seconds=1.0, memory=1 << 30)
    yield worker
    worker.close()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_page_costs_only_itself(worker: Worker, kind: str) -> None:
    before = worker.extract(page(1))
    result = worker.extract(Page(HOSTILE[kind]))
    assert isinstance(result, Extracted | Failure)
    if isinstance(result, Extracted):
        result.text.encode()
        assert "\0" not in result.text
    else:
        assert result.reason in ("timeout", "memory", "crashed", "extractor_failed")
    assert worker.extract(page(1)) == before
    assert isinstance(before, Extracted)
    assert PROSE[2] in before.text


def test_facts_of_the_page_are_kept(worker: Worker) -> None:
    result = worker.extract(page(7))
    assert isinstance(result, Extracted)
    assert (result.title, result.language) == ("Page 7", "en")


def test_time_for_paragraphs_is_linear_in_their_number() -> None:
    worker = Worker("paragraphs", seconds=10, memory=1 << 30)
    result = worker.extract(Page(b"<html><body>" + b"<p>A short <b>one</b>.</p>" * 20_000))
    worker.close()
    assert isinstance(result, Extracted)
    assert result.text.count("A short one.") == 20_000


def test_page_that_takes_too_long_is_killed_and_said() -> None:
    worker = Worker("trafilatura", seconds=0.3, memory=1 << 30)
    assert worker.extract(Page(HOSTILE["table of 10 MB"])) == Failure("timeout")
    worker.close()


def test_page_that_takes_too_much_memory_is_rejected_and_said() -> None:
    worker = Worker("paragraphs", seconds=20, memory=160 << 20)
    assert isinstance(worker.extract(page()), Extracted)
    rejected = worker.extract(Page(HOSTILE["5 MB on one line"] * 3))
    assert isinstance(rejected, Failure)
    assert rejected.reason in ("memory", "crashed")
    assert isinstance(worker.extract(page()), Extracted)
    worker.close()


def test_process_killed_from_outside_costs_no_page() -> None:
    worker = Worker("paragraphs", seconds=20, memory=1 << 30)
    expected = worker.extract(page())
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    assert worker.extract(page()) == expected
    worker.close()


def test_results_are_in_order_and_equal_for_any_number_of_workers() -> None:
    pages = [(n, page(n) if n % 5 else None) for n in range(30)]
    pages[7] = (7, Page(HOSTILE["5 MB on one line"]))
    results = []
    for workers in (1, 3):
        with ExtractorPool("paragraphs", 20, 1 << 30, workers) as pool:
            results.append(list(pool.map(pages)))
    assert results[0] == results[1]
    assert [tag for tag, _ in results[0]] == list(range(30))
    assert results[0][5] == (5, None)
