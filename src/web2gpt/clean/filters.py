"""The named filters that decide which documents stay, in the order in which they judge.

A filter says None to a document that may stay, else the figure it judged by; its name is the reason
in the statistics and in rejected/. To add one: a setting, a function here, a line in ``FILTERS``.
"""

from collections.abc import Callable

from web2gpt.clean.language import language_detector
from web2gpt.clean.length import too_short
from web2gpt.config.clean import Clean
from web2gpt.io.shards import Document

SHORT = 256  # characters: longer documents may speak of JavaScript as they like
NO_LANGUAGE = "none"

Figure = float | str
Filter = Callable[[Document], Figure | None]


def language(settings: Clean) -> Filter:
    """Documents in the languages asked for. Notes language and probability in each document."""
    detect = language_detector()

    def judge(document: Document) -> Figure | None:
        found = detect(document["text"])
        document["language"] = found.code if found else None
        document["language_probability"] = found.probability if found else None
        if found is None:
            return NO_LANGUAGE if settings.languages else None
        wanted = not settings.languages or found.code in settings.languages
        if wanted and found.probability >= settings.min_language_probability:
            return None
        return f"{found.code} {found.probability}"

    return judge


def short(settings: Clean) -> Filter | None:
    """Documents of enough tokens (the GPT-2 chains' limit is 128)."""
    if settings.min_tokens == 0:
        return None
    judge = too_short(settings)
    return lambda document: judge(document["text"])


def javascript(settings: Clean) -> Filter | None:
    """No notices that ask for JavaScript: short documents in which the word stands."""
    if not settings.javascript:
        return None

    def judge(document: Document) -> Figure | None:
        text = document["text"]
        return len(text) if len(text) < SHORT and "javascript" in text.lower() else None

    return judge


def characters(settings: Clean) -> Filter | None:
    """Documents neither too short nor too long in characters."""
    least, most = settings.min_characters, settings.max_characters
    if least == 0 and most is None:
        return None

    def judge(document: Document) -> Figure | None:
        length = len(document["text"])
        return length if length < least or (most is not None and length > most) else None

    return judge


FILTERS: dict[str, Callable[[Clean], Filter | None]] = {
    "language": language,
    "javascript": javascript,  # before short, which would take all of its documents
    "short": short,
    "characters": characters,
}


def filters(settings: Clean) -> dict[str, Filter]:
    """The filters that the settings switch on, by name, in order."""
    built = {name: build(settings) for name, build in FILTERS.items()}
    return {name: judge for name, judge in built.items() if judge is not None}
