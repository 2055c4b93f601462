"""Debian's Chromium without a screen, driven over its own protocol: what a reader would see."""

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--remote-debugging-port=0", "--no-first-run",
         "--disable-background-networking")  # fmt: skip
OVERFLOWING = """[...document.querySelectorAll("body *")].filter(e => {
  const box = e.getBoundingClientRect();
  return box.right > innerWidth + 1 && !e.closest(".wide, svg");
}).map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60))"""


@dataclass
class Sight:
    """A page as it was shown. ``complaints``: what the browser logged; ``asked``: URLs loaded."""

    screenshot: bytes
    height: int
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    overflowing: list[str] = field(default_factory=list)
    colours: dict[str, str] = field(default_factory=dict)


class Tab:
    """One tab: ``call`` sends a command, events are kept."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse):
        self._socket, self._numbers = socket, itertools.count(1)
        self.events: list[dict[str, Any]] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = json.loads((await self._socket.receive(timeout=60)).data)
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    async def wait_for(self, event: str) -> None:
        while not any(one.get("method") == event for one in self.events):
            self.events.append(json.loads((await self._socket.receive(timeout=60)).data))

    async def value(self, expression: str) -> Any:
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")


def look(
    page: Path, profile: Path, *, width: int, dark: bool = False, paper: bool = False
) -> Sight:
    """Open ``page`` at ``width`` pixels, the whole height of it."""
    return asyncio.run(_look(page, profile, width, dark, paper))


async def _look(page: Path, profile: Path, width: int, dark: bool, paper: bool) -> Sight:
    async with _tab(profile) as tab:
        for domain in ("Page", "Log", "Runtime", "Network"):
            await tab.call(f"{domain}.enable")
        await tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                       deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await tab.call("Emulation.setEmulatedMedia", features=[scheme],
                       media="print" if paper else "screen")  # fmt: skip
        await tab.call("Page.navigate", url=page.resolve().as_uri())
        await tab.wait_for("Page.loadEventFired")
        await tab.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        height = int(await tab.value("document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = await tab.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        style = "getComputedStyle(document.body)"
        return Sight(
            base64.b64decode(shot["data"]),
            height,
            list(_complaints(tab.events)),
            [one["params"]["request"]["url"] for one in tab.events
             if one.get("method") == "Network.requestWillBeSent"],
            await tab.value(OVERFLOWING),
            {"paper": await tab.value(f"{style}.backgroundColor"),
             "ink": await tab.value(f"{style}.color")},
        )  # fmt: skip


def _complaints(events: list[dict[str, Any]]) -> Any:
    for event in events:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Log.entryAdded":
                yield parameters["entry"]["text"]
            case "Runtime.exceptionThrown":
                yield parameters["exceptionDetails"]["text"]
            case "Runtime.consoleAPICalled":
                yield str(parameters["args"])


@contextlib.asynccontextmanager
async def _tab(profile: Path) -> AsyncIterator[Tab]:
    program = shutil.which("chromium")
    assert program, "no chromium; apt-get install chromium"
    with (profile / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        port = await _port(profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                tabs = [one for one in await answer.json() if one["type"] == "page"]
            address = tabs[0]["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                yield Tab(socket)
    finally:
        process.terminate()
        process.wait(20)


async def _port(file: Path) -> int:
    """The port that the browser writes down once it listens."""
    for _ in range(600):
        with contextlib.suppress(OSError, IndexError, ValueError):
            return int(file.read_text().splitlines()[0])
        await asyncio.sleep(0.1)
    raise AssertionError("the browser did not start")
