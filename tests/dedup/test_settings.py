"""Settings of dedup that must agree with one another."""

from typing import Any

import pytest

from web2gpt.config.dedup import Dedup
from web2gpt.config.load import load_config, parse_settings
from web2gpt.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('{"verify": "estimate", "jaccard": "min"}', "needs verify: exact"),
        ('{"against": ["a"], "jaccard": "max"}', "needs dedup.against_documents"),
        ('{"against": ["a"], "against_documents": ["b", "c"]}', "names 2 folders"),
        ('{"against_documents": ["b"]}', "dedup.against 0"),
    ],
)
def test_what_cannot_be_compared_is_refused(settings: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_settings(Dedup, settings)


def test_the_oldest_of_crawled_pages_needs_their_dates() -> None:
    def config(kind: str, **sections: Any) -> dict[str, Any]:
        source = {"name": "a", "kind": kind, "paths": ["a"]}
        return {"input": [source], "dedup": {"keep": "oldest"}, **sections}

    with pytest.raises(ConfigError, match=r"extract\.crawl_date: true"):
        load_config(config("warc"))
    load_config(config("warc", extract={"crawl_date": True}))
    load_config(config("warc", dedup={"keep": "oldest", "date_field": "date"}))
    load_config(config("jsonl"))
