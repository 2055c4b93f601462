"""What a document must have to take part in a stage: an id of the project's form, and a text."""

import re

from web2gpt.io.shards import Document

ID = re.compile(r"[0-9a-f]{32}")


def fault_of(document: Document) -> str | None:
    """Why a record is no sound document, as a reason for rejected/; None if it is one."""
    identifier, text = document.get("id"), document.get("text")
    if not isinstance(identifier, str) or not ID.fullmatch(identifier):
        return "bad_id"
    return None if isinstance(text, str) else "no_text"
