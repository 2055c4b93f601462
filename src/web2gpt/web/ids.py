"""Identifiers of documents: the same for any sharding and order."""

from hashlib import blake2b


def document_id(source: str, key: str) -> str:
    """blake2b-128, in hex, of the source's name and of what names the record within the source.

    ``key`` is the URL as given for a fetched page, the WARC-Record-ID (or file and offset) for an
    archive of others, and the record's own id (or file and line) for JSON lines.
    """
    return blake2b(f"{source}\0{key}".encode(errors="surrogatepass"), digest_size=16).hexdigest()
