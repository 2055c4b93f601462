"""A document's length in tokens: counted with a given tokenizer, or estimated from its bytes."""

from collections.abc import Callable
from pathlib import Path

from web2gpt.config.clean import Clean
from web2gpt.errors import InputError

ShortBy = Callable[[str], int | None]
"""The number of tokens of a text that has fewer than ``min_tokens``; None for all others."""


def too_short(settings: Clean) -> ShortBy:
    """Whether texts are too short, by the tokenizer of the settings or by bytes."""
    if settings.token_counter is None:
        return _by_bytes(settings.min_tokens, settings.bytes_per_token)
    return _by_tokenizer(settings.min_tokens, Path(settings.token_counter))


def _by_bytes(least: int, bytes_per_token: float) -> ShortBy:
    def judge(text: str) -> int | None:
        tokens = int(len(text.encode()) / bytes_per_token)
        return tokens if tokens < least else None

    return judge


def _by_tokenizer(least: int, path: Path) -> ShortBy:
    """Count, but not where a text has more bytes than so few tokens can hold."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(path.read_text())
    except Exception as error:  # the library raises plain Exception
        raise InputError(
            f"{path}: not a tokenizer ({error}); clean.token_counter names a tokenizer.json."
        ) from error
    # In a byte-level vocabulary a character stands for a byte, elsewhere for up to four.
    longest = 4 * max(len(token) for token in tokenizer.get_vocab())

    def judge(text: str) -> int | None:
        if len(text.encode()) > least * longest:
            return None
        tokens = len(tokenizer.encode(text, add_special_tokens=False).ids)
        return tokens if tokens < least else None

    return judge
