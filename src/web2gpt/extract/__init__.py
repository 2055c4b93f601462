"""Stage extract: documents from archives and from JSON lines."""
