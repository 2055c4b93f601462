"""Settings of the stages from archives to corpus: extract, dedup, clean, decontaminate, merge."""

from typing import Literal

from pydantic import Field

from web2gpt.config.base import Real, Settings


class Extract(Settings):
    """From pages to text."""

    extractor: Literal["trafilatura", "resiliparse", "paragraphs"] = Field(
        "trafilatura",
        description="trafilatura: the best; resiliparse: the fastest; paragraphs: all <p>",
    )
    timeout: Real = Field(20.0, gt=0, description="seconds for a page; its process is then killed")
    memory: int = Field(1 << 30, ge=1 << 27, description="bytes of memory of an extracting process")
    max_bytes: int = Field(16 << 20, ge=1, description="largest page, in bytes")


class Dedup(Settings):
    """Near-duplicates, by MinHash and verified similarity."""

    threshold: Real = Field(0.8, gt=0, le=1, description="similarity (Jaccard) that makes a copy")
    shingle: Literal["words", "characters"] = Field(
        "words", description="what shingles are made of"
    )
    ngram: int = Field(5, ge=1, description="words, or characters, in a shingle")
    permutations: int = Field(128, ge=16, description="length of a signature")
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
        "exact", description="Jaccard of the shingle sets, or of the signatures"
    )
    keep: Literal["longest", "oldest"] = Field("longest", description="which copy stays")


class Clean(Settings):
    """Broken, short and foreign text."""

    fix_text: bool = Field(True, description="mend mojibake with ftfy")
    languages: tuple[str, ...] = Field(("en",), description="ISO 639-1 codes kept; empty: all")
    min_language_probability: Real = Field(0.0, ge=0, le=1, description="of the language found")
    min_tokens: int = Field(128, ge=0, description="shortest document kept, in tokens")
    token_counter: str | None = Field(
        None, description="tokenizer.json to count tokens with; none: estimated from bytes"
    )
    min_characters: int = Field(0, ge=0, description="shortest document kept, in characters")
    max_characters: int = Field(1_000_000, ge=1, description="longer documents are cut into pieces")
    javascript: bool = Field(True, description="drop short documents that ask for JavaScript")
    whitespace: bool = Field(True, description="collapse runs of spaces and of empty lines")


class Decontaminate(Settings):
    """Leave out text that evaluation sets contain."""

    against: tuple[str, ...] = Field((), description="evaluation sets, JSONL or text; none: off")
    ngram: int = Field(13, ge=2, description="words in an n-gram")
    min_ngram: int = Field(
        8, ge=1, description="shorter evaluation texts, down to this, count whole"
    )
    common: int = Field(10, ge=1, description="n-grams seen this often are plain phrases")
    margin: int = Field(200, ge=0, description="characters cut out on each side of a match")
    min_characters: int = Field(200, ge=0, description="shortest piece kept, in characters")
    max_pieces: int = Field(10, ge=1, description="documents cut into more pieces are dropped")


class Merge(Settings):
    """From shards to one corpus."""

    frame_bytes: int = Field(4 << 20, ge=1 << 12, description="text in one zstd frame, in bytes")
    shuffle: bool = Field(False, description="seeded shuffle of the documents")
