"""The whole configuration, and the rules that join its sections."""

from collections import Counter
from typing import Literal

from pydantic import Field, model_validator

from web2gpt.config.base import Settings
from web2gpt.config.clean import Clean, Decontaminate
from web2gpt.config.dedup import Dedup
from web2gpt.config.derive import check_layout
from web2gpt.config.extract import Extract
from web2gpt.config.fetch import Fetch
from web2gpt.config.merge import Merge
from web2gpt.config.outputs import Evaluate, MergeCheckpoint, Sample
from web2gpt.config.sources import Data, Limits, Rejected, Run, Source
from web2gpt.config.tokens import Index, Tokenize, Tokenizer
from web2gpt.config.training import Model, Optimizer, Parallel, Schedule, Train
from web2gpt.config.urls import Urls


class Config(Settings):
    """One run, from its sources to its samples."""

    data: Data = Data()
    run: Run = Run()
    input: tuple[Source, ...] = Field(min_length=1, description="the sources of the corpus")
    urls: Urls = Urls()
    fetch: Fetch = Fetch()
    extract: Extract = Extract()
    dedup: Dedup = Dedup()
    clean: Clean = Clean()
    decontaminate: Decontaminate = Decontaminate()
    merge: Merge = Merge()
    tokenizer: Tokenizer = Tokenizer()
    tokenize: Tokenize = Tokenize()
    index: Index = Index()
    model: Model = Model()
    parallel: Parallel = Parallel()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    train: Train = Train()
    merge_checkpoint: MergeCheckpoint = MergeCheckpoint()
    sample: Sample = Sample()
    evaluate: Evaluate = Evaluate()
    limits: Limits = Limits()
    rejected: Rejected = Rejected()
    keep: Literal["all", "results"] = Field(
        "all",
        description="results: documents of the stages between are dropped once the corpus stands",
    )

    @model_validator(mode="after")
    def _sources_have_names_of_their_own(self) -> "Config":
        twice = [name for name, n in Counter(source.name for source in self.input).items() if n > 1]
        if twice:
            raise ValueError(
                f"input: the name {twice[0]!r} stands twice; each source needs its own"
            )
        return self

    @model_validator(mode="after")
    def _crawl_has_a_contact(self) -> "Config":
        crawls = any(source.kind == "urls" for source in self.input)
        if crawls and self.fetch.serve is None and not self.fetch.contact:
            raise ValueError(
                "fetch.contact: a crawl of real hosts needs an e-mail address or a page that site "
                "owners can turn to, such as fetch.contact: crawler@example.org"
            )
        return self

    @model_validator(mode="after")
    def _oldest_has_dates(self) -> "Config":
        crawls = any(source.kind in ("urls", "warc") for source in self.input)
        by_crawl = self.dedup.keep == "oldest" and self.dedup.date_field == "crawled"
        if crawls and by_crawl and not self.extract.crawl_date:
            raise ValueError(
                "dedup.keep = oldest goes by the date of the crawl, which documents carry with "
                "extract.crawl_date: true; or name another field in dedup.date_field"
            )
        return self

    @model_validator(mode="after")
    def _sources_are_weighted_together(self) -> "Config":
        validated = set(self.index.validation)
        if unknown := sorted(validated - {source.name for source in self.input}):
            raise ValueError(f"index.validation: {unknown[0]!r} is no source of input")
        trained = [source for source in self.input if source.name not in validated]
        if not trained:
            raise ValueError("index.validation: names all sources; none is left to train on")
        without = [source.name for source in trained if source.weight is None]
        if 0 < len(without) < len(trained):
            raise ValueError(
                f"input: {without[0]!r} has no weight, others have; give one to each source, or "
                "to none (then all documents are seen equally often)"
            )
        return self

    @model_validator(mode="after")
    def _evaluated_part_is_there(self) -> "Config":
        name = self.evaluate.split.removeprefix("valid-")
        if name != self.evaluate.split and name not in self.index.validation:
            raise ValueError(
                f"evaluate.split = {self.evaluate.split}: index.validation does not name {name!r}"
            )
        return self

    @model_validator(mode="after")
    def _samples_have_prompts(self) -> "Config":
        if self.sample.prompts == () and self.sample.prompts_file is None:
            raise ValueError(
                "sample.prompts: no prompts; give some, or an empty one ('') for text without one"
            )
        return self

    @model_validator(mode="after")
    def _layout_fits(self) -> "Config":
        check_layout(self.model, self.parallel, self.train)
        return self
