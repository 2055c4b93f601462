"""What goes in: the list of sources, and the names of data and run."""

from typing import Literal

from pydantic import Field, model_validator

from web2gpt.config.base import Real, Settings

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


class Keys(Settings):
    """Names of the fields in a source's JSON lines."""

    text: str = Field("text", description="field that holds the text")
    id: str | None = Field(None, description="field of the record's own id; none: file and line")
    url: str | None = Field("url", description="field of the address, if there is one")
    carry: tuple[str, ...] = Field(
        (), description="further fields that documents keep, for dedup's keep rule"
    )


class Source(Settings):
    """One source of the corpus. Its kind says where it enters the chain."""

    name: str = Field(pattern=NAME, description="short name; documents carry it")
    kind: Literal["urls", "warc", "jsonl", "tokens"] = Field(
        description="lists of URLs, WARC files, JSON lines, or prefixes of .bin/.idx pairs"
    )
    paths: tuple[str, ...] = Field(min_length=1, description="files or folders, or prefixes")
    weight: Real | None = Field(
        None, gt=0, description="share in training, relative to the others'; none: by size"
    )
    enter: Literal["dedup", "tokenize"] = Field(
        "dedup", description="jsonl only: where its documents enter; tokenize skips dedup and clean"
    )
    keys: Keys = Field(Keys(), description="jsonl only: names of its fields")

    @model_validator(mode="after")
    def _shard_name_is_free(self) -> "Source":
        if self.kind != "urls" and self.name == "urls":
            raise ValueError("the name 'urls' is kept for the shards of URL sources; take another")
        if self.kind == "tokens" and self.name == "corpus":
            raise ValueError("the name 'corpus' is kept for the corpus made here; take another")
        return self


class Data(Settings):
    """The corpus that this run reads or makes."""

    name: str = Field("demo", pattern=NAME, description="folder under results/data/")
    shards: int = Field(
        2, ge=1, description="shards a source: how many jobs a data stage splits into"
    )


class Run(Settings):
    """The training run."""

    name: str = Field("demo", pattern=NAME, description="folder under results/runs/")
    seed: int = Field(
        1234, ge=0, description="decides initial weights, data order, dropout, sampling"
    )


class Limits(Settings):
    """When to stop rather than go on."""

    errors: Real = Field(
        0.05, ge=0, le=1, description="share of unreadable records at which a data stage fails"
    )


class Rejected(Settings):
    """The records under rejected/."""

    text: bool = Field(False, description="keep the text of rejected documents too")
