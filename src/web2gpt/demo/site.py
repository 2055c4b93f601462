"""The demo's site as it is built up, and its form on disk.

``site/<host>/`` holds a file for each path (``index.html`` for a folder), ``robots.txt``,
``_redirects`` with lines ``FROM TO STATUS``, where TO may be a whole URL, and ``_generated`` with
lines ``PATH BYTES`` for pages that the server makes up as it sends them, where BYTES may be
``endless``. What is absent is not found. The same content gives the same bytes.
"""

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from web2gpt.io.atomic import temporary_name, write_json, write_text


@dataclass
class Site:
    """Files by host and path, redirects and generated pages by host, and the list of URLs."""

    files: dict[tuple[str, str], str] = field(default_factory=dict)
    redirects: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)
    generated: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    planted: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def add(self, host: str, path: str, text: str, *, listed: bool = True) -> str:
        """Add a file; its URL is returned, and listed unless told otherwise."""
        if (host, path) in self.files:
            raise ValueError(f"two files for {host}{path}")
        self.files[host, path] = text
        url = f"http://{host}{path}"
        if listed:
            self.lines.append(url)
        return url

    def redirect(self, host: str, path: str, target: str, status: int) -> str:
        """Send ``path`` elsewhere; its URL is returned and listed."""
        self.redirects.setdefault(host, []).append((path, target, status))
        url = f"http://{host}{path}"
        self.lines.append(url)
        return url

    def generate(self, host: str, path: str, size: str) -> str:
        """Have a page made up, of ``size`` bytes or ``endless``; its URL is returned and listed."""
        self.generated.setdefault(host, []).append((path, size))
        url = f"http://{host}{path}"
        self.lines.append(url)
        return url

    def plant(self, stage: str, reason: str, *urls: str) -> None:
        """Note that ``stage`` should see each of ``urls`` for this reason."""
        self.planted.setdefault(stage, {}).setdefault(reason, []).extend(urls)

    def summary(self) -> dict[str, Any]:
        """What planted.json says: the counts that stages should report, and the URLs of each."""
        drops = {
            stage: {reason: len(urls) for reason, urls in sorted(self.planted[stage].items())}
            for stage in ("urls", "fetch", "clean")
        }
        kept = len(self.lines) - sum(drops["urls"].values())
        pages = kept - sum(drops["fetch"].values())
        return {
            "urls": {"in": len(self.lines), "kept": kept, "dropped": drops["urls"]},
            "fetch": {"in": kept, "kept": pages, "dropped": drops["fetch"]},
            "extract": {"in": pages, "kept": pages, "dropped": {}},
            "dedup": {"in": pages, "at_least": len(self.planted["dedup"]["near_duplicate"])},
            "clean": {"dropped": drops["clean"]},
            "hosts": dict(sorted(Counter(host for host, _ in self.files).items())),
            "lists": self.planted,
        }

    def write(self, folder: Path) -> None:
        """Write site/, urls.txt and planted.json into ``folder``, planted.json last."""
        site, draft = folder / "site", temporary_name(folder / "site")
        try:
            self._write_files(draft)
            if site.exists():
                shutil.rmtree(site)
            os.replace(draft, site)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        write_text(folder / "urls.txt", "".join(f"{line}\n" for line in self.lines))
        write_json(folder / "planted.json", self.summary())

    def _write_files(self, folder: Path) -> None:
        for (host, path), text in self.files.items():
            file = folder / host / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        for host, redirects in self.redirects.items():
            lines = "".join(f"{path} {target} {status}\n" for path, target, status in redirects)
            (folder / host / "_redirects").write_text(lines, encoding="utf-8")
        for host, pages in self.generated.items():
            lines = "".join(f"{path} {size}\n" for path, size in pages)
            (folder / host / "_generated").write_text(lines, encoding="utf-8")
