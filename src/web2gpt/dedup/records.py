"""Documents as dedup takes them, and what the keep rule asks of each.

All steps read a shard through ``sound_documents``, so that the k-th row of a shard's signatures
belongs to the k-th sound document of the shard.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from web2gpt.dedup.damage import is_damaged
from web2gpt.errors import InputError
from web2gpt.io.documents import fault_of
from web2gpt.io.shards import BROKEN_COMPRESSION, BadLine, Document, read_jsonl


def sound_documents(path: Path) -> Iterator[Document]:
    """The documents of a shard that can take part, in order; the rest is told by ``remove``.

    Raises ``InputError`` if the file breaks off.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; run the stage extract first.")
    for record in read_jsonl(path):
        if isinstance(record, BadLine):
            if record.reason == BROKEN_COMPRESSION:
                raise InputError(f"{path}: broken at line {record.line}; delete it and run again.")
        elif fault_of(record) is None:
            yield record


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
