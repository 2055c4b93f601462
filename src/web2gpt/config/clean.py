"""Settings of clean and decontaminate."""

from typing import Literal

from pydantic import Field

from web2gpt.config.base import Real, Settings


class Ftfy(Settings):
    """ftfy's own options, under its names and with its defaults."""

    unescape_html: Literal["auto", "yes", "no"] = Field(
        "auto", description="&eacute; and the like; auto: up to the first line with a <"
    )
    remove_terminal_escapes: bool = Field(True, description="colours of terminals")
    fix_encoding: bool = Field(True, description="mojibake")
    restore_byte_a0: bool = Field(True, description="mojibake whose A0 became a space")
    replace_lossy_sequences: bool = Field(True, description="mojibake with lost bytes")
    decode_inconsistent_utf8: bool = Field(True, description="UTF-8 amid other text")
    fix_c1_controls: bool = Field(True, description="C1 controls meant as windows-1252")
    fix_latin_ligatures: bool = Field(True, description="ligatures to letters")
    fix_character_width: bool = Field(True, description="full-width letters to plain ones")
    uncurl_quotes: bool = Field(True, description="curly quotes to straight ones")
    fix_line_breaks: bool = Field(True, description="all line ends to line feeds")
    fix_surrogates: bool = Field(True, description="pairs of surrogates to characters")
    remove_control_chars: bool = Field(True, description="controls without a use in text")
    normalization: Literal["NFC", "NFD", "NFKC", "NFKD", "none"] = Field(
        "NFC", description="Unicode normalization form"
    )
    max_decode_length: int = Field(
        1_000_000, ge=1, description="characters mended at once, where a line is longer"
    )


class GopherQuality(Settings):
    """Rules on words and lines of Rae et al. 2021 (Gopher), table A1; for English."""

    enabled: bool = Field(False, description="judge documents by these rules")
    min_words: int = Field(50, ge=0, description="fewest words that are no mere symbols")
    max_words: int = Field(100_000, ge=1, description="most words that are no mere symbols")
    min_word_length: Real = Field(
        3.0, ge=0, description="least mean length of words, in characters"
    )
    max_word_length: Real = Field(10.0, gt=0, description="largest mean length, in characters")
    max_symbols: Real = Field(0.1, ge=0, description="most # a word, and most ellipses a word")
    max_bullets: Real = Field(0.9, ge=0, le=1, description="largest share of lines with bullets")
    max_ellipses: Real = Field(
        0.3, ge=0, le=1, description="largest share of lines that end in an ellipsis"
    )
    min_alphabetic: Real = Field(0.8, ge=0, le=1, description="least share of words with a letter")
    min_stop_words: int = Field(2, ge=0, le=8, description="fewest different stop words")


class GopherRepetition(Settings):
    """Rules on repetition of Rae et al. 2021, table A1; shares of characters but for two."""

    enabled: bool = Field(False, description="judge documents by these rules")
    duplicate_lines: Real = Field(0.3, ge=0, le=1, description="share of lines seen before")
    duplicate_paragraphs: Real = Field(0.3, ge=0, le=1, description="share of such paragraphs")
    duplicate_line_characters: Real = Field(0.2, ge=0, le=1, description="in lines seen before")
    duplicate_paragraph_characters: Real = Field(0.2, ge=0, le=1, description="in such paragraphs")
    top_2_gram: Real = Field(0.2, ge=0, le=1, description="in the commonest pair of words")
    top_3_gram: Real = Field(0.18, ge=0, le=1, description="in the commonest 3 words in a row")
    top_4_gram: Real = Field(0.16, ge=0, le=1, description="in the commonest 4 words in a row")
    duplicate_5_grams: Real = Field(0.15, ge=0, le=1, description="in 5 words seen before")
    duplicate_6_grams: Real = Field(0.14, ge=0, le=1, description="in 6 words seen before")
    duplicate_7_grams: Real = Field(0.13, ge=0, le=1, description="in 7 words seen before")
    duplicate_8_grams: Real = Field(0.12, ge=0, le=1, description="in 8 words seen before")
    duplicate_9_grams: Real = Field(0.11, ge=0, le=1, description="in 9 words seen before")
    duplicate_10_grams: Real = Field(0.1, ge=0, le=1, description="in 10 words seen before")


