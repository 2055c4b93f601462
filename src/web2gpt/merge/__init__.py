"""Stage merge: one corpus of many zstd frames."""
