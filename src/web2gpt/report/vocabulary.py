"""The tokenizer as the page shows it: size, bytes a token, the longest tokens."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import decoders

from web2gpt.io.atomic import read_json
from web2gpt.io.statistics import Statistics

LONGEST = 40


@dataclass(frozen=True)
class VocabularyFacts:
    """``bytes_per_token``: of the corpus's text, end-of-document tokens counted; None if the
    corpus was not made here."""

    size: int
    kind: str
    bytes_per_token: float | None
    longest: tuple[str, ...]


def vocabulary_facts(tokenizer: Path, tokenize: Statistics | None) -> VocabularyFacts:
    """Read tokenizer.json, and the sums of the stage tokenize.

    Raises ``OSError`` or ``ValueError`` if it is not there, or not one.
    """
    content = read_json(tokenizer)
    tokens = _tokens(content["model"]["vocab"])
    added = {one["content"] for one in content.get("added_tokens") or ()}
    decode = _decoder(content)
    plain = [decode(token) for token in tokens if token not in added]
    longest = sorted(plain, key=lambda text: (-len(text.encode()), text))[:LONGEST]
    return VocabularyFacts(
        len({*tokens, *added}), str(content["model"].get("type")), _ratio(tokenize), tuple(longest)
    )


def _tokens(vocab: Any) -> list[str]:
    """Of a mapping to ids (BPE, WordPiece), or of pairs with scores (Unigram)."""
    return list(vocab) if isinstance(vocab, dict) else [token for token, _ in vocab]


def _decoder(content: dict[str, Any]) -> Any:
    """From a token as it is stored to the text that it stands for."""
    kind = (content.get("decoder") or {}).get("type")
    byte_level = decoders.ByteLevel()
    return (lambda token: byte_level.decode([token])) if kind == "ByteLevel" else str


def _ratio(tokenize: Statistics | None) -> float | None:
    figures = tokenize.figures if tokenize else {}
    tokens = figures.get("tokens", 0)
    return figures.get("text_bytes", 0) / tokens if tokens else None
