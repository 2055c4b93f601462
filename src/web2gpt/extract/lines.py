"""From anybody's JSON lines to documents.

A line that cannot be read, has no text, or repeats an id costs that line only; it is recorded with
file, line and reason.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from web2gpt.config.sources import Keys
from web2gpt.io.seen import SeenIds
from web2gpt.io.shards import BadLine, Document, read_lines
from web2gpt.io.stage import ShardJob
from web2gpt.web.ids import document_id
from web2gpt.web.text import writable

CARRIED = ("title", "date", "language", "crawled")
MOST = (1 << 63) - 1  # largest integer that is carried
OWN = ("id", "url", "text", "source")  # fields of a document that a record cannot set


class UnreadableError(Exception):
    """A line is no document; ``args[0]`` is the reason."""


def extract_lines(job: ShardJob, source: str, keys: Keys) -> None:
    """Turn the records of the job's JSONL files into documents, in the files' order."""
    seen = SeenIds()
    for path, number, line in _lines(job):
        if isinstance(line, BadLine):
            job.bad_line(line)
            continue
        try:
            document = _document(line, source, keys, f"{path}:{number}")
        except UnreadableError as error:
            job.bad_line(BadLine(str(path), number, error.args[0]))
            continue
        if not document["text"].strip():
            job.drop(document, "empty")
        elif not seen.add(document["id"]):
            job.error({**document, "file": str(path), "line": number}, "duplicate_id")
        else:
            job.statistics.figures["characters"] += len(document["text"])
            job.keep(document)


def _lines(job: ShardJob) -> Iterator[tuple[Path, int, bytes | BadLine]]:
    for path in job.files.inputs:
        for number, line in read_lines(path):
            if line:
                yield path, number, line
        job.statistics.bytes_in += path.stat().st_size


def _document(line: bytes, source: str, keys: Keys, place: str) -> Document:
    """The document of one line. Raises ``UnreadableError``."""
    record = _parse(line)
    text = _value(record, keys.text)
    if text is None:
        raise UnreadableError("no_text")
    if not isinstance(text, str):
        raise UnreadableError("text_not_a_string")
    own = _value(record, keys.id) if keys.id else place
    if own is None or isinstance(own, (dict, list, bool)):
        raise UnreadableError("no_id")
    url = _value(record, keys.url) if keys.url else None
    carried = {name: record[name] for name in CARRIED if isinstance(record.get(name), str)}
    carried |= {name: record[name] for name in keys.carry if _is_plain(record.get(name))}
    return {
        "id": document_id(source, str(own)),
        "url": writable(url) if isinstance(url, str) else None,
        "text": writable(text),
        "source": source,
        **{
            name: writable(value) if isinstance(value, str) else value
            for name, value in carried.items()
            if name not in OWN
        },
    }


def _is_plain(value: Any) -> bool:
    """Whether a value can be carried: JSON has numbers of any size, what is written has 64 bits."""
    if isinstance(value, bool):
        return False
    return isinstance(value, str | float) or (isinstance(value, int) and -MOST <= value <= MOST)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        record = _parse_leniently(line)
    if not isinstance(record, dict):
        raise UnreadableError("not_an_object")
    return record


def _parse_leniently(line: bytes) -> Any:
    """What Python's own reader takes and orjson does not: NaN, lone surrogates."""
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise UnreadableError("invalid_utf8") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError("not_json") from error


def _value(record: dict[str, Any], key: str) -> Any:
    """The field of this name, or inside nested objects where the name has dots."""
    if key in record or "." not in key:
        return record.get(key)
    value: Any = record
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
