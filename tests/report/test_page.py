"""The page stands by itself, shows every number, and shows foreign text as text."""

import math
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.report.conftest import RunFolders
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.errors import InputError
from web2gpt.report.evidence import Evidence, gather
from web2gpt.report.figures import all_figures
from web2gpt.report.page import render
from web2gpt.report.training import Curve
from web2gpt.report.training_figures import line

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Reader(HTMLParser):
    """Elements with their attributes, all text, and whether every element is closed in turn."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_nothing_is_fetched_and_nothing_runs(page: str) -> None:
    for tag, attributes in Reader(page).elements:
        assert tag not in {"script", "iframe", "img", "link", "object", "embed", "base", "form"}
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in {"src", "href", "xlink:href", "srcset", "action", "data", "poster"}:
                assert value is not None
                assert value.startswith("#")
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "@import" not in style
    assert "url(" not in style


def test_foreign_text_is_shown_as_text(page: str) -> None:
    reader = Reader(page)
    assert "<script>alert(1)</script><img src=http://x.example/y.png" in reader.text
    assert "{{7*7}}" in reader.text
    assert "\0" not in page
    assert "\x1b" not in page


def test_every_link_inside_the_page_leads_somewhere(page: str) -> None:
    elements = Reader(page).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for _, attributes in elements if attributes.get("href")]
    assert {f"#{one}" for one in ids} >= set(links)


def test_numbers_and_reasons_are_told(page: str) -> None:
    text = Reader(page).text
    for told in ("malformed", "duplicate", "language", "123,456", "25.79", "model.n_layer",
                 "2.13.0", "ab" * 32, "900"):  # fmt: skip
        assert told in text


def test_figures_have_titles_units_and_text_alternatives(evidence: Evidence) -> None:
    figures = all_figures(evidence)
    assert [figure.name for figure in figures] == [
        "funnel", "losses", "domains", "languages", "lengths", "clusters", "loss",
        "learning-rate", "gradient-norm", "throughput", "memory", "time",
    ]  # fmt: skip
    for figure in figures:
        assert figure.title
        assert any(character.isdigit() for character in figure.alternative)
        ElementTree.fromstring(figure.svg)  # well-formed
        assert "#0" not in figure.svg  # every colour of ours became a variable
        for text in re.findall(r"<text[^>]*>", figure.svg):
            assert "fill: var(--ink)" in text  # or it would be black, in the dark too
    by_name = {figure.name: figure for figure in figures}
    assert "urls: 90 of 100 lines kept" in by_name["funnel"].alternative
    assert "urls: duplicate: 7" in by_name["losses"].alternative
    assert "validation loss from 4.5 at step 100 to 3.5 at step 200" in by_name["loss"].alternative
    assert "loss (nats a token)" in by_name["loss"].svg
    assert "tokens a second" in by_name["throughput"].svg
    assert "restarts after steps 120" in by_name["loss"].alternative
    assert "1 steps that were not applied" in by_name["loss"].alternative
    for named in ("training", "validation", "restart", "not applied"):
        assert by_name["loss"].svg.count(f">{named}<") == 1, "in the legend, once"
    assert "estimated before: 0.5" in by_name["memory"].alternative
    assert "fr: 1 dropped for it, 0 in the corpus" in by_name["languages"].alternative
    assert "example.org: 4 before, 1 in the corpus" in by_name["domains"].alternative
    assert "1 sets of 3 documents" in by_name["clusters"].alternative


def test_the_page_says_each_alternative(page: str) -> None:
    labels = [a.get("aria-label") for _, a in Reader(page).elements if a.get("role") == "img"]
    assert len(labels) == 12
    assert all(labels)


def test_no_restart_is_told_apart_from_not_known(folders: RunFolders) -> None:
    starts = folders.run / "checkpoints" / "0123" / "starts.jsonl"
    starts.write_text('{"step": 0, "time": 1.0, "estimated_bytes": 7}\n')
    row = r"restarts, by the step they went on from</th><td>([^<]*)</td>"
    page = render(gather(folders.data, folders.run))
    assert re.findall(row, page) == ["none"]
    starts.unlink()
    assert re.findall(row, render(gather(folders.data, folders.run))) == ["—"]


def test_light_dark_phone_and_paper_are_provided_for(page: str) -> None:
    for needed in ("prefers-color-scheme: dark", "@media print", 'name="viewport"', 'lang="en"'):
        assert needed in page


def test_a_run_without_anything_still_has_a_page(tmp_path: Path) -> None:
    text = Reader(render(gather(tmp_path, tmp_path))).text
    for told in ("train/metrics.jsonl", "No samples yet", "No training log yet", "No manifest"):
        assert told in text


@pytest.mark.parametrize(
    "values", [(0.0,), (1.0, math.nan, 2.0), (math.inf, 1.0), (math.nan,), (1e30, 1e-30)]
)
def test_any_curve_can_be_drawn(values: tuple[float, ...]) -> None:
    figure = line("x", "X", "unit", Curve(tuple(range(len(values))), values))
    assert figure is not None
    ElementTree.fromstring(figure.svg)


def test_a_long_curve_makes_a_small_drawing() -> None:
    count = 200_000
    figure = line("x", "X", "u", Curve(tuple(range(count)), tuple(float(n) for n in range(count))))
    assert figure is not None
    assert len(figure.svg) < 100_000


def test_mathematical_signs_and_markup_in_names_stay_text(folders: RunFolders) -> None:
    path = folders.data / "stats" / "urls.json"
    path.write_text(path.read_text().replace("duplicate", r"$\\frac<x>&amp;$"))
    page = render(gather(folders.data, folders.run))
    assert r"$\frac<x>&amp;$" in Reader(page).text


def test_another_process_gives_the_same_bytes(
    unchanged: RunFolders, page: str, tmp_path: Path
) -> None:
    output = tmp_path / "report.html"
    subprocess.run(
        [sys.executable, "-m", "web2gpt.cli", "report", "--data", str(unchanged.data),
         "--run", str(unchanged.run), "--output", str(output)],
        env={**os.environ, "PYTHONHASHSEED": "7"}, check=True, capture_output=True,
    )  # fmt: skip
    assert output.read_text() == page


def test_the_command_says_one_line(folders: RunFolders, tmp_path: Path) -> None:
    output = tmp_path / "report" / "report.html"
    (folders.run / "manifest.json").unlink()
    arguments = ["report", "--data", str(folders.data), "--run", str(folders.run)]
    result = CliRunner().invoke(app, [*arguments, "--output", str(output)])
    assert result.exit_code == 0
    assert result.output == "report: 3 stages, 30 logged steps, without manifest.json\n"
    assert output.read_text().startswith("<!doctype html>")


def test_the_command_names_a_folder_that_is_not_there(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    arguments = ["report", "--data", missing, "--run", missing, "--output", "x.html"]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InputError)
    assert missing in str(result.exception)


def test_nothing_to_show_is_no_figure() -> None:
    assert all_figures(Evidence("a", "b")) == ()
