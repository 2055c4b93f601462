"""What the keep rule asks of each document."""

from dataclasses import dataclass
from datetime import UTC, datetime

from web2gpt.dedup.damage import is_damaged
from web2gpt.io.shards import Document


@dataclass(frozen=True)
class Merits:
    """What decides which of several copies is kept."""

    characters: int
    date: int | None  # seconds since 1970, UTC
    priority: float | None
    damaged: bool  # ftfy would change the text

    @classmethod
    def of(cls, document: Document, date_field: str, priority_field: str) -> "Merits":
        text, priority = document["text"], document.get(priority_field)
        is_number = isinstance(priority, int | float) and not isinstance(priority, bool)
        return cls(
            len(text),
            seconds_of(document.get(date_field)),
            float(priority) if is_number and priority is not None else None,
            is_damaged(text),
        )


def seconds_of(date: object) -> int | None:
    """A date as seconds since 1970: ISO 8601 (UTC where no zone is given) or a number already."""
    if isinstance(date, int | float) and not isinstance(date, bool) and abs(date) < 1e15:
        return int(date)
    if not isinstance(date, str):
        return None
    try:
        moment = datetime.fromisoformat(date.strip())
    except ValueError:
        return None
    try:
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (OverflowError, ValueError):
        return None
