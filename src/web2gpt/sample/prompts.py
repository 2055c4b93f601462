"""Prompts from the configuration and from a file."""

from collections.abc import Iterator
from pathlib import Path

from web2gpt.config.outputs import DEFAULT_PROMPTS, Sample
from web2gpt.errors import InputError
from web2gpt.io.compression import PACKED
from web2gpt.io.shards import BadLine, read_jsonl, read_lines

_PLAIN = (".txt", "")


def read_prompts(settings: Sample) -> list[str]:
    """The prompts that are given, those of the settings before those of the file; else the default.

    In a text file each line is a prompt, without its line end; an empty line is none. In JSON
    lines it is the field ``prompt`` or ``text``. Raises ``InputError``, with the line, for one
    that cannot be read.
    """
    is_default = settings.prompts is None and settings.prompts_file is None
    prompts = list(DEFAULT_PROMPTS if is_default else settings.prompts or ())
    if settings.prompts_file is not None:
        prompts += _from_file(Path(settings.prompts_file))
    if not prompts:
        raise InputError(
            "sample.prompts: no prompts; give some, or an empty one ('') for text without a prompt."
        )
    return prompts


def _from_file(path: Path) -> Iterator[str]:
    name = path.with_suffix("") if path.suffix in PACKED else path
    return _plain(path) if name.suffix in _PLAIN else _json(path)


def _plain(path: Path) -> Iterator[str]:
    for number, line in read_lines(path):
        if isinstance(line, BadLine):
            raise InputError(f"{path}, line {number}: {line.reason}; mend the file.")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number}: not UTF-8; convert the file.") from error
        if text:
            yield text


def _json(path: Path) -> Iterator[str]:
    for number, record in enumerate(read_jsonl(path), start=1):
        if isinstance(record, BadLine):
            raise InputError(f"{path}, line {record.line}: {record.reason}; mend the file.")
        prompt = record.get("prompt", record.get("text"))
        if not isinstance(prompt, str):
            raise InputError(f"{path}, record {number}: no text under 'prompt' or 'text'; mend it.")
        yield prompt
