"""Settings of the stage urls."""

from pydantic import Field

from web2gpt.config.base import Settings


class Urls(Settings):
    """Which URLs are left out before anything is fetched."""

    min_length: int = Field(9, ge=0, description="shortest URL kept, in characters")
    blacklist_domains: tuple[str, ...] = Field(
        (),
        description="further files of domains to leave out, beside the built-in lists: "
        "plain, hosts-file or Adblock form",
    )
    allow_domains: tuple[str, ...] = Field(
        (), description="files of domains kept whatever the lists say"
    )
    without_lists: tuple[str, ...] = Field(
        (), description="built-in lists that are not applied, by name (see src/web2gpt/urls/lists)"
    )
    min_score: int = Field(3, description="lowest score of a submission in Reddit dumps (RS_*)")
