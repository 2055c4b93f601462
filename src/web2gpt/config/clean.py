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
