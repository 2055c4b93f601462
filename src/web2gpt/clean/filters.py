"""The named filters that decide which documents stay, in the order in which they judge.

A filter says None to a document that may stay, else the figure it judged by; its name is the reason
in the statistics and in rejected/. To add one: a setting, a function here, a line in ``FILTERS``.
"""

from collections.abc import Callable

from web2gpt.clean.gopher import Finding, judge_quality, judge_repetition
from web2gpt.clean.language import language_detector
from web2gpt.clean.length import too_short
from web2gpt.clean.line_rules import c4_lines, judge_fineweb
from web2gpt.clean.words import word_splitter
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


def gopher_repetition(settings: Clean) -> Filter | None:
    """Documents that do not repeat themselves (Gopher)."""
    if not (rules := settings.gopher_repetition).enabled:
        return None
    split = word_splitter(settings.words)
    return lambda document: _figure(judge_repetition(document["text"], split, rules))


def gopher_quality(settings: Clean) -> Filter | None:
    """Documents of words and lines such as prose has (Gopher)."""
    if not (rules := settings.gopher_quality).enabled:
        return None
    split = word_splitter(settings.words)
    return lambda document: _figure(judge_quality(document["text"], split, rules))


def c4(settings: Clean) -> Filter | None:
    """Documents with enough sentences (C4). Leaves the other lines out of each document."""
    if not (rules := settings.c4).enabled:
        return None
    split = word_splitter(settings.words)

    def judge(document: Document) -> Figure | None:
        result = c4_lines(document["text"], split, rules)
        if not isinstance(result, str):
            return _figure(result)
        document["text"] = result
        return None

    return judge


def fineweb(settings: Clean) -> Filter | None:
    """Documents whose lines are sentences, not lists (FineWeb)."""
    if not (rules := settings.fineweb).enabled:
        return None
    split = word_splitter(settings.words)
    return lambda document: _figure(judge_fineweb(document["text"], split, rules))


def _figure(finding: Finding | None) -> str | None:
    """The rule broken, among those of its filter, and the figure."""
    return f"{finding[0]} {round(finding[1], 4)}" if finding else None


FILTERS: dict[str, Callable[[Clean], Filter | None]] = {
    "language": language,
    "javascript": javascript,  # before short, which would take all of its documents
    "gopher_repetition": gopher_repetition,
    "gopher_quality": gopher_quality,
    "c4": c4,
    "fineweb": fineweb,
    "short": short,  # of what the rules on lines have left
    "characters": characters,
}


def filters(settings: Clean) -> dict[str, Filter]:
    """The filters that the settings switch on, by name, in order."""
    built = {name: build(settings) for name, build in FILTERS.items()}
    return {name: judge for name, judge in built.items() if judge is not None}
