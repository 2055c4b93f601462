"""The documents that take part.

All steps read a shard through ``sound_documents``, so that the k-th row of a shard's signatures
belongs to the k-th sound document of the shard.
"""

from collections.abc import Iterator
from pathlib import Path

from web2gpt.io.documents import fault_of
from web2gpt.io.shards import BadLine, Document, read_shard


def sound_documents(path: Path) -> Iterator[Document]:
    """The documents of a shard that can take part, in order; the rest is told by ``remove``.

    Raises ``InputError`` if the file is missing or breaks off.
    """
    for record in read_shard(path):
        if not isinstance(record, BadLine) and fault_of(record) is None:
            yield record
