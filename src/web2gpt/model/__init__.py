"""GPT-2 for a single device; nothing of parallelism."""
