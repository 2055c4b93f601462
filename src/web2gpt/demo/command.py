"""``web2gpt demo``: make the demo's site and its list of URLs."""

import time
from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[
        Path, typer.Option(help="folder for site/, urls.txt and planted.json", file_okay=False)
    ],
) -> None:
    """Render Python's documentation strings as a small web site with a list of its URLs.

    Example: web2gpt demo --output resources/demo
    """
    from web2gpt.demo.build import build_site

    start = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    site = build_site()
    site.write(output)
    print(f"demo: {len(site.files):,} files, {len(site.lines):,} URLs, "
          f"{time.monotonic() - start:.1f} s", flush=True)  # fmt: skip
