"""The share of documents that no model of this corpus is trained on, chosen by a hash of their ids.

A document's lot depends on its id and the share alone, not on the other documents, their order or a
seed: a larger share holds out the same documents and more. Pieces of one document, as
decontamination leaves them, share its lot. The stage index puts documents marked ``held_out`` into
validation, before it splits the rest.
"""

from hashlib import blake2b

from web2gpt.io.shards import Document

MARK = "held_out"


def is_held_out(document: Document, share: float) -> bool:
    """Whether the document belongs to this share of all."""
    key = document.get("whole", document["id"])
    lot = blake2b(str(key).encode(), digest_size=8, person=MARK.encode()).digest()
    return int.from_bytes(lot, "big") < share * 2**64
