"""The documents that take part.

All steps read a shard through ``sound_documents``, so that the k-th row of a shard's signatures
belongs to the k-th sound document of the shard.
"""

from collections.abc import Iterator
from pathlib import Path

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
