"""Build the whole demo: articles, plants, and the list of URLs."""

from web2gpt.demo.library import add_library
from web2gpt.demo.modules import read_modules
from web2gpt.demo.pages import lay_out
from web2gpt.demo.plants import add_plants
from web2gpt.demo.site import Site
from web2gpt.demo.url_list import add_noise


def build_site() -> Site:
    """The demo of the running Python: always the same for one version of it and of the packages."""
    articles = list(lay_out(read_modules()))
    site = Site()
    add_library(site, articles)
    add_plants(site, articles)
    add_noise(site)
    return site
