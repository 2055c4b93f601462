"""The report in a browser: nothing is fetched, nothing complained of, nothing sticks out.

The screenshots stay in results/page/, to be looked at.
"""

import re
from pathlib import Path

import pytest
from tests.page.browser import look
from tests.page.conftest import SCREENSHOTS

pytestmark = pytest.mark.page
CASES = [
    ("desktop", 1200, False),
    ("desktop-dark", 1200, True),
    ("phone", 390, False),
    ("phone-dark", 390, True),
    ("print", 800, False),
]


def luminance(colour: str) -> float:
    """Relative luminance of rgb(r, g, b), as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
              for part in parts]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("name", "width", "dark"), CASES, ids=[case[0] for case in CASES])
def test_the_page_shows_well(page: Path, tmp_path: Path, name: str, width: int, dark: bool):
    sight = look(page, tmp_path, width=width, dark=dark, paper=name == "print")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / f"{page.stem}-{name}.png").write_bytes(sight.screenshot)
    assert sight.complaints == []
    assert [url for url in sight.asked if not url.startswith("file://")] == []
    assert len(sight.asked) == 1
    assert sight.overflowing == []
    light, deep = sorted(map(luminance, sight.colours.values()), reverse=True)
    assert (light + 0.05) / (deep + 0.05) > 7  # WCAG's best grade of contrast
    assert (luminance(sight.colours["paper"]) < 0.1) == dark
