"""The page itself: a template filled with the evidence, everything escaped, nothing linked in.

Text of a corpus, a model or a file name is shown as text whatever it holds: the template escapes
all values, and only the figures and the style sheet, which are ours, are put in as they are.
"""

from importlib import resources

import jinja2
from markupsafe import Markup

from web2gpt import __version__
from web2gpt.report.evidence import Evidence
from web2gpt.report.figures import all_figures


def render(evidence: Evidence) -> str:
    """The whole page as HTML."""
    files = resources.files("web2gpt.report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(lambda name: (files / name).read_text()),
    )
    environment.filters["figure"] = figure
    environment.filters["plain"] = plain
    return environment.get_template("page.html").render(
        evidence=evidence,
        figures=[(drawn, Markup(drawn.svg)) for drawn in all_figures(evidence)],
        style=Markup((files / "page.css").read_text()),
        version=__version__,
    )


def figure(value: object) -> str:
    """A value as it stands in a table: whole numbers grouped, others to six digits."""
    match value:
        case bool() | None:
            return "—" if value is None else "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}"
        case list() | tuple():
            return ", ".join(figure(item) for item in value) or "—"
        case _:
            return plain(value)


def plain(value: object) -> str:
    """Text without the control characters that HTML does not allow."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else "\ufffd"
        for character in str(value)
    )
