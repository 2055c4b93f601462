"""Rules on lines: C4's (Raffel et al. 2019) and FineWeb's (Penedo et al. 2024).

C4's leave lines out and drop what has too little left; FineWeb's judge the document by its lines.
As in datatrove, C4's list of bad words is left aside, and FineWeb's duplicate lines count their
characters without line feeds.
"""

import re

from web2gpt.clean.gopher import Finding, repeated
from web2gpt.clean.words import WordSplitter, count_sentences, ends_sentence
from web2gpt.config.clean import C4, FineWeb

CITATION = re.compile(r"\[(?:\d*|edit|citation needed)\]")
LINE_ENDS = (".", "?", "!", '"', "'")
POLICY = re.compile("terms of use|privacy policy|cookie policy|use(?:s|s? of)? cookies")


def c4_lines(text: str, split: WordSplitter, rules: C4) -> str | Finding:
    """The lines that stay, or the rule by which the document goes."""
    kept: list[str] = []
    sentences = 0
    for whole in map(str.strip, text.splitlines()):
        words = whole.split()
        if any(len(word) > rules.max_word_length for word in words):
            continue
        line = CITATION.sub("", whole) if rules.citations else whole
        is_sentence = line.endswith(LINE_ENDS) and not line.endswith("...")
        if len(words) < rules.min_words or (rules.terminal_punctuation and not is_sentence):
            continue
        lower = line.lower()
        if rules.lorem_ipsum and "lorem ipsum" in lower:
            return "lorem_ipsum", len(kept)
        if rules.javascript and "javascript" in lower:
            continue
        if rules.curly_bracket and "{" in line:
            return "curly_bracket", len(kept)
        if rules.policy and POLICY.search(lower):
            continue
        sentences += count_sentences(split(line)) if rules.min_sentences else 0
        kept.append(line)
    if sentences < rules.min_sentences:
        return "few_sentences", sentences
    return "\n".join(kept).strip()


def judge_fineweb(text: str, split: WordSplitter, rules: FineWeb) -> Finding | None:
    """The rule that the text breaks, if it breaks one."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return "empty", 0
    punctuated = sum(ends_sentence(line[-1]) for line in lines) / len(lines)
    if punctuated < rules.min_punctuated:
        return "punctuated", punctuated
    short = sum(len(line) <= rules.short_line for line in lines) / len(lines)
    if short > rules.max_short:
        return "short_lines", short
    duplicates = repeated(lines)[1] / (len(text) - text.count("\n"))
    if duplicates > rules.max_duplicates:
        return "duplicates", duplicates
    breaks = text.count("\n") / max(1, len(split(text)))
    return ("line_breaks", breaks) if breaks > rules.max_line_breaks else None
