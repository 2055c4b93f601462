"""One corpus of all shards: whole, in a fixed order, each id once.

The order is that of the shards as given and of the documents within them, or a seeded shuffle of
it. Where nothing else is asked, merging is a copy: the frames of the shards become those of the
corpus, though each document is looked at. Memory: one frame, and some tens of bytes for each id
that has been seen.
"""

from collections.abc import Iterator

from web2gpt.config.merge import Merge
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import InputError
from web2gpt.io.compression import BROKEN
from web2gpt.io.documents import fault_of
from web2gpt.io.seen import SeenIds
from web2gpt.io.shards import BadLine, Document, parse_line
from web2gpt.io.stage import ShardFiles, ShardJob
from web2gpt.merge.blocks import Block, read_blocks
from web2gpt.merge.held_out import MARK, is_held_out
from web2gpt.merge.shuffle import RATIO, files_needed, shuffled


def merge_documents(files: ShardFiles, settings: Merge, *, rejected_text: bool) -> None:
    """Write the corpus, the index of its frames, rejected records and statistics.

    The second document of an id is an error of that record; a document without text is dropped.
    """
    job = {
        "version": VERSIONS["merge"],
        "settings": settings.model_dump(mode="json"),
        "order": [str(path) for path in files.inputs],
    }
    with ShardJob(
        "merge",
        "documents",
        files,
        job,
        rejected_text=rejected_text,
        frame_bytes=settings.frame_bytes,
    ) as merge:
        if not merge.needed:
            return
        if settings.shuffle:
            _merge_shuffled(merge, settings)
        else:
            _merge_in_order(merge, settings)


def _merge_in_order(merge: ShardJob, settings: Merge) -> None:
    """Frames of fit size whose documents all stay as they are get copied, the others written."""
    seen = SeenIds()
    for block, records in _blocks(merge):
        documents = [record for record in records if _is_accepted(merge, seen, record)]
        is_changed = [_note(merge, document, settings) for document in documents]
        text_bytes = sum(len(document["text"].encode()) for document in documents)
        is_fit = settings.frame_bytes <= 2 * text_bytes <= 4 * settings.frame_bytes
        is_whole = len(documents) == block.lines.count(b"\n")
        if block.frame and is_whole and is_fit and not any(is_changed):
            merge.keep_frame(block.frame, len(documents), text_bytes)
        else:
            for document in documents:
                merge.keep(document)


def _merge_shuffled(merge: ShardJob, settings: Merge) -> None:
    seen = SeenIds()
    size = RATIO * sum(path.stat().st_size for path in merge.files.inputs if path.exists())
    accepted = (
        record
        for _, records in _blocks(merge)
        for record in records
        if _is_accepted(merge, seen, record)
    )
    for document in shuffled(accepted, merge.work.path, files_needed(size), settings.seed):
        _note(merge, document, settings)
        merge.keep(document)


def _blocks(merge: ShardJob) -> Iterator[tuple[Block, list[Document]]]:
    """All blocks of the shards with their records; bad lines are recorded and left out."""
    for path in merge.files.inputs:
        if not path.is_file():
            raise InputError(f"{path}: no such file; run the stage that makes it first.")
        merge.statistics.bytes_in += path.stat().st_size
        number = 0
        try:
            for block in read_blocks(path):
                records = []
                for line in block.lines.split(b"\n"):
                    number += 1
                    record = parse_line(line, path, number) if line.strip() else None
                    if isinstance(record, BadLine):
                        merge.bad_line(record)
                    elif record is not None:
                        records.append(record)
                yield block, records
                number -= block.lines.endswith(b"\n")
        except BROKEN as error:
            raise InputError(
                f"{path}: broken at line {number + 1}; delete it and run again."
            ) from error


def _is_accepted(merge: ShardJob, seen: SeenIds, document: Document) -> bool:
    """Whether a document belongs into the corpus; if not, it is recorded."""
    if fault := fault_of(document):
        merge.error(document, fault)
    elif not seen.add(document["id"]):
        merge.error(document, "duplicate_id")
    elif not document["text"].strip():
        merge.drop(document, "empty")
    else:
        return True
    return False


def _note(merge: ShardJob, document: Document, settings: Merge) -> bool:
    """Count a document of the corpus, and mark it if it is held out; whether it is."""
    figures = merge.statistics.figures
    figures["characters"] += len(document["text"])
    figures[f"documents of {document.get('source', 'no source')}"] += 1
    if not (settings.held_out and is_held_out(document, settings.held_out)):
        return False
    document[MARK] = True
    figures["held_out"] += 1
    return True
