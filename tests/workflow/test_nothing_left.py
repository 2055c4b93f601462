"""The first stage that leaves nothing to train on says so, unless other sources remain."""

from pathlib import Path

import pytest
from tests.workflow.project import HOSTS, Project


@pytest.fixture
def crawl(tmp_path: Path) -> Project:
    """A list whose pages are not there, to be crawled."""
    (tmp_path / "site" / HOSTS[0]).mkdir(parents=True)
    urls = [f"http://{HOSTS[0]}/gone-{number}.html" for number in range(3)]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    return Project(tmp_path, {
        "data": {"shards": 1},
        "input": [{"name": "site", "kind": "urls", "paths": ["urls.txt"]}],
        "fetch": {"serve": "site", "delay": 0.0},
    })  # fmt: skip


def test_a_crawl_that_brings_no_page_ends_at_fetch(crawl: Project) -> None:
    done = crawl.run("merge")
    assert done.returncode == 1
    assert "fetch: nothing is left of 3 urls (3 http_404), so there is nothing" in done.stdout


def test_a_list_of_no_urls_ends_at_urls(crawl: Project) -> None:
    (crawl.folder / "urls.txt").write_text("nonsense\n")
    done = crawl.run("fetch")
    assert done.returncode == 1
    assert "urls: nothing is left of 1 urls (1 malformed)" in done.stdout


def test_a_crawl_beside_another_source_may_bring_nothing(crawl: Project) -> None:
    (crawl.folder / "a.jsonl").write_text('{"text": "one document"}\n')
    other = {"name": "other", "kind": "jsonl", "paths": ["a.jsonl"]}
    crawl.write_config({**crawl.config, "input": [*crawl.config["input"], other]})
    crawl.succeed("extract")
    crawl.config["clean"] = {"min_tokens": 1000}
    crawl.write_config(crawl.config)
    done = crawl.run("merge")
    assert "clean: nothing is left of 1 documents" in done.stdout
