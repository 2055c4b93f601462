"""How fast the openwebtext downloader is on the pages that ``fetch.py`` uses.

    python tests/benchmarks/downloader.py --peer FOLDER --peer-python FILE [--pages 200]

FOLDER is a checkout of the downloader, FILE a Python that has its packages (see README.md here). It
was written for older Pythons and tldextract; a module put beside it gives both back what it wants,
and its own files stay as they are. Its ``raw`` scraper ends with a KeyError of its own after the
first chunk, so ``bs4`` and ``newspaper`` are run: 10 processes on one core, archives compressed.
It extracts text too, which ``web2gpt fetch`` leaves to a later stage.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fetch import HOSTS, server

SHIM = """
import collections, collections.abc, tldextract
collections.Iterable = collections.abc.Iterable
_extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
tldextract.extract = lambda url: (lambda parts: (parts.subdomain, parts.domain, parts.suffix))(
    _extract(url)
)
"""


def download(options: argparse.Namespace, scraper: str, port: int, core: int) -> float:
    """Pages a second."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(SHIM)
        urls = [f"http://{HOSTS[n % len(HOSTS)]}:{port}/page-{n:07d}" for n in range(options.pages)]
        (folder / "urls.txt").write_text("".join(f"{url}\n" for url in urls))
        command = ["taskset", "-c", str(core), options.peer_python,
                   str(options.peer.resolve() / "download.py"), "urls.txt", "--n_procs", "10",
                   "--chunk_size", "100", "--scraper", scraper, "--compress"]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        return options.pages / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, required=True)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--pages", type=int, default=200)
    options = parser.parse_args()
    client_core, server_core = sorted(os.sched_getaffinity(0))[:2]
    found = {}
    with server(server_core) as port:
        for scraper in ("bs4", "newspaper"):
            found[scraper] = download(options, scraper, port, client_core)
            print(f"download.py --scraper {scraper}: {found[scraper]:.1f} pages/s", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
