"""One corpus of all shards: whole, in a fixed order, each id once.

The order is that of the shards as given and of the documents within them, or a seeded shuffle of
it. Memory: one frame, and some tens of bytes for each id that has been seen.
"""

from collections.abc import Iterator

from web2gpt.config.documents import Merge
from web2gpt.config.versions import VERSIONS
from web2gpt.io.documents import fault_of
from web2gpt.io.seen import SeenIds
from web2gpt.io.shards import Document
from web2gpt.io.stage import ShardFiles, ShardJob
from web2gpt.merge.held_out import MARK, is_held_out
from web2gpt.merge.shuffle import files_needed, shuffled


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
        documents = _accepted(merge)
        if settings.shuffle:
            size = sum(path.stat().st_size for path in files.inputs if path.exists())
            documents = shuffled(documents, merge.work.path, files_needed(size), settings.seed)
        figures = merge.statistics.figures
        for document in documents:
            if settings.held_out and is_held_out(document, settings.held_out):
                document[MARK] = True
                figures["held_out"] += 1
            merge.keep(document)
            figures["characters"] += len(document["text"])
            figures[f"documents of {document.get('source', 'no source')}"] += 1


def _accepted(merge: ShardJob) -> Iterator[Document]:
    """The documents that belong into the corpus; the others are recorded."""
    seen = SeenIds()
    for document in merge.documents():
        if fault := fault_of(document):
            merge.error(document, fault)
        elif not seen.add(document["id"]):
            merge.error(document, "duplicate_id")
        elif not document["text"].strip():
            merge.drop(document, "empty")
        else:
            yield document
