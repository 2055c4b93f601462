"""Settings of the stage extract."""

from typing import Literal

from pydantic import Field

from web2gpt.config.base import Real, Settings
from web2gpt.config.sources import Keys


class Extract(Settings):
    """From pages to text."""

    extractor: Literal["trafilatura", "resiliparse", "paragraphs"] = Field(
        "trafilatura",
        description="trafilatura: the best; resiliparse: the fastest; paragraphs: all <p>",
    )
    timeout: Real = Field(20.0, gt=0, description="seconds for a page; its process is then killed")
    memory: int = Field(1 << 30, ge=1 << 27, description="bytes of memory of an extracting process")
    crawl_date: bool = Field(
        False,
        description="documents say when they were fetched, as `crawled`, for dedup.keep: oldest; "
        "their bytes then differ from crawl to crawl",
    )
    max_bytes: int = Field(16 << 20, ge=1, description="largest page, in bytes")


class ExtractRun(Extract):
    """What the command extract needs: the section, and the names of a source's fields."""

    keys: Keys = Keys()
