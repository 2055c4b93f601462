"""A shard's list: grouped by host, longest first, with unusable lines told apart."""

import numpy as np
import pytest

from web2gpt.errors import InputError
from web2gpt.fetch.urllist import ListedUrl, UrlList


@pytest.fixture
def urls(tmp_path):
    path = tmp_path / "urls.tsv"
    path.write_bytes(
        b"http://a.test/1\ts\nhttps://b.test/1\ts\nhttp://a.test/2\tt\r\nno url\ts\n"
        b"http://c.test/\n\xff\xfe\ts\nftp://c.test/\ts\nhttp://b.test:81/2\ts\nhttp://B.test/3\ts"
    )
    return UrlList(path)


def test_lines_are_found_by_number(urls):
    assert len(urls) == 9
    assert urls[2] == ListedUrl("http://a.test/2", "t")
    assert urls[8] == ListedUrl("http://B.test/3", "s")
    assert urls.readable.tolist() == [True] * 3 + [False] * 4 + [True] * 2


def test_hosts_come_whole_and_the_longest_first(urls):
    assert [group.tolist() for group in urls.by_host(np.ones(9, bool))] == [[1, 7, 8], [0, 2]]
    wanted = np.ones(9, bool)
    wanted[[1, 7]] = False
    assert [group.tolist() for group in urls.by_host(wanted)] == [[0, 2], [8]]
    assert list(urls.by_host(np.zeros(9, bool))) == []


def test_a_missing_list_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.tsv"):
        UrlList(tmp_path / "absent.tsv")