class C4(Settings):
    """Rules of Raffel et al. 2019 (C4): lines are left out, documents dropped; for English."""

    enabled: bool = Field(False, description="apply these rules")
    citations: bool = Field(True, description="take out marks such as [1] and [citation needed]")
    terminal_punctuation: bool = Field(True, description="leave out lines that end without any")
    min_sentences: int = Field(5, ge=0, description="fewest sentences in the lines that stay")
    min_words: int = Field(3, ge=0, description="leave out lines of fewer words")
    max_word_length: int = Field(1000, ge=1, description="leave out lines with a longer word")
    javascript: bool = Field(True, description="leave out lines that speak of JavaScript")
    policy: bool = Field(True, description="leave out lines on cookies, privacy, terms of use")
    lorem_ipsum: bool = Field(True, description="drop documents with a lorem ipsum")
    curly_bracket: bool = Field(True, description="drop documents with a {")


class FineWeb(Settings):
    """Rules of Penedo et al. 2024 (FineWeb) on lines."""

    enabled: bool = Field(False, description="judge documents by these rules")
    min_punctuated: Real = Field(
        0.12, ge=0, le=1, description="least share of lines that end a sentence"
    )
    max_short: Real = Field(0.67, ge=0, le=1, description="largest share of short lines")
    short_line: int = Field(30, ge=0, description="characters of a short line, at most")
    max_duplicates: Real = Field(
        0.01, ge=0, le=1, description="largest share of characters in lines seen before"
    )
    max_line_breaks: Real = Field(0.3, ge=0, description="most line breaks a word")


class Mask(Settings):
    """Replace what may identify people."""

    emails: bool = Field(False, description="replace e-mail addresses")
    ips: bool = Field(False, description="replace IP addresses (version 4)")
    public_ips_only: bool = Field(True, description="leave private and reserved addresses")
    email: str = Field("email@example.com", min_length=1, description="stands in their place")
    ip: str = Field("192.0.2.1", min_length=1, description="stands in their place")


class Clean(Settings):
    """Broken, short and foreign text."""

    fix_text: bool = Field(True, description="mend mojibake and more with ftfy")
    ftfy: Ftfy = Field(Ftfy(), description="what ftfy mends")
    whitespace: bool = Field(True, description="collapse runs of spaces and of empty lines")
    languages: tuple[str, ...] = Field(("en",), description="ISO 639-1 codes kept; empty: all")
    min_language_probability: Real = Field(0.0, ge=0, le=1, description="of the language found")
    min_tokens: int = Field(128, ge=0, description="shortest document kept, in tokens")
    token_counter: str | None = Field(
        None, description="tokenizer.json to count tokens with; none: estimated from bytes"
    )
    bytes_per_token: Real = Field(4.0, gt=0, description="for the estimate")
    javascript: bool = Field(True, description="drop short documents that speak of JavaScript")
    min_characters: int = Field(0, ge=0, description="shortest document kept, in characters")
    max_characters: int | None = Field(
        None, ge=1, description="longest document kept, in characters; none: no limit"
    )
    words: Literal["simple", "spacy"] = Field(
        "simple",
        description="how the rules below find words; spacy (to be installed): as datatrove",
    )
    gopher_quality: GopherQuality = Field(GopherQuality(), description="off by default")
    gopher_repetition: GopherRepetition = Field(GopherRepetition(), description="off by default")
    c4: C4 = Field(C4(), description="off by default")
    fineweb: FineWeb = Field(FineWeb(), description="off by default")
    mask: Mask = Field(Mask(), description="off by default")


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
