"""Stage dedup: near-duplicates by MinHash, verified."""
