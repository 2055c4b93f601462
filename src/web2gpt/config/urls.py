"""Settings of the stage urls."""

from pydantic import Field

from web2gpt.config.base import Settings


class Urls(Settings):
    """Which URLs are left out before anything is fetched."""

    min_length: int = Field(9, ge=0, description="shortest URL kept, in characters")
    blacklist_domains: tuple[str, ...] = Field(
        (), description="further files of domains to leave out, beside the built-in lists"
    )
    allow_domains: tuple[str, ...] = Field(
        (), description="files of domains kept whatever the lists say"
    )
