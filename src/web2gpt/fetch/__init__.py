"""Stage fetch: a polite crawler that writes WARC files."""
