"""The demo's server serves what lies in the folder, and nothing else."""

import asyncio

import aiohttp
import pytest

from web2gpt.demo.server import serve_folder
from web2gpt.errors import InputError


@pytest.fixture
def folder(tmp_path):
    host = tmp_path / "site" / "a.test"
    (host / "sub").mkdir(parents=True)
    (host / "index.html").write_text("home")
    (host / "sub" / "index.html").write_text("sub")
    (host / "gr\u00fc\u00dfe page.html").write_text("greetings")
    (host / "robots.txt").write_text("User-agent: *\n")
    (host / "data.bin").write_bytes(b"\0")
    (host / "_redirects").write_text("/old /sub/ 301\n/away http://b.test/x 302\n")
    (tmp_path / "site" / "b.test").mkdir()
    (tmp_path / "site" / "secret").write_text("no host")
    (tmp_path / "secret").write_text("secret")
    return tmp_path / "site"


def ask(folder, *requests):
    async def run():
        answers = []
        async with serve_folder(folder) as (hosts, address, port), aiohttp.ClientSession() as web:
            assert hosts == {"a.test", "b.test"}
            for host, path in requests:
                url = f"http://{address}:{port}{path}"
                async with web.get(
                    aiohttp.client.URL(url, encoded=True),
                    headers={"Host": host},
                    allow_redirects=False,
                ) as got:
                    answers.append((got.status, await got.text(), dict(got.headers)))
        return answers

    return asyncio.run(run())


def test_files_folders_redirects_and_nothing_else(folder):
    paths = ["/", "/sub/", "/sub", "/gr%C3%BC%C3%9Fe%20page.html", "/robots.txt?x=1", "/old",
             "/away", "/none.html", "/_redirects", "/%2e%2e/secret", "/../../secret",
             "/a%00b"]  # fmt: skip
    answers = ask(folder, *(("a.test", path) for path in paths))
    texts = ["home", "sub", "sub", "greetings", "User-agent: *\n"]
    assert [answer[:2] for answer in answers[:5]] == [(200, text) for text in texts]
    assert [answer[0] for answer in answers[5:]] == [301, 302, 404, 404, 404, 404, 404]
    assert answers[5][2]["Location"] == "/sub/"
    assert answers[6][2]["Location"] == "http://b.test/x"


def test_types_and_hosts(folder):
    page, robots, data, other, unknown = ask(
        folder,
        ("A.test:80", "/index.html"),
        ("a.test", "/robots.txt"),
        ("a.test", "/data.bin"),
        ("b.test", "/"),
        ("c.test", "/"),
    )
    assert page[2]["Content-Type"] == "text/html; charset=utf-8"
    assert robots[2]["Content-Type"] == "text/plain; charset=utf-8"
    assert data[2]["Content-Type"] == "application/octet-stream"
    assert (other[0], unknown[0]) == (404, 404)


def test_generated_pages_have_their_size_or_no_end(folder):
    (folder / "a.test" / "_generated").write_text("/large 200000\n/for-ever endless\n")

    async def run():
        async with serve_folder(folder) as (_, address, port), aiohttp.ClientSession() as web:
            base, headers = f"http://{address}:{port}", {"Host": "a.test"}
            async with web.get(f"{base}/large", headers=headers) as large:
                size = len(await large.read())
            async with web.get(f"{base}/for-ever", headers=headers) as endless:
                start = await endless.content.readexactly(3_000_000)
            async with web.get(f"{base}/_generated", headers=headers) as hidden:
                return large.content_length, size, endless.content_length, start, hidden.status

    announced, size, unknown, start, status = asyncio.run(run())
    assert (announced, size, unknown, status) == (200_000, 200_000, None, 404)
    assert start.startswith(b"<p>") and len(set(start.split(b"\n")[:-1])) == 1


def test_a_bad_redirect_names_file_and_line(folder):
    (folder / "a.test" / "_redirects").write_text("/ok /x 301\n/broken\n")
    with pytest.raises(InputError, match=r"_redirects: line 2"):
        ask(folder)
    (folder / "a.test" / "_redirects").unlink()
    (folder / "a.test" / "_generated").write_text("/x many\n")
    with pytest.raises(InputError, match=r"_generated: line 1"):
        ask(folder)
