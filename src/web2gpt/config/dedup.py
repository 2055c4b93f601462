"""Settings of the stage dedup."""

from typing import Literal

from pydantic import Field, model_validator

from web2gpt.config.base import Real, Settings


class Dedup(Settings):
    """Near-duplicates, by MinHash and verified similarity."""

    threshold: Real = Field(0.8, gt=0, le=1, description="similarity that makes a copy")
    jaccard: Literal["union", "min", "max"] = Field(
        "union",
        description="what common shingles are divided by: all, those of the shorter, longer",
    )
    shingle: Literal["words", "characters"] = Field(
        "words", description="what shingles are made of"
    )
    ngram: int = Field(5, ge=1, le=100, description="words, or characters, in a shingle")
    permutations: int = Field(128, ge=16, le=1024, description="length of a signature")
    false_positive_weight: Real = Field(
        0.1, ge=0, description="of chance candidates, in choosing the bands"
    )
    false_negative_weight: Real = Field(
        0.9, ge=0, description="of missed copies, in choosing the bands"
    )
    cluster: Literal["star", "components"] = Field(
        "star", description="star: a copy must be similar to the kept one; components: to any other"
    )
    verify: Literal["exact", "estimate"] = Field(
        "exact", description="similarity of the shingle sets, or of the signatures"
    )
    keep: Literal["longest", "oldest", "priority"] = Field(
        "longest", description="which copy stays; priority: the highest number in priority_field"
    )
    date_field: str = Field("crawled", description="field of the date that `keep: oldest` goes by")
    priority_field: str = Field("priority", description="field that `keep: priority` goes by")
    min_characters: int = Field(0, ge=0, description="shorter copies stay only if no longer one is")
    against: tuple[str, ...] = Field(
        (), description="folders dedup/signatures of earlier runs, whose documents are not repeated"
    )
    against_documents: tuple[str, ...] = Field(
        (),
        description="their folders of documents, in the same order, for exact verification; none: "
        "the signatures' estimate decides",
    )
    order: Literal["dedup_first", "clean_first"] = Field(
        "dedup_first", description="clean_first: near-duplicates are sought in cleaned documents"
    )
    jobs: int = Field(1, ge=1, le=64, description="jobs that the bands are dealt out to")

    @model_validator(mode="after")
    def _estimate_is_of_the_union(self) -> "Dedup":
        if self.verify == "estimate" and self.jaccard != "union":
            raise ValueError(
                f"dedup.jaccard = {self.jaccard} needs verify: exact; signatures estimate the union"
            )
        return self

    @model_validator(mode="after")
    def _earlier_runs_can_be_compared(self) -> "Dedup":
        if not self.against_documents:
            if self.against and self.jaccard != "union":
                raise ValueError(
                    f"dedup.jaccard = {self.jaccard} needs dedup.against_documents beside "
                    "dedup.against; signatures estimate the union"
                )
        elif len(self.against_documents) != len(self.against):
            raise ValueError(
                f"dedup.against_documents names {len(self.against_documents)} folders, "
                f"dedup.against {len(self.against)}; give one for each, in the same order"
            )
        return self
