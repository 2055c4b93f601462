"""The files that a configuration names: which belong to a source, and which are missing."""

import re
from collections.abc import Iterator
from pathlib import Path

from web2gpt.config.root import Config
from web2gpt.config.sources import Source
from web2gpt.io.compression import JSON_LINES, PACKED

DEMO = Path("resources/demo")
"""The demo's site and URL list, made by the workflow itself; never missing."""

PLAIN_OR_PACKED = ("", *PACKED)
ENDINGS = {
    "urls": PLAIN_OR_PACKED,
    "warc": tuple(f".warc{packed}" for packed in PLAIN_OR_PACKED),
    "jsonl": tuple(f"{name}{packed}" for name in JSON_LINES for packed in PLAIN_OR_PACKED),
}


def source_files(source: Source) -> list[Path]:
    """The files of a source in a fixed order: a folder stands for the files of its kind in it,
    the prefix of an indexed dataset for its .bin and .idx.
    """
    if source.kind == "tokens":
        return [Path(path + ending) for path in source.paths for ending in (".bin", ".idx")]
    files: list[Path] = []
    for path in map(Path, source.paths):
        if path.is_dir():
            files += sorted(
                file
                for file in path.rglob("*")
                if file.is_file()
                and file.name.endswith(ENDINGS[source.kind])
                and not file.name.startswith(".")
            )
        else:
            files.append(path)
    return list(dict.fromkeys(files))


PATTERN = re.compile(r"\{\s*[.\w]+\s*(,[^{}]*)?\}|<[a-z][a-z0-9_]*>")
"""What Snakemake takes for a wildcard or a variable in a file's name, with no way to quote it."""


def missing_files(config: Config) -> list[str]:
    """A line for each file that the configuration names and that is not there, or that has a name
    which the workflow cannot use.
    """
    return [
        *(
            f"{key}: {path}: no such file or folder; correct the path or put it there"
            for key, path in _named(config)
            if not path.is_relative_to(DEMO) and not path.exists()
        ),
        *(
            f"input.{source.name}.paths: no {source.kind} files (*{ENDINGS[source.kind][0]} …) in "
            f"{', '.join(source.paths)}; correct the path or put them there"
            for source in config.input
            if not source_files(source)
        ),
        *dict.fromkeys(
            f"{key}: {path}: Snakemake takes {found[0]} in a name for a pattern; rename the file"
            for key, path in (*_named(config), *_files(config))
            if (found := PATTERN.search(str(path)))
        ),
    ]


def _files(config: Config) -> Iterator[tuple[str, Path]]:
    for source in config.input:
        yield from ((f"input.{source.name}.paths", file) for file in source_files(source))


def _named(config: Config) -> Iterator[tuple[str, Path]]:
    for source in config.input:
        key = f"input.{source.name}.paths"
        named = source_files(source) if source.kind == "tokens" else map(Path, source.paths)
        yield from ((key, path) for path in named)
    singles = {
        "fetch.serve": config.fetch.serve,
        "tokenizer.path": config.tokenizer.path,
        "clean.token_counter": config.clean.token_counter,
        "train.continue_from": config.train.continue_from,
        "sample.prompts_file": config.sample.prompts_file,
    }
    lists = {
        "urls.blacklist_domains": config.urls.blacklist_domains,
        "urls.allow_domains": config.urls.allow_domains,
        "dedup.against": config.dedup.against,
        "dedup.against_documents": config.dedup.against_documents,
        "decontaminate.against": config.decontaminate.against,
        "evaluate.texts": config.evaluate.texts,
        "evaluate.cloze": config.evaluate.cloze,
    }
    yield from ((key, Path(path)) for key, path in singles.items() if path is not None)
    yield from ((key, Path(path)) for key, paths in lists.items() for path in paths)
