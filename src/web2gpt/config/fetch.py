"""Settings of the stage fetch."""

from pydantic import Field

from web2gpt.config.base import Real, Settings


class Fetch(Settings):
    """The crawler's manners and limits."""

    contact: str | None = Field(
        None, description="e-mail or page that site owners can turn to; a real crawl needs one"
    )
    serve: str | None = Field(
        None, description="folder of a site to serve during the fetch, instead of the real hosts"
    )
    concurrency: int = Field(64, ge=1, description="requests under way at once, in one shard")
    per_host: int = Field(2, ge=1, description="requests under way at once to one host")
    delay: Real = Field(0.5, ge=0, description="seconds between two requests to one host")
    timeout: Real = Field(60.0, gt=0, description="seconds for one URL, all in all")
    max_bytes: int = Field(8 << 20, ge=1, description="largest page, in bytes, after decompression")
    max_redirects: int = Field(5, ge=0, description="redirects followed for one URL")
    retries: int = Field(2, ge=0, description="further tries after a failure that may pass")
    warc_level: int = Field(3, ge=1, le=9, description="gzip level of the archive")
