"""Settings of the stage fetch."""

from ipaddress import ip_network

from pydantic import Field, field_validator

from web2gpt.config.base import Real, Settings

PACE = frozenset((
    "concurrency", "patience", "per_host", "delay", "max_delay", "backoff", "max_wait",
))  # fmt: skip
"""Settings that decide how fast a crawl goes, not what it brings: a crawl under way goes on."""


class Fetch(Settings):
    """The crawler's manners and limits."""

    contact: str | None = Field(
        None,
        pattern=r"^[\x21-\x7e]+$",
        description="e-mail or page that site owners can turn to; a real crawl needs one",
    )
    user_agent: str = Field(
        "webtogpt", pattern=r"^[A-Za-z_-]+$", description="name given to sites and to robots.txt"
    )
    serve: str | None = Field(
        None, description="folder of a site to serve during the fetch, instead of the real hosts"
    )
    concurrency: int = Field(64, ge=1, description="requests under way at once, in one shard")
    patience: Real = Field(
        1.0, gt=0, description="seconds after which a request counts no longer as one of these"
    )
    per_host: int = Field(2, ge=1, description="requests under way at once to one host")
    delay: Real = Field(0.5, ge=0, description="seconds between two requests to one host")
    max_delay: Real = Field(30.0, ge=0, description="longest crawl-delay of a robots.txt obeyed")
    connect_timeout: Real = Field(10.0, gt=0, description="seconds to resolve and connect")
    first_byte_timeout: Real = Field(30.0, gt=0, description="seconds from there to the headers")
    idle_timeout: Real = Field(20.0, gt=0, description="seconds between two pieces of a body")
    timeout: Real = Field(
        60.0, gt=0, description="seconds on the network for one URL, redirects and retries included"
    )
    max_bytes: int = Field(8 << 20, ge=1, description="largest page, in bytes, after decompression")
    max_wire_bytes: int = Field(8 << 20, ge=1, description="largest page, in bytes, as sent")
    max_redirects: int = Field(5, ge=0, description="redirects followed for one URL")
    retries: int = Field(2, ge=0, description="further tries after a failure that may pass")
    backoff: Real = Field(1.0, ge=0, description="seconds before the first retry, then doubled")
    max_wait: Real = Field(60.0, ge=0, description="longest wait before a retry; caps Retry-After")
    retry_failed: int = Field(
        0, ge=0, description="raise by one to try once more what failed and may pass; rest is kept"
    )
    content_types: tuple[str, ...] = Field(
        ("text/html", "application/xhtml+xml"), description="media types kept"
    )
    page_rules: tuple[str, ...] = Field(
        ("noindex", "none", "noarchive", "noai"),
        description="directives of X-Robots-Tag and robots meta that a page is left out for",
    )
    allow_networks: tuple[str, ...] = Field(
        (), description="networks that may be contacted though not public, such as 10.1.0.0/16"
    )
    proxies: bool = Field(
        True, description="use the proxies that http_proxy, https_proxy and no_proxy name"
    )
    warc_level: int = Field(3, ge=0, le=3, description="gzip level of the archive, as igzip counts")

    @field_validator("allow_networks")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            try:
                ip_network(network)
            except ValueError as error:
                raise ValueError(f"fetch.allow_networks: {error}; write 10.1.0.0/16") from None
        return networks
